// An experiment on a device whose allocator caches: a stand-in for a card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "support/empty_device.h"
#include "tare/experiment/experiment.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const c10::Device kCard{c10::kXPU, 0};  // no other test has one

class CachingDevice final : public testing::EmptyDevice {
 public:
  explicit CachingDevice(memory::Usage& usage) : EmptyDevice(kCard, "a card"), usage_(usage) {}
  memory::Usage usage() const override { return usage_; }
  memory::Reclaimed reclaim() override {
    usage_.pinned_bytes = 0;
    return {std::exchange(usage_.fragmented_bytes, 0), 0};
  }

 private:
  memory::Usage& usage_;
};

memory::Usage& card() {
  static memory::Usage usage;
  static const bool added = (memory::add_backend(std::make_unique<CachingDevice>(usage)), true);
  static_cast<void>(added);
  return usage;
}

TEST(CachingDevice, FragmentsAndRetriesOfAStageAreReported) {
  card() = {.reserved_bytes = int64_t{64} << 20, .fragmented_bytes = 5, .retries = 2};
  const ExperimentOptions options{.devices = {kCard}, .out = nullptr};
  Experiment calm("calm", options);
  const auto before = calm.finish();
  EXPECT_EQ(before.on(kCard).retries, 0) << "those before the stage are not its own";
  EXPECT_THAT(before.str(), Not(HasSubstr("allocator:")));
  EXPECT_THAT(before.str(), Not(HasSubstr("pinned")));

  Experiment stage("stage", options);
  card().fragmented_bytes = int64_t{3} << 20;
  card().retries += 4;
  card().pinned_bytes = int64_t{2} << 20;
  EXPECT_EQ(stage.data().front().fragmented_bytes, int64_t{3} << 20);
  const auto report = stage.finish();
  EXPECT_EQ(report.on(kCard).fragmented_bytes, int64_t{3} << 20) << "when finish() began";
  EXPECT_EQ(report.on(kCard).retries, 4);
  EXPECT_THAT(report.str(), HasSubstr("allocator: 3 MiB fragmented, 4 of its allocations retried"));
  EXPECT_THAT(report.str(), HasSubstr("pinned           2 MiB         2 MiB (100.0 %)"));
}

}  // namespace
}  // namespace tare

// An experiment on a device whose allocator caches: a stand-in for a card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tare/experiment/experiment.h"
#include "tare/memory/event_history.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const c10::Device kCard{c10::kXPU, 0};  // no other test has one

class CachingDevice final : public memory::DeviceBackend {
 public:
  explicit CachingDevice(memory::Usage& usage) : usage_(usage) {}
  c10::Device device() const override { return kCard; }
  std::string name() const override { return "a card"; }
  memory::Usage usage() const override { return usage_; }
  memory::MemoryInfo memory_info() const override { return {}; }
  std::optional<double> utilisation() const override { return {}; }
  void set_budget(std::optional<int64_t>) override {}
  std::optional<int64_t> budget() const override { return {}; }
  void warm() override {}
  memory::Reclaimed reclaim() override { return {std::exchange(usage_.fragmented_bytes, 0), 0}; }
  uint64_t sequence() const override { return 0; }
  std::vector<memory::LiveBlock> live_blocks(uint64_t) const override { return {}; }
  void open_ring(memory::EventRing&) override {}
  void close_ring(memory::EventRing&) override {}
  memory::EventHistory history(const memory::EventRing&) const override { return {}; }
  void open_peak(memory::PeakRecord&) override {}
  void close_peak(memory::PeakRecord&) override {}
  void refresh_peaks() const override {}
  double record_cost_ns() const override { return 0; }

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

  Experiment stage("stage", options);
  card().fragmented_bytes = int64_t{3} << 20;
  card().retries += 4;
  EXPECT_EQ(stage.data().front().fragmented_bytes, int64_t{3} << 20);
  const auto report = stage.finish();
  EXPECT_EQ(report.on(kCard).fragmented_bytes, int64_t{3} << 20) << "when finish() began";
  EXPECT_EQ(report.on(kCard).retries, 4);
  EXPECT_THAT(report.str(), HasSubstr("allocator: 3 MiB fragmented, 4 of its allocations retried"));
}

}  // namespace
}  // namespace tare

// The file that says what a run is doing now.
#include "tare/recipe/live_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"
#include "tare/data/datasets.h"
#include "tare/learner/learner.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;

/// Reads the file behind each batch.
struct Reader final : Callback {
  explicit Reader(fs::path place) : folder(std::move(place)) {}
  [[nodiscard]] std::string name() const override { return "reader"; }
  Action after_batch(FitContext&) override {
    if (const auto live = report::read_live(folder)) seen.push_back(*live);
    return Action::proceed;
  }
  fs::path folder;
  std::vector<report::LiveFigures> seen;
};

FitResult fit_with(const TempDir& folder, const fs::path& of_log,
                   const std::shared_ptr<Reader>& reader) {
  const auto data = datasets::make({.name = "generated_digits", .count = 100});
  Learner learner(models::make("mlp", {.sample_shape = {1, 28, 28}, .hidden = {8}}), data.splits,
                  {.device = "cpu", .batch = 20, .folder = folder.path(), .progress = false});
  return learner.fit(2,
                     {.lr = 0.5, .callbacks = {std::make_shared<LiveLog>(of_log, "only"), reader}});
}

TEST(LiveLog, SaysWhatTheFitIsDoingAndIsGoneAfterIt) {
  const TempDir folder;
  const auto reader = std::make_shared<Reader>(folder.path());
  fit_with(folder, folder.path(), reader);
  ASSERT_EQ(reader->seen.size(), 8U) << "from the first batch on";
  const report::LiveFigures& first = reader->seen.front();
  EXPECT_EQ(first.phase, "only");
  EXPECT_EQ(first.epoch, 1);
  EXPECT_EQ(first.epochs, 2);
  EXPECT_EQ(first.step, 1);
  EXPECT_EQ(first.steps, 8);
  EXPECT_EQ(first.lr, 0.5);
  EXPECT_GT(first.samples_per_s, 0);
  double sum = 0;
  for (const auto& category : first.memory) sum += category.value;
  EXPECT_GT(first.allocated_bytes, 0);
  EXPECT_LE(sum, static_cast<double>(first.allocated_bytes));
  const auto named = [&](const char* name) {
    return std::ranges::find(first.memory, name, &MetricValue::name) != first.memory.end();
  };
  EXPECT_TRUE(named("parameters"));
  EXPECT_TRUE(named("activations"));
  EXPECT_FALSE(fs::exists(folder / report::kLiveFile));
  EXPECT_FALSE(report::read_live(folder.path()));
}

/// Compares the file with the epoch whose row is written next.
struct EndsOfEpochs final : Callback {
  explicit EndsOfEpochs(fs::path place) : folder(std::move(place)) {}
  [[nodiscard]] std::string name() const override { return "ends_of_epochs"; }
  Action after_epoch(FitContext& context) override {
    const auto live = report::read_live(folder);
    EXPECT_TRUE(live) << "in epoch " << context.epoch;
    if (!live) return Action::proceed;
    EXPECT_EQ(live->epoch, context.epoch + 1);
    EXPECT_EQ(live->step, context.step);
    EXPECT_GT(live->samples_per_s, 0);
    ++epochs;
    return Action::proceed;
  }
  fs::path folder;
  int epochs = 0;
};

TEST(LiveLog, IsNeverBehindTheTableOfTheEpochs) {
  const TempDir folder;
  const auto ends = std::make_shared<EndsOfEpochs>(folder.path());
  const auto data = datasets::make({.name = "generated_digits", .count = 100});
  Learner learner(models::make("mlp", {.sample_shape = {1, 28, 28}, .hidden = {8}}), data.splits,
                  {.device = "cpu", .batch = 20, .folder = folder.path(), .progress = false});
  (void)learner.fit(3, {.callbacks = {std::make_shared<LiveLog>(folder.path(), "only"), ends}});
  EXPECT_EQ(ends->epochs, 3);
}

TEST(LiveLog, ThatCannotBeWrittenEndsNoTraining) {
  const TempDir folder;
  const auto reader = std::make_shared<Reader>(folder.path());
  EXPECT_EQ(fit_with(folder, folder / "absent", reader).epochs.size(), 2U);
  EXPECT_TRUE(reader->seen.empty());
}

TEST(LiveLog, ADamagedFileIsNamed) {
  const TempDir folder;
  std::ofstream(folder / report::kLiveFile) << "{\"phase\": 3}";
  EXPECT_THROW((void)report::read_live(folder.path()), FormatError);
}

}  // namespace
}  // namespace tare::testing

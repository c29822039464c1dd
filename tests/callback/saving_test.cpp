// TimedSave, KeepCheckpoints and StopFile: what they save, remove and look for.
#include "tare/callback/saving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "callback/fake_learner.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/callback/stop_file.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TimedSave, SavesInTurnOnceTheTimeIsOver) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  TimedSave each({.minutes = 1e-12}), late({.minutes = 1e6});
  each.before_fit(c);
  late.before_fit(c);
  for (c.step = 1; c.step <= 3; ++c.step) {
    each.after_batch(c);
    each.after_batch(c);  // a batch without a step
    late.after_batch(c);
  }
  EXPECT_THAT(learner.saved, ElementsAre("autosave-1", "autosave-0", "autosave-1"));
  EXPECT_TRUE(each.facts().saves_steps);
}

TEST(TimedSave, ContinuesWithTheOtherNameAndSurvivesAFullDisk) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  TimedSave first({.minutes = 1e-12}), second({.minutes = 1e-12});
  first.before_fit(c);
  c.step = 1;
  first.after_batch(c);
  second.load_state(first.state());
  second.before_fit(c);
  c.step = 2;
  learner.full = true;
  EXPECT_EQ(second.after_batch(c), Action::proceed);
  learner.full = false;
  c.step = 3;
  second.after_batch(c);
  EXPECT_THAT(learner.saved, ElementsAre("autosave-1", "autosave-0"));
  EXPECT_THROW(TimedSave({.minutes = 0}), ConfigError);
}

/// Saves empty folders.
class FolderLearner final : public LearnerView {
 public:
  explicit FolderLearner(std::filesystem::path place) : place_(std::move(place)) {}
  Model& model() override { return none_.model(); }
  Optimizer& optimizer() override { return none_.optimizer(); }
  [[nodiscard]] c10::Device device() const override { return c10::kCPU; }
  [[nodiscard]] const std::filesystem::path& folder() const override { return place_; }
  void save(const std::string& name) override {
    std::filesystem::create_directories(place_ / name);
  }
  void restore_weights(const std::string&) override {}

 private:
  FakeLearner none_;
  std::filesystem::path place_;
};

std::vector<std::string> entries_of(const TempDir& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(KeepCheckpoints, KeepsTheLastOfItsOwnAlsoAfterAResume) {
  const TempDir folder;
  FolderLearner learner(folder.path());
  FitContext c{.learner = learner};
  std::filesystem::create_directories(folder / "epoch-100");  // somebody else's
  KeepCheckpoints first({.last = 2}), second({.last = 2});
  for (c.row.epoch = 1; c.row.epoch <= 3; ++c.row.epoch) first.after_epoch(c);
  EXPECT_THAT(entries_of(folder), ElementsAre("epoch-100", "epoch-2", "epoch-3"));
  second.load_state(first.state());
  second.after_epoch(c);
  EXPECT_THAT(entries_of(folder), ElementsAre("epoch-100", "epoch-3", "epoch-4"));
}

TEST(KeepCheckpoints, KeepsTheBestBesideTheLastAlsoAfterAResume) {
  const TempDir folder;
  FolderLearner learner(folder.path());
  FitContext c{.learner = learner};
  const KeepCheckpointsOptions options{.last = 1, .best = 2};
  KeepCheckpoints first(options), second(options);
  const auto epoch = [&](KeepCheckpoints& keep, double loss) {
    ++c.row.epoch;
    c.row.valid_loss = loss;
    keep.after_epoch(c);
  };
  for (const double loss : {0.5, 0.2, 0.4, 0.2, std::numeric_limits<double>::quiet_NaN()})
    epoch(first, loss);
  EXPECT_THAT(entries_of(folder), ElementsAre("epoch-2", "epoch-4", "epoch-5"));
  second.load_state(first.state());
  epoch(second, 0.1);
  EXPECT_THAT(entries_of(folder), ElementsAre("epoch-2", "epoch-6"));
  epoch(second, 0.9);
  EXPECT_THAT(entries_of(folder), ElementsAre("epoch-2", "epoch-6", "epoch-7"));
  // The state of an earlier version has no values: its checkpoints are none of the best.
  second.load_state(R"({"epochs":[2,6,7]})");
  epoch(second, 0.5);
  EXPECT_THAT(entries_of(folder), ElementsAre("epoch-8"));
}

TEST(KeepCheckpoints, HigherIsBetterWhereTheColumnSaysSo) {
  const TempDir folder;
  FolderLearner learner(folder.path());
  FitContext c{.learner = learner};
  KeepCheckpoints keep({.last = 0, .best = 1, .monitor = "accuracy"});
  EXPECT_THAT(keep.facts().watched, ElementsAre("accuracy"));
  for (const double accuracy : {0.5, 0.9, 0.7}) {
    ++c.row.epoch;
    c.row.metrics = {{.name = "accuracy", .value = accuracy}};
    keep.after_epoch(c);
  }
  EXPECT_THAT(entries_of(folder), ElementsAre("epoch-2"));
}

TEST(KeepCheckpoints, KeepsTheOlderOnesWhereASaveFails) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  KeepCheckpoints keep({.last = 1, .name = "e"});
  c.row.epoch = 1;
  keep.after_epoch(c);
  learner.full = true;
  c.row.epoch = 2;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(keep.after_epoch(c), Action::proceed);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("no checkpoint of epoch 2 was written"));
  EXPECT_EQ(keep.state(), R"({"epochs":[1],"values":[null]})");
  EXPECT_THAT(learner.saved, ElementsAre("e-1"));
}

TEST(KeepCheckpoints, RefusesWhatIsNoOption) {
  EXPECT_THROW(KeepCheckpoints({.last = 0}), ConfigError);
  EXPECT_THROW(KeepCheckpoints({.name = "a/b"}), ConfigError);
  EXPECT_THROW(KeepCheckpoints({.best = -1}), ConfigError);
  EXPECT_THROW(KeepCheckpoints({.monitor = "accuracy"}), ConfigError);  // decides nothing
  KeepCheckpoints keep;
  for (const char* state : {"", "{}", R"({"epochs":1})", R"({"epochs":[-1]})"})
    EXPECT_THROW(keep.load_state(state), FormatError) << state;
}

TEST(StopFile, EndsTheFitWhenTheFileIsThereAndLeavesIt) {
  const TempDir folder;
  FakeLearner learner;
  learner.place = folder.path();
  FitContext c{.learner = learner};
  StopFile stop, absolute({.file = folder / "elsewhere"});
  EXPECT_EQ(stop.after_batch(c), Action::proceed);
  std::ofstream(folder / "stop") << "";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(stop.after_batch(c), Action::stop_fit);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("stop' is there"));
  EXPECT_TRUE(std::filesystem::exists(folder / "stop"));
  EXPECT_EQ(absolute.after_batch(c), Action::proceed);
  std::ofstream(folder / "elsewhere") << "";
  EXPECT_EQ(absolute.after_batch(c), Action::stop_fit);
  EXPECT_THAT(stop.facts().files, ElementsAre("stop"));
  EXPECT_THAT(absolute.facts().files, IsEmpty());
  std::filesystem::create_directory(folder / "folder");
  StopFile of_folder({.file = "folder"});
  EXPECT_THROW(of_folder.before_fit(c), ConfigError);
}

}  // namespace
}  // namespace tare::testing

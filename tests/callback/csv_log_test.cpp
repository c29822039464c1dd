// The CSV files of epochs and steps, straight and resumed.
#include "tare/callback/csv_log.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <fstream>

#include "callback/fake_learner.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "tare/base/csv.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

void take_steps(StepsLog& log, FitContext& c, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    ++c.step;
    c.loss = at::full({}, 1.0 / static_cast<double>(c.step), at::kDouble);
    c.lr = 0.5;
    log.after_step(c);
  }
}

class StepsLogOf : public ::testing::Test {
 protected:
  StepsLogOf() { learner.place = folder.path(); }
  const TempDir folder;
  FakeLearner learner;
  FitContext c{.learner = learner};
  StepsLog log;
};

TEST_F(StepsLogOf, AShortFitHasEveryStep) {
  take_steps(log, c, 2);
  log.after_epoch(c);
  EXPECT_EQ(content_of(folder / "steps.csv"), "step,loss,lr\n1,1,0.5\n2,0.5,0.5\n");
  take_steps(log, c, 2);
  log.after_fit(c);
  EXPECT_EQ(content_of(folder / "steps.csv"),
            "step,loss,lr\n1,1,0.5\n2,0.5,0.5\n3,0.33333333333333331,0.5\n4,0.25,0.5\n");
}

TEST_F(StepsLogOf, ALongFitHasEvenlySpacedSteps) {
  take_steps(log, c, 4500);
  log.after_epoch(c);
  std::vector<int64_t> steps;
  read_csv(folder / "steps.csv", [&](const auto& fields, size_t line) {
    if (line > 1) steps.push_back(std::stoll(fields[0]));
  });
  ASSERT_EQ(steps.size(), 563U);  // one in eight of 4,500
  for (size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], static_cast<int64_t>(8 * i + 1));
}

TEST(StepsLog, GoesOnFromItsStateAsIfUndisturbed) {
  const TempDir first, second;
  FakeLearner learner;
  learner.place = first.path();
  FitContext c{.learner = learner};
  StepsLog whole, part;
  take_steps(whole, c, 1500);
  part.load_state(whole.state());
  take_steps(whole, c, 900);
  whole.after_epoch(c);
  learner.place = second.path();
  c.step = 1500;
  take_steps(part, c, 900);
  part.after_epoch(c);
  EXPECT_EQ(content_of(first / "steps.csv"), content_of(second / "steps.csv"));
}

EpochRow epoch_row(int64_t epoch) {
  return {.epoch = epoch,
          .train_loss = 0.5,
          .valid_loss = 0.25,
          .metrics = {{"top,5", 0.75}},
          .seconds = 2};
}

// A full disk must not end a fit; what is missing is in the next write.
TEST(CsvLog, WarnsWhereItCannotWriteAndCatchesUp) {
  const TempDir folder;
  FakeLearner learner;
  FitContext c{.learner = learner};
  CsvLog log;
  learner.place = "/proc/self/stat";
  c.row = epoch_row(0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(log.after_epoch(c), Action::proceed);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the CSV log is not up to date: "),
            std::string::npos);
  learner.place = folder.path();
  c.row = epoch_row(1);
  log.after_epoch(c);
  EXPECT_EQ(content_of(folder / "history.csv"),
            "epoch,train_loss,valid_loss,\"top,5\",seconds\n"
            "0,0.5,0.25,0.75,2\n1,0.5,0.25,0.75,2\n");
}

TEST(CsvLog, AddsARowAtTheEndUnlessTheFileHasAnotherSize) {
  const TempDir folder;
  FakeLearner learner;
  learner.place = folder.path();
  FitContext c{.learner = learner};
  CsvLog log;
  const auto epoch = [&](int64_t number) {
    c.row = epoch_row(number);
    log.after_epoch(c);
    return content_of(folder / "history.csv");
  };
  const std::string head = "epoch,train_loss,valid_loss,\"top,5\",seconds\n",
                    first = "0,0.5,0.25,0.75,2\n", second = "1,0.5,0.25,0.75,2\n",
                    third = "2,0.5,0.25,0.75,2\n";
  (void)epoch(0);
  const std::string marked = head + "X,0.5,0.25,0.75,2\n";
  std::ofstream(folder / "history.csv") << marked;
  EXPECT_EQ(epoch(1), marked + second) << "the rows before are not written again";
  std::ofstream(folder / "history.csv") << "short";
  EXPECT_EQ(epoch(2), head + first + second + third);
  std::filesystem::remove(folder / "history.csv");
  EXPECT_EQ(epoch(1), head + first + second + third + second);
}

TEST(CsvLog, HasTheColumnsOfAllEpochs) {
  const TempDir folder;
  FakeLearner learner;
  learner.place = folder.path();
  FitContext c{.learner = learner};
  CsvLog first, second;
  c.row = epoch_row(0);
  c.row.metrics.clear();  // of a phase without a validation
  first.after_epoch(c);
  second.load_state(first.state());
  c.row = epoch_row(1);
  second.after_epoch(c);
  c.row.metrics = {{"mae", 3}};
  second.after_epoch(c);
  EXPECT_EQ(content_of(folder / "history.csv"),
            "epoch,train_loss,valid_loss,\"top,5\",mae,seconds\n"
            "0,0.5,0.25,nan,nan,2\n1,0.5,0.25,0.75,nan,2\n1,0.5,0.25,nan,3,2\n");
}

TEST(CsvLog, MakesItsFolderOnceAndLeavesADeletedOneDeleted) {
  const TempDir folder;
  FakeLearner learner;
  FitContext c{.learner = learner};
  CsvLog log("logs/epochs.csv");
  learner.place = folder / "run";
  log.before_fit(c);
  log.after_epoch(c);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/logs/epochs.csv"));
  std::filesystem::remove_all(folder / "run");
  ::testing::internal::CaptureStderr();
  log.after_epoch(c);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the CSV log is not up to date: "),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(CsvLog, RefusesAnotherState) {
  CsvLog log;
  for (const char* state : {"", "[]", R"({"header":"a"})", R"({"header":"a","rows":1})"})
    EXPECT_THROW(log.load_state(state), FormatError) << state;
}

TEST(StepsLog, RefusesAnotherState) {
  StepsLog log;
  for (const char* state :
       {"", "{}", R"({"seen":1,"stride":0,"rows":[]})", R"({"seen":1,"stride":1,"rows":[[1,2]]})",
        R"({"seen":-1,"stride":1,"rows":[]})", R"({"seen":1,"stride":1,"rows":[["1",2,3]]})"})
    EXPECT_THROW(log.load_state(state), FormatError) << state;
}

}  // namespace
}  // namespace tare::testing

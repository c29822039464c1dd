// A run that an error ends: its folder says why, until the run is continued.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/recipe/run.h"
#include "tare/report/run_failure.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

int failures_left = 0;

struct FailingOptions {
  int64_t step = 3;
};
void visit_fields(auto& visit, FailingOptions& o) { visit("step", o.step, config::at_least(1)); }

/// Throws once behind a step of the second phase.
class Failing final : public Callback {
 public:
  explicit Failing(const FailingOptions& options) : step_(options.step) {}
  [[nodiscard]] std::string name() const override { return "failing"; }
  Action after_batch(FitContext& context) override {
    if (context.step < step_ || failures_left == 0) return Action::proceed;
    --failures_left;
    throw std::runtime_error("the lamp\nwent out");
  }

 private:
  int64_t step_;
};

class FailedRun : public ::testing::Test {
 protected:
  FailedRun() {
    static const bool added = [] {
      callbacks::registry().add<FailingOptions>(
          "failing", "throw at a step",
          [](const FailingOptions& o) { return std::make_shared<Failing>(o); });
      return true;
    }();
    EXPECT_TRUE(added);
    failures_left = 1;
  }
  [[nodiscard]] RecipeOptions recipe(const std::string& phases) const {
    std::ofstream(folder_ / "r.yaml")
        << "name: tiny\nfolder: " << folder_.path().string()
        << "\nbatch: 32\nworkers: 0\ndevice: cpu\nsave_every: 1\n"
           "data: {name: generated_digits, count: 200, size: 12}\nmodel: {name: mlp, hidden: [8]}\n"
        << phases;
    return read_recipe(folder_ / "r.yaml");
  }
  [[nodiscard]] RecipeOptions failing() const {
    return recipe(
        "phases:\n  - {name: head, epochs: 1}\n"
        "  - {name: all, epochs: 3, callbacks: [{failing: {step: 7}}]}\n");
  }
  [[nodiscard]] std::optional<report::RunFailure> failure() const {
    return report::read_failure(folder_ / "tiny");
  }
  TempDir folder_;
};

TEST_F(FailedRun, SaysWhyAndWhereUntilItIsContinued) {
  EXPECT_THROW((void)run_recipe(failing()), std::runtime_error);
  const auto failed = failure();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason, "the lamp\\nwent out");
  EXPECT_EQ(failed->phase, "all");
  EXPECT_EQ(failed->epoch, 2);
  EXPECT_EQ(failed->steps, 7);
  EXPECT_GT(failed->time_s, 1e9);
  EXPECT_FALSE(fs::exists(folder_ / "tiny/report.json"));
  const RunReport report = run_recipe(failing(), {.resume = Resume::always});
  EXPECT_EQ(report.folder, folder_ / "tiny");
  EXPECT_EQ(report.resumes, 1);
  EXPECT_EQ(report.reason, StopReason::finished);
  EXPECT_FALSE(failure());
}

TEST_F(FailedRun, OfALossThatIsNotANumberNamesTheLoss) {
  const RecipeOptions diverges = recipe("phases: [{epochs: 2, lr: 1.0e+30}]\n");
  EXPECT_THROW((void)run_recipe(diverges), DivergedError);
  const auto failed = failure();
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->reason, AllOf(HasSubstr("[phase 1]"), HasSubstr("lower the learning rate")));
  EXPECT_THAT(report::place_text(*failed), HasSubstr("in phase 1, epoch 1, after "));
  EXPECT_THROW((void)run_recipe(diverges, {.dry_run = true}), DivergedError);
  EXPECT_FALSE(fs::exists(folder_ / "tiny-2")) << "a dry run leaves nothing";
}

TEST_F(FailedRun, StartedAnewHasNoFailure) {
  EXPECT_THROW((void)run_recipe(failing()), std::runtime_error);
  ASSERT_TRUE(failure());
  EXPECT_EQ(run_recipe(failing(), {.overwrite = true}).reason, StopReason::finished);
  EXPECT_FALSE(failure());
}

TEST_F(FailedRun, IsNotWhatAnInterruptLeaves) {
  failures_left = 0;
  request_interrupt();
  EXPECT_EQ(run_recipe(failing()).reason, StopReason::interrupted);
  EXPECT_FALSE(failure());
}

TEST_F(FailedRun, WhoseReasonCannotBeWrittenGivesTheFirstError) {
  fs::create_directories(folder_ / "tiny/failure.json.partial/x");
  ::testing::internal::CaptureStderr();
  EXPECT_THROW((void)run_recipe(failing()), std::runtime_error);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("why the run failed is not in its folder: "));
  EXPECT_FALSE(failure());
}

TEST_F(FailedRun, HasAFileThatIsReadAsItIs) {
  fs::create_directories(folder_ / "tiny");
  std::ofstream(folder_ / "tiny/failure.json")
      << R"({"reason":"a\u001b[2Jb","phase":"phase 12","epoch":0,"steps":0,"time_s":null})";
  const auto failed = failure();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason, "a\\x1b[2Jb");
  EXPECT_EQ(report::place_text(*failed), "in phase 12");
  EXPECT_EQ(report::place_text({.phase = "phases", .epoch = 1, .steps = 1, .time_s = NAN}),
            "in phase phases, epoch 1, after 1 step");
  EXPECT_EQ(report::place_text({.time_s = NAN}), "outside of a phase");
  std::ofstream(folder_ / "tiny/failure.json") << "{";
  EXPECT_THROW((void)failure(), FormatError);
}

}  // namespace
}  // namespace tare::testing

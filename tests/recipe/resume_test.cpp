// A run that ends anywhere and is continued equals the undisturbed one.
#include <gmock/gmock.h>

#include "recipe/tiny.h"
#include "support/damage.h"
#include "support/files.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/parts.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/recipe/resume.h"
#include "tare/train/interrupt.h"
#include "tare/train/train_state.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

RecipeOptions resumable(const TempDir& folder) {
  RecipeOptions recipe = tiny(folder);
  recipe.save_every = 2;
  recipe.learner.micro_batch = recipe.batch;  // what does not fit is a crash
  recipe.data.transforms = {Normalise{{0.1}, {0.3}}, Shift{1}};
  recipe.model.options.dropout = 0.2;
  return recipe;
}

void expect_equal(const fs::path& run, const fs::path& straight) {
  EXPECT_TRUE(content_of(run / "tiny.tare") == content_of(straight / "tiny.tare"))
      << "weights, metrics";
  for (const char* phase : {"first.csv", "head.csv", "all.csv"})
    EXPECT_EQ(rows_without_time(run / phase), rows_without_time(straight / phase)) << phase;
  EXPECT_FALSE(fs::exists(run / "autosave-0") || fs::exists(run / "autosave-1"));
}

class ResumedRun : public ::testing::Test {
 protected:
  // Runs until the k-th allocation fails, for several k, continuing each time. Returns the
  // failures.
  static int64_t run_with_crashes(const RecipeOptions& recipe, const std::vector<uint64_t>& at) {
    int64_t crashes = 0;
    for (const uint64_t k : at) {
      memory::host_allocator::fail_at(k);
      try {
        (void)run_recipe(recipe, {.resume = Resume::automatic});
      } catch (const OutOfMemory&) {
        ++crashes;
      }
      memory::host_allocator::fail_at(0);
    }
    return crashes;
  }

  // Ends a run at allocation `first`, or soon after it where that one is of a save, which survives
  // it: processors differ in their allocations.
  static bool crashed(const RecipeOptions& recipe, uint64_t first) {
    for (uint64_t k = first; k < first + 50; ++k) {
      memory::host_allocator::fail_at(k);
      try {
        (void)run_recipe(recipe, {.overwrite = true});
      } catch (const OutOfMemory&) {
        memory::host_allocator::fail_at(0);
        return true;
      }
      memory::host_allocator::fail_at(0);
    }
    return false;
  }

  TempDir straight_folder_, folder_;
};

TEST_F(ResumedRun, RemovesWhatKilledSavesHaveLeftAndNothingElse) {
  const RecipeOptions recipe = resumable(folder_);
  ASSERT_TRUE(crashed(recipe, 1000));
  const fs::path run = folder_ / "tiny";
  for (const char* name : {"first.partial", "autosave-1.partial", "mine.partial"})
    fs::create_directory(run / name);
  std::ofstream(run / "first.partial/model.safetensors") << "half";
  std::ofstream(run / "autosave-1.partial/extra.safetensors") << "the last one to be removed";
  std::ofstream(run / "mine.partial/notes.txt") << "mine";
  (void)run_recipe(recipe, {.resume = Resume::always});
  EXPECT_FALSE(fs::exists(run / "first.partial") || fs::exists(run / "autosave-1.partial"));
  EXPECT_TRUE(fs::exists(run / "mine.partial/notes.txt"));
}

TEST_F(ResumedRun, EqualsTheUndisturbedOneAfterCrashesAnywhere) {
  (void)run_recipe(resumable(straight_folder_));
  const RecipeOptions recipe = resumable(folder_);
  EXPECT_GE(run_with_crashes(recipe, {600, 700, 1000, 300, 900, 1200}), 5);
  const RunReport report = run_recipe(recipe, {.resume = Resume::always});
  EXPECT_FALSE(report.resumed_from.empty());
  EXPECT_GE(report.resumes, 1);
  EXPECT_EQ(report.phases.size(), 3U);
  EXPECT_EQ(report.residual_bytes, 0);
  expect_equal(folder_ / "tiny", straight_folder_ / "tiny");
}

TEST_F(ResumedRun, GoesOnBehindAnInterruptWithOtherThreads) {
  (void)run_recipe(resumable(straight_folder_));
  RecipeOptions recipe = resumable(folder_);
  recipe.save_every = 0;
  RunReport report;
  int64_t stops = 0;
  do {
    if (stops < 4) request_interrupt();
    recipe.learner.workers = stops % 2 == 0 ? 4 : 0;
    report = run_recipe(recipe, {.resume = Resume::automatic});
    stops += report.reason == StopReason::interrupted;
    ASSERT_LE(stops, 4);
  } while (report.reason == StopReason::interrupted);
  EXPECT_EQ(stops, 4);
  expect_equal(folder_ / "tiny", straight_folder_ / "tiny");
  double of_phases = 0;
  for (const PhaseReport& phase : report.phases) {
    double of_epochs = 0;
    for (const EpochRow& row : phase.epochs) of_epochs += row.seconds;
    EXPECT_GE(phase.seconds, of_epochs) << phase.name << ": the time of all processes";
    of_phases += phase.seconds;
  }
  EXPECT_GE(report.seconds, of_phases);
  EXPECT_EQ(report.resumes, 4);
  EXPECT_THAT(to_json(report), HasSubstr("\"resumes\": 4"));
}

TEST_F(ResumedRun, TakesThePreviousCheckpointWhereTheNewestIsDamaged) {
  (void)run_recipe(resumable(straight_folder_));
  const RecipeOptions recipe = resumable(folder_);
  ASSERT_TRUE(crashed(recipe, 2000));
  ASSERT_TRUE(fs::exists(folder_ / "tiny/autosave-0") && fs::exists(folder_ / "tiny/autosave-1"));
  const auto newest = newest_checkpoint(folder_ / "tiny", {"autosave-0", "autosave-1"});
  ASSERT_TRUE(newest);
  const fs::path weights = folder_ / "tiny" / newest->name / "model.safetensors";
  std::string content = content_of(weights);
  content[content.size() - 9] ^= 8;
  overwrite(weights, content);
  ::testing::internal::CaptureStderr();
  const RunReport report = run_recipe(recipe, {.resume = Resume::always});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(report.resumed_from, newest->name);
  EXPECT_FALSE(report.resumed_from.empty());
  EXPECT_THAT(log, HasSubstr("model.safetensors"));
  expect_equal(folder_ / "tiny", straight_folder_ / "tiny");
}

TEST_F(ResumedRun, SaysWhatToDoWhereEveryCheckpointIsDamaged) {
  const RecipeOptions recipe = resumable(folder_);
  ASSERT_TRUE(crashed(recipe, 2000));
  for (const char* name : {"autosave-0", "autosave-1"}) {
    const fs::path weights = folder_ / "tiny" / name / "model.safetensors";
    std::string content = content_of(weights);
    content[content.size() - 9] ^= 8;
    overwrite(weights, content);
  }
  try {
    (void)run_recipe(recipe, {.resume = Resume::automatic});
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("start it anew with --overwrite"));
  }
  EXPECT_TRUE(run_recipe(recipe, {.overwrite = true}).resumed_from.empty());
}

TEST_F(ResumedRun, SetsAnUnfinishedOneAsideWhenOverwritten) {
  const RecipeOptions recipe = resumable(folder_);
  ASSERT_EQ(run_with_crashes(recipe, {900}), 1);
  const RunReport report = run_recipe(recipe, {.overwrite = true});
  EXPECT_TRUE(report.resumed_from.empty());
  EXPECT_TRUE(fs::exists(folder_ / "tiny/before-autosave-1/manifest.json"));
}

TEST_F(ResumedRun, RefusesAnotherRecipeAndAnEmptyFolder) {
  RecipeOptions recipe = resumable(folder_);
  EXPECT_THROW((void)run_recipe(recipe, {.resume = Resume::always}), ConfigError);
  ASSERT_EQ(run_with_crashes(recipe, {900}), 1);
  recipe.phases[1].epochs = 7;
  try {
    (void)run_recipe(recipe, {.resume = Resume::automatic});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("phases.1.epochs is 1 there, 7 here; give the old value, "
                                        "begin a new run with its weights by model.weights=" +
                                        (folder_ / "tiny/autosave-").string()));
  }
}

TEST_F(ResumedRun, GoesOnWhereItsVersionDidNotKnowAKey) {
  RecipeOptions recipe = resumable(folder_);
  const std::string now = essence_of(recipe);
  const std::string before = replaced(now, "group_by_length: false\n", "");
  ASSERT_NE(before, now);
  EXPECT_EQ(difference_of_essences(before, now), "");
  recipe.learner.group_by_length = true;
  EXPECT_THAT(difference_of_essences(before, essence_of(recipe)),
              HasSubstr("group_by_length is false there, true here"));
  recipe.learner.group_by_length = false;
  recipe.data.file = "elsewhere.csv";
  EXPECT_EQ(difference_of_essences(before, essence_of(recipe)), "") << "the data may have moved";
}

TEST_F(ResumedRun, WritesTheBundleThatCouldNotBeWritten) {
  (void)run_recipe(resumable(straight_folder_));
  const RecipeOptions recipe = resumable(folder_);
  const fs::path run = folder_ / "tiny", obstacle = run / "tiny.tare.partial";
  fs::create_directories(obstacle / "x");
  EXPECT_THROW((void)run_recipe(recipe), IoError);
  EXPECT_THAT(io::read_text(run / "report.json"), HasSubstr("\"reason\": \"interrupted\""));
  const RunFigures figures = run_from_json(io::read_text(run / "report.json"), "report.json");
  EXPECT_GT(figures.seconds, 0);
  EXPECT_GT(figures.process_bytes, 0);
  fs::remove_all(obstacle);
  EXPECT_EQ(run_recipe(recipe, {.resume = Resume::automatic}).reason, StopReason::finished);
  expect_equal(run, straight_folder_ / "tiny");
}

TEST_F(ResumedRun, BeginsAgainInItsFolderWhereNoCheckpointCouldBeWritten) {
  RecipeOptions recipe = resumable(folder_);
  request_interrupt();
  ASSERT_EQ(run_recipe(recipe).reason, StopReason::interrupted);
  for (const char* name : {"autosave-0", "autosave-1"}) fs::remove_all(folder_ / "tiny" / name);
  const RunReport report = run_recipe(recipe, {.resume = Resume::automatic});
  EXPECT_EQ(report.folder, folder_ / "tiny");
  EXPECT_EQ(report.reason, StopReason::finished);
  EXPECT_EQ(run_recipe(recipe, {.resume = Resume::automatic}).folder, folder_ / "tiny-2");
}

TEST_F(ResumedRun, EvaluatesInTheMicroBatchesOfTheLastPhase) {
  const auto recipe_in = [](const TempDir& folder) {
    RecipeOptions recipe = resumable(folder);
    recipe.learner.micro_batch.reset();
    recipe.phases[0].micro_batch = MicroBatch{3};
    recipe.data.train = 0.6;
    recipe.data.valid = recipe.data.test = 0.2;
    return recipe;
  };
  const RunReport straight = run_recipe(recipe_in(straight_folder_));
  const RecipeOptions recipe = recipe_in(folder_);
  const fs::path obstacle = folder_ / "tiny/tiny.tare.partial";
  fs::create_directories(obstacle / "x");
  EXPECT_THROW((void)run_recipe(recipe), IoError);
  fs::remove_all(obstacle);
  const RunReport resumed = run_recipe(recipe, {.resume = Resume::always});
  ASSERT_TRUE(straight.test && resumed.test);
  EXPECT_EQ(resumed.test->loss, straight.test->loss);
}

TEST_F(ResumedRun, ReportsMicroBatchesOfBeforeTheInterrupt) {
  RecipeOptions recipe = resumable(folder_);
  recipe.phases.resize(1);
  recipe.batch = 96;
  recipe.learner.micro_batch = 64;  // the short batch behind the first is whole
  request_interrupt();
  ASSERT_EQ(run_recipe(recipe).reason, StopReason::interrupted);
  const RunReport report = run_recipe(recipe, {.resume = Resume::automatic});
  EXPECT_EQ(report.resumes, 1);
  EXPECT_EQ(report.phases.at(0).micro_batch, 48);
}

}  // namespace
}  // namespace tare::testing

// A run reads each of its data sets once while it needs it, and counts it as if every phase had
// read its own.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include "recipe/own_data.h"
#include "recipe/tiny.h"
#include "tare/base/file_system.h"
#include "tare/memory/backend.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/recipe_data.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;

int64_t tracked_bytes() { return memory::backend(c10::kCPU).usage().allocated_bytes; }

/// Counts how often files whose name has a given end are opened for reading.
class CountsOpens : public io::FileSystem {
 public:
  explicit CountsOpens(std::string end)
      : end_(std::move(end)), before_(io::set_file_system(this)) {}
  ~CountsOpens() override { io::set_file_system(before_); }
  CountsOpens(const CountsOpens&) = delete;
  CountsOpens& operator=(const CountsOpens&) = delete;
  [[nodiscard]] int64_t opens() const { return opens_; }

  int open(const char* path, io::Mode mode) override {
    if (mode == io::Mode::read && std::string_view(path).ends_with(end_)) ++opens_;
    return FileSystem::open(path, mode);
  }

 private:
  std::string end_;
  io::FileSystem* before_;
  int64_t opens_ = 0;
};

class ReadOnce : public ::testing::Test {
 protected:
  ReadOnce() { at::set_num_threads(1); }

  /// Three phases on the digits of two IDX files.
  [[nodiscard]] RecipeOptions recipe() const {
    RecipeOptions r;
    r.name = "once";
    r.folder = folder_.path();
    r.learner.device = "cpu";
    r.learner.workers = 0;
    r.batch = 16;
    r.data = data_.options("idx");
    r.model.name = "convnet";
    r.model.options.width = 4;
    r.phases = {{.name = "one", .lr = 1e-2},
                {.name = "two", .reset_head = true, .freeze_to = -1, .lr = 1e-2},
                {.name = "three", .lr = 1e-2}};
    r.export_to = "once.tare";
    return r;
  }

  /// How often the run reads the images.
  static int64_t reads(const RecipeOptions& recipe, const RunOptions& options = {.plan = true}) {
    const CountsOpens files("images-idx3-ubyte.gz");
    (void)run_recipe(recipe, options);
    return files.opens();
  }

  OwnData data_;
  TempDir folder_;
};

TEST_F(ReadOnce, IsTheDataOfTheWholeRecipe) {
  EXPECT_EQ(reads(recipe()), 1) << "plan, model, three phases, test and export";
  EXPECT_EQ(reads(recipe(), {}), 1) << "without a plan";
  EXPECT_EQ(reads(recipe(), {.dry_run = true, .plan = true}), 1);
}

TEST_F(ReadOnce, IsTheDataOfAPlan) {
  const CountsOpens files("images-idx3-ubyte.gz");
  (void)plan_recipe(recipe(), {.advice = false});
  EXPECT_EQ(files.opens(), 1);
}

TEST_F(ReadOnce, IsTheDataOfAResumedRun) {
  request_interrupt();
  ASSERT_EQ(run_recipe(recipe()).reason, StopReason::interrupted);
  EXPECT_EQ(reads(recipe(), {.resume = Resume::always, .plan = true}), 1);
}

// One is open at a time: the second data set is read for the checks, the plan begins with it, and
// the run ends on it.
TEST_F(ReadOnce, OfTwoDataSetsEachIsReadTwice) {
  RecipeOptions r = recipe();
  r.phases[2].data = r.data;
  r.phases[2].data->count = 40;
  EXPECT_EQ(reads(r), 4);
  EXPECT_EQ(reads(r, {}), 4);
}

TEST_F(ReadOnce, CountsInThePeakOfEveryPhaseAsPlanned) {
  RecipeOptions r = recipe();
  r.phases[1].data = data_.options("image_folder");
  r.phases[1].data->size = 28;
  const RunReport report = run_recipe(r, {.plan = true});
  ASSERT_EQ(report.phases.size(), 3U);
  for (const PhaseReport& phase : report.phases) {
    ASSERT_TRUE(phase.planned_peak_bytes) << phase.name;
    EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes) << phase.name;
    EXPECT_EQ(phase.residual_bytes, 0) << phase.name;
    EXPECT_EQ(phase.reclaimed_bytes, phase.consumed_bytes) << phase.name;
  }
  EXPECT_EQ(report.phases[0].data_bytes, report.phases[2].data_bytes);
  EXPECT_NE(report.phases[0].data_bytes, report.phases[1].data_bytes);
  EXPECT_GE(report.phases[0].data_bytes, 70 * 28 * 28);
  EXPECT_GT(report.phases[0].peak_bytes, report.phases[0].data_bytes);
  EXPECT_EQ(report.residual_bytes, 0);
}

TEST_F(ReadOnce, LeavesNothingBehindTheRun) {
  (void)run_recipe(recipe());  // what libraries keep for the life of the process
  const int64_t before = tracked_bytes();
  (void)run_recipe(recipe(), {.plan = true});
  RecipeOptions r = recipe();
  r.test = false;
  r.export_to.reset();
  (void)run_recipe(r);
  r.learner.loss = "mse";  // which does not take these targets
  EXPECT_ANY_THROW((void)run_recipe(r));
  EXPECT_EQ(tracked_bytes(), before);
}

TEST_F(ReadOnce, OneDataSetIsOpenAtATime) {
  const int64_t before = tracked_bytes();
  RecipeData data;
  const int64_t first = data.open(data_.options("idx")).bytes;
  EXPECT_EQ(tracked_bytes() - before, first);
  EXPECT_EQ(data.bytes(), first);
  EXPECT_TRUE(data.is_open(data_.options("idx")));
  const int64_t second = data.open(data_.options("image_folder")).bytes;
  EXPECT_FALSE(data.is_open(data_.options("idx")));
  EXPECT_EQ(tracked_bytes() - before, second) << "the first one is freed";
  EXPECT_THROW((void)data.open({.name = "idx", .images = "absent", .labels = "absent"}), IoError);
  EXPECT_EQ(tracked_bytes(), before);
  EXPECT_EQ(data.bytes(), 0);
}

TEST_F(ReadOnce, FactsStayWhenTheDataAreClosed) {
  RecipeData data;
  const DataFacts facts = data.open(data_.options("idx")).facts;
  data.close();
  EXPECT_EQ(facts.training_samples, 56);  // of 70
  EXPECT_TRUE(facts.has_valid);
  EXPECT_EQ(facts.sample_shape, (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(facts.labels.classes, 10);
  ASSERT_TRUE(facts.bundle);
  EXPECT_EQ(facts.bundle->sample_shape, facts.sample_shape);
}

}  // namespace
}  // namespace tare::testing

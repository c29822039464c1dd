// Tests `drop_last` in a recipe, and that a single sample on which a batch norm cannot train is
// refused by plan and run alike.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <fstream>

#include "recipe/tiny.h"
#include "support/outcome.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/read_recipe.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// 33 training images, of which the deepest batch norm of the model sees one value per channel.
constexpr const char* kOneOver = R"(name: over
batch: 16
workers: 0
device: cpu
data: {name: generated_digits, count: 41, size: 8, train: 33, valid: 8}
model: {name: resnet9, width: 4}
phases:
  - {name: one, lr: 1.0e-2}
  - {name: two, lr: 1.0e-2}
)";

class Batches : public ::testing::Test {
 protected:
  Batches() {
    at::set_num_threads(1);
    std::ofstream(folder_ / "over.yaml") << kOneOver;
  }
  [[nodiscard]] RecipeOptions recipe(std::vector<std::string> settings = {}) const {
    settings.push_back("folder=" + (folder_ / "runs").string());
    return read_recipe(folder_ / "over.yaml", settings);
  }
  /// Returns the outcome of plan, run and dry run, which must agree.
  [[nodiscard]] std::string outcome(const RecipeOptions& recipe) const {
    const bool before = fs::exists(folder_ / "runs");
    const std::string plan = outcome_of([&] { (void)plan_recipe(recipe, {.advice = false}); });
    for (const bool dry_run : {true, false})
      for (const bool with_plan : {true, false})
        EXPECT_EQ(
            outcome_of([&] { (void)run_recipe(recipe, {.dry_run = dry_run, .plan = with_plan}); }),
            plan);
    if (plan != "accepted") {
      EXPECT_EQ(fs::exists(folder_ / "runs"), before) << "before any work";
    }
    return plan;
  }
  /// Samples in the first epoch.
  static int64_t trained(const RecipeOptions& recipe) {
    return run_recipe(recipe, {.overwrite = true}).phases.at(0).epochs.at(0).samples;
  }

  TempDir folder_;
};

TEST_F(Batches, ALastOneOfOneSampleIsSkippedByItself) {
  EXPECT_EQ(outcome(recipe()), "accepted");
  EXPECT_EQ(trained(recipe()), 32);
}

TEST_F(Batches, ALastOneOfOneSampleIsRefusedWhereItIsKept) {
  EXPECT_THAT(
      outcome(recipe({"drop_last=false"})),
      AllOf(StartsWith("ConfigError: [recipe.run] command line"),
            HasSubstr("the last batch of an epoch has 1 sample (33 in batches of 16): batch norm"),
            HasSubstr("leave drop_last unset, or take another batch")));
  std::ofstream(folder_ / "over.yaml", std::ios::app) << "drop_last: false\n";
  EXPECT_THAT(outcome(recipe()),
              HasSubstr("over.yaml:10:12: drop_last is refused: the last batch of an epoch"));
}

TEST_F(Batches, ALastOneIsDroppedOrKeptAsSaid) {
  const auto with = [&](const std::string& drop_last) {
    return recipe({"drop_last=" + drop_last, "data.train=30"});
  };
  EXPECT_EQ(outcome(with("true")), "accepted");
  EXPECT_EQ(trained(with("true")), 16);
  EXPECT_EQ(trained(with("false")), 30);
  EXPECT_EQ(trained(recipe({"data.train=30"})), 30);
  EXPECT_EQ(trained(recipe({"drop_last=true"})), 32);
}

TEST_F(Batches, AModelWithoutBatchNormTrainsOnOneSample) {
  EXPECT_EQ(outcome(recipe({"drop_last=false", "model={name: mlp}"})), "accepted");
  EXPECT_EQ(trained(recipe({"drop_last=false", "model={name: mlp}"})), 33);
}

TEST_F(Batches, OfOneSampleEachAreRefusedAtTheirPlace) {
  EXPECT_THAT(outcome(recipe({"phases.1.batch=1"})),
              HasSubstr("phases.1.batch is refused: batch 1 makes single samples"));
  EXPECT_THAT(outcome(recipe({"micro_batch=1"})), HasSubstr("micro_batch 1 makes single samples"));
}

TEST_F(Batches, ALaterPhaseWithSmallerImagesIsRefusedBeforeTheFirst) {
  EXPECT_THAT(outcome(recipe({"drop_last=false", "data.size=32", "phases.1.size=8"})),
              HasSubstr("the last batch of an epoch has 1 sample"));
  EXPECT_EQ(outcome(recipe({"drop_last=false", "data.size=32"})), "accepted");
}

TEST_F(Batches, ThePlanCountsTheBatchThatIsKept) {
  RecipeOptions r = recipe({"data.train=30", "drop_last=false"});
  for (const bool drop : {true, false}) {
    r.learner.drop_last = drop;
    const RunReport report = run_recipe(r, {.overwrite = true, .plan = true});
    for (const PhaseReport& phase : report.phases) {
      ASSERT_TRUE(phase.planned_peak_bytes);
      EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes) << phase.name << drop;
    }
  }
}

}  // namespace
}  // namespace tare::testing

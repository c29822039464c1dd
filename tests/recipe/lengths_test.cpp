// Recipes of texts of different length: batches of similar length, what a plan and a run say of
// them, and the recipe of texts of the tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "recipe/without_workers.h"
#include "support/files.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/inference/bundle.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/read_recipe.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LengthsOfARecipe : public ::testing::Test {
 protected:
  [[nodiscard]] RecipeOptions recipe(bool group) const {
    RecipeOptions r = without_workers(folder_);
    r.batch = 8;
    r.learner.group_by_length = group;
    r.data = {.name = "generated_texts", .count = 200};
    r.model = {.name = "lstm"};
    r.model.options.width = 8;
    r.phases = {{.name = "one", .epochs = 2, .lr = 1e-2}, {.name = "two", .batch = 24, .lr = 1e-2}};
    r.export_to = "texts.tare";
    return r;
  }
  [[nodiscard]] std::string refusal(const std::string& text) const {
    std::ofstream(folder_ / "r.yaml")
        << "name: r\nfolder: " << folder_.path().string() << "\ndevice: cpu\n"
        << text;
    return config_error_of([&] { (void)run_recipe(read_recipe(folder_ / "r.yaml")); });
  }
  TempDir folder_;
};

// The longest texts are in the first batch, so each phase reaches the peak that its plan has.
TEST_F(LengthsOfARecipe, PeakAsPlannedInGroups) {
  const RecipePlan plan = plan_recipe(recipe(true), {.advice = false});
  const RunReport report = run_recipe(recipe(true), {.plan = true});
  ASSERT_EQ(plan.phases.size(), report.phases.size());
  for (size_t i = 0; i < plan.phases.size(); ++i) {
    ASSERT_TRUE(plan.phases[i].known()) << plan.phases[i].reason;
    EXPECT_EQ(plan.phases[i].peak_bytes, report.phases[i].peak_bytes) << plan.phases[i].at;
  }
}

TEST_F(LengthsOfARecipe, AreInThePlanAndInTheOutputOfARun) {
  const RecipePlan apart = plan_recipe(recipe(false), {.advice = false}),
                   together = plan_recipe(recipe(true), {.advice = false});
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(apart.phases[i].padding && together.phases[i].padding);
    EXPECT_EQ(apart.phases[i].padding->longest, together.phases[i].padding->longest);
    EXPECT_LT(together.phases[i].padding->share, apart.phases[i].padding->share * 0.7);
    EXPECT_EQ(apart.phases[i].peak_bytes, together.phases[i].peak_bytes);
  }
  std::ostringstream text, out;
  print(text, together);
  const std::string line = together.phases[0].padding->str();
  EXPECT_THAT(text.str(),
              HasSubstr("planned for a batch as long as its longest sample: " + line + '\n'));
  EXPECT_THAT(line, HasSubstr(" % of the batches is padding"));
  EXPECT_THAT(to_json(together), AllOf(HasSubstr("\"padding\": {"), HasSubstr("\"longest\": ")));
  (void)run_recipe(recipe(true), {.out = &out});
  EXPECT_THAT(out.str(), HasSubstr(line));
  RecipeOptions digits = without_workers(folder_);
  EXPECT_THAT(to_json(plan_recipe(digits, {.advice = false})), Not(HasSubstr("padding")));
}

TEST_F(LengthsOfARecipe, ResumeInsideAnEpochToTheSameBundle) {
  RecipeOptions r = recipe(true);
  (void)run_recipe(r);
  r.name = "stopped";
  int64_t stops = 0;
  for (RunReport report; stops < 5; ++stops) {
    request_interrupt();  // after each step in flight
    r.learner.workers = stops % 2 == 0 ? 2 : 0;
    report = run_recipe(r, {.resume = Resume::automatic});
    ASSERT_EQ(report.reason, StopReason::interrupted);
  }
  EXPECT_EQ(run_recipe(r, {.resume = Resume::always}).reason, StopReason::finished);
  EXPECT_TRUE(content_of(folder_ / "tiny/texts.tare") ==
              content_of(folder_ / "stopped/texts.tare"));
}

TEST_F(LengthsOfARecipe, GroupOnlyWhatHasLengthsInAnOrderOfTheirOwn) {
  const std::string texts =
      "batch: 8\ngroup_by_length: true\nmodel: lstm\ndata: {name: generated_texts, count: 60}\n"
      "phases: [{epochs: 1}]\n";
  EXPECT_EQ(refusal(texts), "accepted");
  EXPECT_THAT(refusal(texts + "shuffle: false\n"),
              AllOf(HasSubstr("r.yaml:5:18: group_by_length chooses the order of the samples"),
                    HasSubstr("one of them")));
  EXPECT_THAT(refusal(texts + "overfit: 2\n"), HasSubstr("group_by_length contradicts overfit"));
  EXPECT_THAT(refusal("group_by_length: true\nmodel: mlp\nphases: [{epochs: 1}]\n"
                      "data: {name: generated_digits, count: 60, size: 8}\n"),
              AllOf(HasSubstr("r.yaml:4:18: group_by_length needs samples of different lengths"),
                    HasSubstr("text_folder")));
  EXPECT_EQ(refusal(texts + "limit: {train_batches: 2}\n"), "accepted");
  EXPECT_EQ(refusal(texts + "sampling: balanced\n"), "accepted");
}

TEST_F(LengthsOfARecipe, OfTheTreeTrainAsPlanned) {
  at::set_num_threads(1);
  const fs::path file =
      fs::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs/text/reviews.yaml";
  const RecipeOptions reviews =
      read_recipe(file, {"folder=" + folder_.path().string(), "device=cpu", "workers=0",
                         "data.count=300", "phases=[{name: only, duration: {steps: 2}}]"});
  const RecipePlan plan = plan_recipe(reviews, {.advice = false});
  const RunReport report = run_recipe(reviews);
  ASSERT_TRUE(plan.phases.at(0).known()) << plan.phases[0].reason;
  EXPECT_EQ(plan.phases[0].peak_bytes, report.phases.at(0).peak_bytes);
  ASSERT_TRUE(report.exported);
  const Bundle bundle = open_bundle(report.exported->path);
  EXPECT_EQ(bundle.manifest().labels, (std::vector<std::string>{"bad", "good", "mixed"}));
  ASSERT_TRUE(report.classification);
  EXPECT_EQ(report.classification->worst.size(), 12U);
}

}  // namespace
}  // namespace tare::testing

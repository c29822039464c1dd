// Compares the model of many devices with the plans of the trainings that exist.
#include "tare/plan/scale_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "recipe/without_workers.h"
#include "tare/base/io.h"
#include "tare/config/node.h"
#include "tare/recipe/plan.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RecipeOptions one_phase(const TempDir& folder, const std::string& model, const std::string& kind) {
  RecipeOptions recipe = without_workers(folder);
  recipe.model.name = model;
  if (model == "mlp") recipe.model.options.width = 0;
  recipe.learner.optimizer.kind = kind;
  recipe.phases.resize(1);
  recipe.export_to.reset();
  return recipe;
}

RecipePlan planned(const RecipeOptions& recipe, int64_t ranks,
                   const std::string& device = "host:1GiB") {
  return plan_recipe(recipe, {.device = device,
                              .advice = false,
                              .ranks = ranks,
                              .scale = plan::ScaleOptions{.rate = 1e9}});
}

int64_t bytes_of(const MemoryPlan& phase) { return phase.start_bytes + phase.peak_bytes; }

TEST(ScalePlan, BytesAreThoseOfThePlansOfWhatExists) {
  const TempDir folder;
  for (const char* device : {"host:1GiB", "cuda:1GiB"})
    for (const auto& [model, kind] : {std::pair("mlp", "adamw"), std::pair("resnet9", "sgd")})
      for (const int64_t ranks : {2, 3, 8}) {
        RecipeOptions recipe = one_phase(folder, model, kind);
        const RecipePlan whole = planned(recipe, ranks, device);
        ASSERT_EQ(whole.scales.size(), 1);
        ASSERT_GE(whole.scales[0].rows.size(), 4) << whole.scales[0].reason;
        EXPECT_EQ(whole.scales[0].rows[0].bytes, bytes_of(whole.phases[0]));
        size_t row = 0;
        for (const char* shard : {"optimizer", "gradients", "parameters"}) {
          recipe.learner.data_parallel.shard = shard;
          const RecipePlan sharded = planned(recipe, ranks, device);
          const plan::ScaleRow& own = whole.scales[0].rows[++row];
          EXPECT_TRUE(own.is_planned);
          EXPECT_EQ(own.bytes, bytes_of(sharded.phases[0]))
              << model << ", " << shard << " on " << ranks << " of " << device;
          EXPECT_EQ(sharded.scales[0].rows[0].bytes, bytes_of(whole.phases[0]))
              << "whichever the recipe has";
        }
      }
}

TEST(ScalePlan, CountsTheOperationsOfASample) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder, "mlp", "sgd");
  recipe.model.options.hidden = {50, 40};
  recipe.data.size = 16;
  constexpr int64_t kFirst = 256 * 50, kOthers = 50 * 40 + 40 * 10;
  for (const char* device : {"host:1GiB", "cuda:1GiB"}) {
    const RecipePlan plan = planned(recipe, 4, device);
    // Two for each weight in the forward and for its gradient, and for the gradients of the inputs.
    EXPECT_EQ(plan.scales[0].sample_flops, 4 * kFirst + 6 * kOthers) << device;
    EXPECT_DOUBLE_EQ(plan.scales[0].sample_s.value(), (4 * kFirst + 6 * kOthers) / 1e9);
    EXPECT_EQ(plan.scales[0].own, 8);
  }
}

TEST(ScalePlan, OfAModelWithBlocksHasAPipeline) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder, "resnet18", "sgd");
  const RecipePlan plan = planned(recipe, 4);
  ASSERT_EQ(plan.scales[0].rows.size(), 5) << plan.scales[0].reason;
  EXPECT_EQ(plan.scales[0].rows[4].strategy, plan::Strategy::pipeline);
  EXPECT_GT(plan.scales[0].rows[4].exchange_s, 0);
  EXPECT_FALSE(plan.scales[0].rows[4].is_planned);
}

TEST(ScalePlan, FindsWhatFitsWhereDataParallelDoesNot) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder, "resnet18", "adamw");
  recipe.model.options.width = 64;  // 11 million weights of 45 MB
  const RecipePlan plan = planned(recipe, 8, "cuda:160MiB");
  EXPECT_FALSE(plan.runs());
  const auto& rows = plan.scales[0].rows;
  ASSERT_EQ(rows.size(), 5) << plan.scales[0].reason;
  EXPECT_FALSE(rows[0].fits) << rows[0].bytes;
  EXPECT_TRUE(rows[3].fits) << rows[3].bytes;
  // Not even the weights fit here, of which the plan of a phase says nothing more.
  const RecipePlan tight = planned(recipe, 8, "cuda:20MiB");
  ASSERT_EQ(tight.scales[0].rows.size(), 5) << tight.scales[0].reason;
  EXPECT_EQ(tight.scales[0].rows[0].bytes, rows[0].bytes);
}

TEST(ScalePlan, SaysWhichStrategiesTheRecipeRulesOut) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder, "mlp", "adamw");
  from_node(config::parse_text("gradient_norm", "test"), recipe.callbacks.emplace_back());
  const RecipePlan plan = planned(recipe, 4);
  ASSERT_EQ(plan.scales[0].rows.size(), 2) << plan.scales[0].reason;
  EXPECT_EQ(plan.scales[0].rows[1].strategy, plan::Strategy::zero1);
  ASSERT_EQ(plan.scales[0].refused.size(), 2);
  EXPECT_THAT(plan.scales[0].refused[0],
              AllOf(HasSubstr("ZeRO-2 is not possible: "), HasSubstr("gradient_norm")));
}

TEST(ScalePlan, OfMicroBatchesThatFitFits) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder, "resnet18", "sgd");
  recipe.model.options.width = 32;
  recipe.batch = 128;
  recipe.data.count = 400;
  recipe.data.size = 64;
  const RecipePlan plan = planned(recipe, 2, "cuda:80MiB");
  ASSERT_TRUE(plan.phases[0].in_micro_batches) << plan.phases[0].str();
  EXPECT_GT(plan.scales[0].parts, 1);
  EXPECT_TRUE(plan.scales[0].rows[0].fits);
  EXPECT_EQ(plan.scales[0].rows[0].bytes,
            plan.phases[0].start_bytes + plan.phases[0].micro_batch_peak_bytes);
}

TEST(ScalePlan, IsPrintedWithWhatItRestsOn) {
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder, "mlp", "adamw");
  const RecipePlan plan = planned(recipe, 64);
  std::ostringstream text;
  print(text, plan);
  EXPECT_THAT(text.str(),
              AllOf(HasSubstr("first on 64 ranks, 8 on a machine: a batch of 32, of which a rank"),
                    HasSubstr("strategy"), HasSubstr("ZeRO-3"), HasSubstr("fastest that fits: "),
                    HasSubstr("32 ranks compute what does not count"),
                    HasSubstr("times: estimates by a model"), HasSubstr("as given"),
                    HasSubstr("between machines")));
  const auto json = nlohmann::json::parse(to_json(plan))["phases"][0]["scale"];
  EXPECT_EQ(json["ranks"], 64);
  EXPECT_EQ(json["strategies"].size(), 4);
  EXPECT_EQ(json["strategies"][0]["bytes"], bytes_of(plan.phases[0]));
  EXPECT_TRUE(json["strategies"][1]["planned"].get<bool>());
  EXPECT_EQ(json["fastest"], plan::to_string(plan::fastest(plan.scales[0].rows)->strategy));
}

TEST(ScalePlan, IsOfSeveralRanksOnly) {
  const TempDir folder;
  const RecipePlan plan = planned(one_phase(folder, "mlp", "adamw"), 1);
  EXPECT_TRUE(plan.scales.empty());
  std::ostringstream text;
  print(text, plan);
  EXPECT_THAT(text.str(), Not(HasSubstr("strategy")));
}

TEST(ScalePlan, TakesAMeasuredTimeOfABatch) {
  const TempDir folder;
  const RecipePlan plan = plan_recipe(
      one_phase(folder, "mlp", "adamw"),
      {.device = "host:1GiB",
       .advice = false,
       .ranks = 4,
       .scale = plan::ScaleOptions{.cluster = {.inside = {.bytes_per_s = 1e15, .latency_s = 0}},
                                   .batch_s = 8}});
  EXPECT_NEAR(plan.scales[0].rows[0].step_s, 2, 1e-6);
  EXPECT_NEAR(plan.scales[0].rows[0].efficiency, 1, 1e-6);
  EXPECT_THAT(plan.scales[0].computation, HasSubstr("a batch in 8 s, as given"));
}

}  // namespace
}  // namespace tare::testing

// Compares the figures of tare plan for a recipe with the measurements of its run.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "recipe/tiny.h"
#include "recipe/without_workers.h"
#include "support/outcome.h"
#include "tare/base/io.h"
#include "tare/data/loader.h"
#include "tare/memory/backend.h"
#include "tare/recipe/plan.h"
#include "tare/runtime/does_not_fit.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

struct PlannedCase {
  const char* model;
  const char* optimizer;
  int64_t batch;
};

class PlannedRecipe : public ::testing::TestWithParam<PlannedCase> {};

TEST_P(PlannedRecipe, EveryPhasePeaksAsPlannedToTheByte) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.model.name = GetParam().model;
  if (recipe.model.name == "mlp") recipe.model.options.width = 0;
  recipe.learner.optimizer.kind = GetParam().optimizer;
  recipe.batch = GetParam().batch;
  recipe.phases.resize(2);
  recipe.phases[1].size = recipe.data.size;
  const RecipePlan plan = plan_recipe(recipe, {.advice = false});
  const RunReport report = run_recipe(recipe);
  ASSERT_EQ(plan.phases.size(), report.phases.size());
  for (size_t i = 0; i < plan.phases.size(); ++i) {
    const MemoryPlan& phase = plan.phases[i];
    ASSERT_TRUE(phase.known()) << phase.reason;
    EXPECT_EQ(phase.peak_bytes, report.phases[i].peak_bytes) << phase.name << " at " << phase.at;
    EXPECT_EQ(phase.categories.total(), phase.peak_bytes) << phase.name;
    EXPECT_EQ(phase.reserved_bytes, phase.start_bytes + phase.peak_bytes) << phase.name;
    EXPECT_TRUE(phase.fits);
  }
}

TEST(RecipePlan, OfWeightsThatDoNotFitTriesNoOperator) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.model.name = "resnet9";
  recipe.model.options.width = 1'000'000;
  const memory::PeakScope peak(c10::kCPU);
  const RecipePlan plan = plan_recipe(recipe, {.device = "host:100MiB"});
  EXPECT_LT(peak.peak_above_start_bytes(), int64_t{64} << 20);
  ASSERT_FALSE(plan.phases.empty());
  EXPECT_GT(plan.phases[0].start_bytes, int64_t{1} << 40);
  EXPECT_EQ(plan.phases[0].at, "the weights");
  EXPECT_FALSE(plan.runs());
  std::ostringstream text;
  print(text, plan);
  EXPECT_THAT(text.str(), HasSubstr(": the weights alone take "));
  EXPECT_THAT(text.str(), HasSubstr("at least: without gradients, activations, the optimizer's"));
  EXPECT_THAT(text.str(), ::testing::Not(HasSubstr(" 0 B")));
  try {
    require_fit(recipe, plan);
    FAIL() << "weights of terabytes fit";
  } catch (const DoesNotFit& error) {
    EXPECT_THAT(error.what(), HasSubstr("alone, so no batch fits"));
  }
}

TEST(RecipePlan, OfAnUnknownPhaseDoesNotSayThatItFits) {
  RecipePlan plan{.name = "r", .device = "host", .capacity_bytes = 1000};
  plan.phases.resize(2);
  plan.phases[0].method = "none";
  plan.phases[0].reason = "an operator has no plan";
  plan.phases[1].fits = true;
  std::ostringstream text;
  print(text, plan);
  EXPECT_THAT(text.str(), HasSubstr("\nunknown: a phase cannot be predicted\n"));
  EXPECT_TRUE(nlohmann::json::parse(to_json(plan))["fits"].is_null());
}

INSTANTIATE_TEST_SUITE_P(Zoo, PlannedRecipe,
                         ::testing::Values(PlannedCase{"mlp", "adamw", 32},
                                           PlannedCase{"convnet", "sgd", 7},
                                           PlannedCase{"resnet9", "adamw", 32},
                                           PlannedCase{"resnet9", "sgd", 3},
                                           PlannedCase{"resnet18", "adamw", 64}),
                         [](const auto& test) {
                           return std::string(test.param.model) + "_" + test.param.optimizer + "_" +
                                  std::to_string(test.param.batch);
                         });

// A batch is made in several copies, at any moment of a step.
TEST(PlanRecipe, IsAnUpperBoundForLoaderThreads) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  recipe.learner.optimizer = {.kind = "sgd", .momentum = 0};
  recipe.model = {.name = "mlp"};
  recipe.model.options.width = 0;
  recipe.model.options.hidden = {1};
  recipe.data.transforms = Transforms{Normalise{{0.1}, {0.3}}, Shift{2}, Flip{0.5}};
  struct Epoch {
    int64_t size, count, batch;
  };
  for (const auto& [size, count, batch] : {Epoch{24, 200, 8}, Epoch{64, 120, 32}})  // of 20 and 3
    for (const int64_t workers : {1, 2, 3}) {
      recipe.data.size = size;
      recipe.data.count = count;
      recipe.batch = batch;
      recipe.learner.workers = 0;
      const int64_t without = plan_recipe(recipe, {.advice = false}).phases.at(0).peak_bytes;
      const int64_t one = batch * (size * size * 4 + 8);  // bytes of a batch
      recipe.learner.workers = workers;
      const auto planned = plan_recipe(recipe, {.advice = false}).phases.at(0);
      int64_t most = 0;
      for (int i = 0; i < 5; ++i) most = std::max(most, run_recipe(recipe).phases.at(0).peak_bytes);
      EXPECT_LE(most, planned.peak_bytes) << workers << " with batches of " << batch;
      // No more than the batches that wait and one in the hands of each thread.
      const int64_t batches = std::max(LoaderOptions{}.prefetch, workers) + workers;
      EXPECT_LE(planned.peak_bytes, without + batches * one)
          << workers << " with batches of " << batch;
    }
}

TEST(PlanRecipe, CountsOptimizerStatesThatAPhaseKeeps) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.learner.optimizer.kind = "adamw";
  recipe.phases.resize(2);
  recipe.phases[0].clear_opt = false;
  const RecipePlan plan = plan_recipe(recipe, {.advice = false});
  const RunReport report = run_recipe(recipe);
  EXPECT_GT(report.phases[0].residual_bytes, 0) << "the states are kept";
  EXPECT_EQ(plan.phases[1].start_bytes,
            plan.phases[0].start_bytes + report.phases[0].residual_bytes);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(plan.phases[i].peak_bytes, report.phases[i].peak_bytes) << i;
  EXPECT_EQ(report.residual_bytes, 0);
}

TEST(PlanRecipe, WhatNoPlanNeedsChangesNone) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.learner.optimizer = {.kind = "sgd", .weight_decay = 0, .momentum = 0.5, .nesterov = true};
  for (auto& phase : recipe.phases) phase.schedule = {};  // one cycle sets the momentum itself
  RecipeOptions other = recipe;
  other.name = "other";
  other.learner.seed = 7;
  other.phases[0].lr.reset();
  other.learner.optimizer.lr = 0.5;
  other.learner.optimizer.momentum = 0.75;
  EXPECT_EQ(without_what_no_plan_needs(recipe), without_what_no_plan_needs(other));
  const auto peak = [](const RecipeOptions& r) {
    return plan_recipe(r, {.advice = false}).phases.at(0).peak_bytes;
  };
  EXPECT_EQ(peak(recipe), peak(other));
  EXPECT_EQ(peak(recipe), peak(without_what_no_plan_needs(recipe)));
  other.learner.optimizer.momentum = 0;
  other.learner.optimizer.nesterov = false;
  EXPECT_NE(without_what_no_plan_needs(recipe), without_what_no_plan_needs(other));
  EXPECT_NE(peak(recipe), peak(other)) << "no state";
}

TEST(PlanRecipe, LargestBatchFitsAndOneMoreDoesNot) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  const RecipePlan small = plan_recipe(recipe, {.device = "host:1MiB"});
  const int64_t largest = small.phases[0].largest_batch;
  EXPECT_FALSE(small.fits());
  ASSERT_GT(largest, 0);
  ASSERT_LT(largest, recipe.batch);
  recipe.batch = largest;
  EXPECT_TRUE(plan_recipe(recipe, {.device = "host:1MiB", .advice = false}).fits());
  recipe.batch = largest + 1;
  EXPECT_FALSE(plan_recipe(recipe, {.device = "host:1MiB", .advice = false}).fits());
}

// Also on a card, whose allocator reserves more than the tensors take.
TEST(PlanRecipe, LargestBatchOfChosenBlocksIsThatOfEveryBatch) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  recipe.model.name = "resnet9";
  recipe.model.options = {.width = 16, .dropout = 0.2};
  for (const char* device : {"host:24MiB", "cuda:32MiB"}) {
    SCOPED_TRACE(device);
    recipe.batch = 8;
    recipe.learner.recompute = {};
    const int64_t kept = plan_recipe(recipe, {.device = device}).phases[0].largest_batch;
    ASSERT_GT(kept, 8);
    recipe.learner.recompute = {"auto"};
    const MemoryPlan few = plan_recipe(recipe, {.device = device}).phases[0];
    EXPECT_TRUE(few.recompute.empty());
    EXPECT_GT(few.largest_batch, kept);
    recipe.batch = few.largest_batch;
    const MemoryPlan most = plan_recipe(recipe, {.device = device}).phases[0];
    EXPECT_TRUE(most.fits);
    EXPECT_FALSE(most.recompute.empty());
    EXPECT_EQ(most.largest_batch, few.largest_batch);
  }
}

TEST(PlanRecipe, WhatDoesNotFitACardIsShownWithAllThatItNeeds) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  const auto phase_on = [&](const char* device) {
    return plan_recipe(recipe, {.device = device, .advice = false}).phases[0];
  };
  const MemoryPlan whole = phase_on("cuda:24GiB"), refused = phase_on("cuda:4MiB");
  EXPECT_TRUE(whole.fits);
  EXPECT_FALSE(refused.fits);
  EXPECT_EQ(refused.peak_bytes, whole.peak_bytes);
  EXPECT_EQ(refused.at, whole.at);
  EXPECT_EQ(refused.categories.str(), whole.categories.str());
}

TEST(PlanRecipe, ConvolutionsWithoutCudnnHaveNoBoundByItsWorkspaces) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  recipe.model.name = "resnet9";
  recipe.model.options = {.width = 8, .dropout = 0.2};
  const auto phase = [&](const char* device) {
    return plan_recipe(recipe, {.device = device, .advice = false}).phases[0];
  };
  const auto by_cudnn = ::testing::ElementsAre("the workspaces of cuDNN's convolutions");
  const auto without = ::testing::ElementsAre("the temporary memory of convolutions without cuDNN");
  EXPECT_THAT(phase("cuda:24GiB").not_counted, by_cudnn);
  EXPECT_GT(phase("cuda:24GiB").at_most_bytes, 0);
  recipe.learner.precision = "bf16";
  EXPECT_THAT(phase("cuda:A10").not_counted, by_cudnn);
  EXPECT_THAT(phase("cuda:T4").not_counted, without) << "cuDNN has bfloat16 from Ampere on";
  recipe.learner.precision = "fp16";
  EXPECT_THAT(phase("cuda:T4").not_counted, by_cudnn);
  recipe.learner.precision = "fp32";
  recipe.learner.kernels.cudnn = false;
  EXPECT_THAT(phase("cuda:24GiB").not_counted, without);
  EXPECT_EQ(phase("cuda:24GiB").at_most_bytes, 0)
      << "no smaller workspace is taken where memory is short";
}

TEST(PlanRecipe, SmallerBatchesAndOptimizersAreAdvised) {
  const TempDir folder;
  const RecipePlan plan = plan_recipe(without_workers(folder));
  const auto& savings = plan.phases.front().savings;
  ASSERT_FALSE(savings.empty());
  for (const auto& saving : savings)
    EXPECT_LT(saving.peak_bytes, plan.phases.front().peak_bytes) << saving.change;
  EXPECT_EQ(plan.phases.front().largest_micro_batch, 32);
  EXPECT_EQ(plan.largest_batch(), 160);  // the training split
}

TEST(PlanRecipe, ForACardThatIsNotThere) {
  const TempDir folder;
  const RecipePlan plan = plan_recipe(without_workers(folder), {.device = "cuda:H200"});
  EXPECT_TRUE(plan.fits());
  for (const auto& phase : plan.phases) {
    EXPECT_EQ(phase.reserved_bytes % (int64_t{2} << 20), 0);
    EXPECT_GE(phase.reserved_bytes, phase.start_bytes + phase.peak_bytes);
    EXPECT_EQ(phase.categories.total(), phase.peak_bytes);
  }
  EXPECT_FALSE(plan_recipe(without_workers(folder), {.device = "cuda:1MiB"}).fits());
}

TEST(PlanRecipe, RefusesWeightsThatTheRunRefuses) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  recipe.export_weights = "fp8";
  const auto bundle = run_recipe(recipe).exported->path;
  recipe.name = "next";
  const auto outcome = [&](const std::string& weights,
                           const std::map<std::string, std::string>& rename = {}) {
    recipe.model.options.weights = weights;
    recipe.model.options.rename = rename;
    const auto planned = outcome_of([&] { (void)plan_recipe(recipe, {.advice = false}); });
    EXPECT_EQ(planned, outcome_of([&] { (void)run_recipe(recipe); }));
    return planned;
  };
  EXPECT_EQ(outcome(bundle.string()), "accepted");
  EXPECT_EQ(outcome(bundle.string(), {{"fc.", "fc."}}), "accepted");
  EXPECT_THAT(outcome(bundle.string(), {{"fcc.", "fc."}}),
              HasSubstr("model.rename has 'fcc.', with which no name"));
  EXPECT_THAT(outcome(bundle.string(), {{"fc.", "head."}}),
              HasSubstr("fc.weight: is missing in the weights file"));
  EXPECT_THAT(outcome("", {{"fc.", "head."}}),
              HasSubstr("model.rename has no effect without weights"));
  std::string content = io::read_text(bundle);
  content[content.size() - 9] ^= 8;
  io::write_atomically(folder / "damaged.tare", content);
  EXPECT_THAT(outcome((folder / "damaged.tare").string()), HasSubstr("FormatError"));
  io::write_atomically(folder / "short.tare", content.substr(0, content.size() / 2));
  EXPECT_THAT(outcome((folder / "short.tare").string()), HasSubstr("FormatError"));
  recipe.model.options.width += 1;
  EXPECT_THAT(outcome(bundle.string()), HasSubstr(" in the file and "));
  EXPECT_THAT(outcome(folder.path().string()), HasSubstr("is a folder"));
}

TEST(PlanRecipe, RefusesDevicesItDoesNotKnow) {
  const TempDir folder;
  for (const char* device : {"cuda:H20O", "host:much", "tpu", "cuda:0GiB", "cuda:-1GiB", "host:"}) {
    try {
      (void)plan_recipe(without_workers(folder), {.device = device});
      ADD_FAILURE() << device;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cuda:24GiB")) << device;
    }
  }
}

TEST(PlanRecipe, JsonHasTheFiguresOfEveryPhase) {
  const TempDir folder;
  const RecipePlan plan = plan_recipe(without_workers(folder));
  const auto parsed = nlohmann::json::parse(to_json(plan));
  EXPECT_EQ(parsed["fits"], true);
  EXPECT_EQ(parsed["method"], "meta");
  EXPECT_EQ(parsed["largest_batch"], plan.largest_batch());
  EXPECT_EQ(parsed["largest_micro_batch"], 32);
  ASSERT_EQ(parsed["phases"].size(), 3);
  const auto& phase = parsed["phases"][0];
  EXPECT_EQ(phase["name"], "first");
  EXPECT_EQ(phase["peak_bytes"], plan.phases[0].peak_bytes);
  EXPECT_EQ(phase["reserved_bytes"], plan.phases[0].reserved_bytes);
  EXPECT_FALSE(phase["at"].get<std::string>().empty());
  int64_t sum = 0;
  for (const auto& [name, bytes] : phase["categories"].items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, plan.phases[0].peak_bytes);
}

}  // namespace
}  // namespace tare::testing

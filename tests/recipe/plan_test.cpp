// Compares the figures of tare plan for a recipe with the measurements of its run.
#include <gmock/gmock.h>

#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "recipe/tiny.h"
#include "support/outcome.h"
#include "tare/base/io.h"
#include "tare/data/loader.h"
#include "tare/memory/backend.h"
#include "tare/recipe/plan.h"
#include "tare/runtime/does_not_fit.h"
#include "tare/runtime/init.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

// Batches are made between the steps, so that nothing depends on the speed of a thread.
RecipeOptions without_workers(const TempDir& folder) {
  at::set_num_threads(1);
  RecipeOptions recipe = tiny(folder);
  recipe.learner.workers = 0;
  return recipe;
}

struct Case {
  const char* model;
  const char* optimizer;
  int64_t batch;
};

class PlannedRecipe : public ::testing::TestWithParam<Case> {};

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
                         ::testing::Values(Case{"mlp", "adamw", 32}, Case{"convnet", "sgd", 7},
                                           Case{"resnet9", "adamw", 32}, Case{"resnet9", "sgd", 3},
                                           Case{"resnet18", "adamw", 64}),
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
  const auto outcome = [&](const std::string& weights) {
    recipe.model.options.weights = weights;
    const auto planned = outcome_of([&] { (void)plan_recipe(recipe, {.advice = false}); });
    EXPECT_EQ(planned, outcome_of([&] { (void)run_recipe(recipe); }));
    return planned;
  };
  EXPECT_EQ(outcome(bundle.string()), "accepted");
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
  const auto json = nlohmann::json::parse(to_json(plan));
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["method"], "meta");
  EXPECT_EQ(json["largest_batch"], plan.largest_batch());
  EXPECT_EQ(json["largest_micro_batch"], 32);
  ASSERT_EQ(json["phases"].size(), 3);
  const auto& phase = json["phases"][0];
  EXPECT_EQ(phase["name"], "first");
  EXPECT_EQ(phase["peak_bytes"], plan.phases[0].peak_bytes);
  EXPECT_EQ(phase["reserved_bytes"], plan.phases[0].reserved_bytes);
  EXPECT_FALSE(phase["at"].get<std::string>().empty());
  int64_t sum = 0;
  for (const auto& [name, bytes] : phase["categories"].items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, plan.phases[0].peak_bytes);
}

TEST(RunWithPlan, SaysThePlannedPeakBesideTheMeasuredOne) {
  const TempDir folder;
  const RunReport report = run_recipe(without_workers(folder), {.plan = true});
  for (const auto& phase : report.phases) {
    ASSERT_TRUE(phase.planned_peak_bytes.has_value());
    EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes) << phase.name;
  }
}

TEST(RunWithPlan, PeaksAsPlannedWhileFrozenWeightsAreHeldInEightBits) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.learner.frozen_weights = "fp8";
  recipe.save_every = 3;
  std::ostringstream out;
  const RunReport report = run_recipe(recipe, {.out = &out, .plan = true});
  EXPECT_THAT(out.str(), HasSubstr("; of the frozen "));
  for (const auto& phase : report.phases) {
    ASSERT_TRUE(phase.planned_peak_bytes.has_value());
    EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes) << phase.name;
  }
  // The memory that freezing saved on the weights is taken again once they are trained.
  EXPECT_LT(report.phases[1].residual_bytes, 0);
  EXPECT_EQ(report.phases[1].residual_bytes + report.phases[2].residual_bytes, 0);
  EXPECT_EQ(report.residual_bytes, 0);
}

/// Returns the error that refuses to run the recipe within a host budget.
std::string refusal(const RecipeOptions& recipe, int64_t budget_bytes) {
  memory::set_host_budget(budget_bytes);
  std::string text;
  try {
    (void)run_recipe(recipe, {.plan = true});
    ADD_FAILURE() << "it cannot fit";
  } catch (const DoesNotFit& error) {
    text = error.what();
  }
  memory::set_host_budget({});
  return text;
}

TEST(RunWithPlan, StopsBeforeAnyWorkIfAPhaseCannotFit) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.learner.micro_batch = recipe.batch;
  const std::string whole = refusal(recipe, int64_t{1} << 20);
  EXPECT_THAT(whole, HasSubstr("phase 'first' with batch 32 does not fit"));
  EXPECT_THAT(whole, HasSubstr("the largest batch that fits is"));
  EXPECT_THAT(whole, HasSubstr("; micro_batch: auto would take parts of "));
  EXPECT_THAT(whole, HasSubstr("; set a lower micro_batch or a smaller model"));
  EXPECT_THAT(whole, HasSubstr("--no-plan"));
  recipe.learner.micro_batch = {};
  const std::string parts = refusal(recipe, int64_t{256} << 10);  // less than the optimizer wants
  EXPECT_THAT(parts, HasSubstr("phase 'first' with batch 32 does not fit"));
  EXPECT_THAT(parts, ::testing::Not(HasSubstr("parts of")));
  EXPECT_THAT(parts, HasSubstr("; no batch fits; set a smaller model or a higher budget"));
  EXPECT_THAT(parts, ::testing::Not(HasSubstr("stands at"))) << "there is no file";
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RunWithPlan, WorksInMicroBatchesWhereAPhaseDoesNotFitWhole) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  const auto whole = plan_recipe(recipe, {.advice = false}).phases.at(0);
  const auto before = memory::backend(c10::kCPU).usage().allocated_bytes;
  memory::set_host_budget(before + whole.start_bytes + whole.peak_bytes / 2);
  std::ostringstream out;
  const RunReport report = run_recipe(recipe, {.out = &out, .plan = true});
  memory::set_host_budget({});
  const PhaseReport& phase = report.phases.at(0);
  EXPECT_GT(phase.micro_batch, 0);
  EXPECT_LT(phase.micro_batch, recipe.batch);
  EXPECT_LE(phase.peak_bytes, whole.peak_bytes / 2);
  ASSERT_TRUE(phase.planned_peak_bytes);
  EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes);
  EXPECT_THAT(out.str(), HasSubstr("a batch of 32 does not fit into "));
  EXPECT_THAT(out.str(), HasSubstr(", in micro-batches of "));
}

// A frozen body keeps nothing for the backward, so that a step in parts takes less than a whole
// batch of the validation.
TEST(RunWithPlan, HasAPlannedSizeForTheValidationToo) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.data.count = 400;
  recipe.data.size = 28;
  recipe.batch = 64;
  recipe.model.options.width = 8;
  recipe.phases = {{.name = "head", .freeze_to = -1, .epochs = 2, .lr = 1e-2}};
  const auto whole = plan_recipe(recipe, {.advice = false}).phases.at(0);
  for (const double share : {0.85, 0.7, 0.5, 0.3}) {
    const auto before = memory::backend(c10::kCPU).usage().allocated_bytes;
    const auto room = static_cast<int64_t>(static_cast<double>(whole.peak_bytes) * share);
    memory::set_host_budget(before + whole.start_bytes + room);
    const auto planned = plan_recipe(recipe, {.advice = false}).phases.at(0);
    const RunReport report = run_recipe(recipe, {.plan = true});
    memory::set_host_budget({});
    ASSERT_TRUE(planned.in_micro_batches) << share;
    EXPECT_GE(planned.largest_validation_micro_batch, planned.largest_micro_batch) << share;
    EXPECT_LE(planned.largest_validation_micro_batch, recipe.batch) << share;
    EXPECT_EQ(planned.micro_batch_peak_bytes, report.phases.at(0).peak_bytes) << share;
    EXPECT_LE(report.phases.at(0).peak_bytes, room) << share;
  }
}

TEST(RunWithPlan, CountsWhatACheckpointInsideAnEpochTakes) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.model = {.name = "mlp"};
  recipe.model.options.width = 0;
  recipe.model.options.hidden = {1};
  recipe.data.count = 1000;
  recipe.batch = 256;
  recipe.learner.optimizer = {.kind = "sgd", .momentum = 0};
  recipe.phases.resize(1);
  for (const bool channels_last : {false, true}) {
    recipe.learner.kernels.channels_last = channels_last;
    int64_t without = 0;
    for (const int64_t every : {0, 1, 2, 500}) {
      recipe.save_every = every;
      const auto planned = plan_recipe(recipe, {.advice = false}).phases.at(0);
      const RunReport report = run_recipe(recipe);
      EXPECT_EQ(planned.peak_bytes, report.phases.at(0).peak_bytes) << every;
      if (every == 0) without = planned.peak_bytes;
      if (every == 500) {
        EXPECT_EQ(planned.peak_bytes, without) << "there are not as many steps";
      }
    }
  }
}

/// A recipe whose checkpoints are larger than its steps, without automatic ones.
RecipeOptions of_small_steps(const TempDir& folder) {
  RecipeOptions recipe = without_workers(folder);
  recipe.model = {.name = "mlp"};
  recipe.model.options.width = 0;
  recipe.model.options.hidden = {1};
  recipe.data.count = 100;
  recipe.data.size = 8;
  recipe.batch = 2;
  recipe.save_every = 0;
  recipe.phases.resize(1);
  return recipe;
}

TEST(RunWithPlan, CountsTheCheckpointOfTheBestEpoch) {
  const TempDir folder;
  RecipeOptions recipe = of_small_steps(folder);
  recipe.learner.optimizer = {.kind = "sgd", .momentum = 0};
  recipe.phases[0].save.clear();
  const auto planned = [&recipe] {
    const int64_t bytes = plan_recipe(recipe, {.advice = false}).phases.at(0).peak_bytes;
    EXPECT_EQ(bytes, run_recipe(recipe).phases.at(0).peak_bytes);
    return bytes;
  };
  const int64_t without = planned();
  recipe.phases[0].best = "train_loss";
  EXPECT_GT(planned(), without) << "the state of the generator is larger than a batch";
  recipe.phases[0].best.clear();
  recipe.callbacks = {{{.name = "save_best"}}};
  EXPECT_GT(planned(), without);
}

// Three batches of two samples and a short one; automatic checkpoints after any of them.
TEST(RunWithPlan, CountsAutomaticCheckpointsAfterTheShortBatch) {
  const TempDir folder;
  RecipeOptions recipe = of_small_steps(folder);
  recipe.learner.optimizer = {.kind = "sgd", .momentum = 0};
  recipe.data.count = 9;
  recipe.phases.push_back(recipe.phases[0]);
  recipe.phases[1].name = "second";
  for (auto& phase : recipe.phases) {
    phase.epochs = 4;
    phase.save.clear();
  }
  for (const int64_t every : {0, 1, 2, 3, 4, 5, 8, 12, 16, 17}) {
    recipe.save_every = every;
    const auto planned = plan_recipe(recipe, {.advice = false});
    const RunReport report = run_recipe(recipe);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(planned.phases.at(i).peak_bytes, report.phases.at(i).peak_bytes)
          << "phase " << i << " with save_every " << every;
  }
}

TEST(RunWithPlan, CountsTheCheckpointOfThePhase) {
  const TempDir folder;
  RecipeOptions recipe = of_small_steps(folder);
  for (const char* name : {"", "kept"}) {
    recipe.phases[0].save = name;
    const int64_t planned = plan_recipe(recipe, {.advice = false}).phases.at(0).peak_bytes;
    EXPECT_EQ(planned, run_recipe(recipe).phases.at(0).peak_bytes) << name;
  }
}

TEST(RunWithPlan, RecomputesAsFewBlocksAsTheBudgetAsksFor) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  recipe.learner.micro_batch = recipe.batch;  // nothing else may help
  const auto peak = [&](const std::vector<std::string>& modules) {
    recipe.learner.recompute = modules;
    return plan_recipe(recipe, {.advice = false}).phases.at(0);
  };
  const auto kept = peak({}), all = peak({"all"}), unlimited = peak({"auto"});
  ASSERT_LT(all.peak_bytes, kept.peak_bytes);
  EXPECT_TRUE(unlimited.recompute.empty());
  const auto before = memory::backend(c10::kCPU).usage().allocated_bytes;
  const int64_t room = (kept.peak_bytes + all.peak_bytes) / 2;
  memory::set_host_budget(before + kept.start_bytes + room);
  std::ostringstream out;
  const RunReport report = run_recipe(recipe, {.out = &out, .plan = true});
  const auto chosen = plan_recipe(recipe, {.advice = false}).phases.at(0);
  memory::set_host_budget({});
  EXPECT_FALSE(chosen.recompute.empty());
  const PhaseReport& phase = report.phases.at(0);
  EXPECT_LE(phase.peak_bytes, room);
  EXPECT_EQ(phase.micro_batch, 0);
  ASSERT_TRUE(phase.planned_peak_bytes);
  EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes);
}

TEST(RunWithPlan, PeaksAsPlannedWithWhatSavesMemory) {
  const TempDir folder;
  const auto expect_planned = [&](const char* what, auto change) {
    RecipeOptions recipe = without_workers(folder);
    recipe.name = what;
    recipe.phases.resize(1);
    change(recipe);
    const RunReport report = run_recipe(recipe, {.plan = true});
    const PhaseReport& phase = report.phases.at(0);
    ASSERT_TRUE(phase.planned_peak_bytes) << what;
    EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes) << what;
  };
  expect_planned("recompute", [](auto& r) { r.learner.recompute = {"layer1", "layer3"}; });
  expect_planned("step_in_backward", [](auto& r) { r.learner.step_in_backward = true; });
  expect_planned("channels_last", [](auto& r) { r.learner.kernels.channels_last = true; });
  for (const char* precision : {"bf16", "fp16", "bf16-true"})
    expect_planned(precision, [&](auto& r) { r.learner.precision = precision; });
}

TEST(RunWithPlan, SaysWhatItHasChosenToComputeAgain) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  recipe.learner.recompute = {"auto"};
  std::ostringstream out;
  (void)run_recipe(recipe, {.out = &out, .plan = true});
  EXPECT_THAT(out.str(), ::testing::HasSubstr("recompute: auto computes no block again"));
}

}  // namespace
}  // namespace tare::testing

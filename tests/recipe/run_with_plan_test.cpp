// A run that plans first: it peaks as planned, refuses what cannot fit, and works within a budget.
#include <gmock/gmock.h>

#include <sstream>

#include "recipe/tiny.h"
#include "recipe/without_workers.h"
#include "tare/memory/backend.h"
#include "tare/recipe/plan.h"
#include "tare/runtime/does_not_fit.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

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

TEST(RunWithPlan, BoundsTheMemoryOfTheExport) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.phases.resize(1);
  for (const std::string model : {"mlp", "resnet9"})
    for (const std::string weights : {"as_is", "int8", "bf16"})
      for (const bool graphs : {false, true}) {
        recipe.name = model + weights + (graphs ? "graphs" : "");
        recipe.model = {.name = model};
        recipe.model.options.width = model == "mlp" ? 0 : 8;
        if (model == "mlp") recipe.model.options.hidden = {300, 100};
        recipe.export_weights = weights;
        recipe.export_formats.clear();
        if (graphs) recipe.export_formats = {"onnx", "pt2", "safetensors"};
        const auto plan = plan_recipe(recipe, {.advice = false}).exported;
        ASSERT_TRUE(plan) << recipe.name;
        EXPECT_EQ(plan->reason, "") << recipe.name;
        EXPECT_EQ(plan->files.size(), graphs ? 4 : 1) << recipe.name;
        const auto exported = run_recipe(recipe).exported;
        ASSERT_TRUE(exported) << recipe.name;
        EXPECT_LE(exported->peak_bytes, plan->at_most_bytes) << recipe.name;
        if (graphs) {
          EXPECT_GT(exported->peak_bytes * 6, plan->at_most_bytes) << recipe.name;
        }
      }
  recipe.export_to.reset();
  recipe.export_formats.clear();
  recipe.export_weights = "as_is";
  EXPECT_FALSE(plan_recipe(recipe, {.advice = false}).exported);
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
  EXPECT_THAT(whole, HasSubstr("3 phases do not fit cpu, which has 1 MiB: phase 'first' with batch "
                               "32 needs "));
  EXPECT_THAT(whole, HasSubstr("; phase 'all' with batch 32 needs "));
  EXPECT_THAT(whole, HasSubstr("the largest batch that fits is"));
  EXPECT_THAT(whole, HasSubstr(", which micro_batch: auto would take"));
  EXPECT_THAT(whole, HasSubstr("; set a lower micro_batch or a smaller model"));
  EXPECT_THAT(whole, HasSubstr("--no-plan"));
  recipe.learner.micro_batch = {};
  const std::string parts = refusal(recipe, int64_t{256} << 10);  // less than the optimizer wants
  EXPECT_THAT(parts, HasSubstr("3 phases do not fit cpu, which has 256 KiB: phase 'first'"));
  EXPECT_THAT(parts, ::testing::Not(HasSubstr("micro_batch: auto")));
  EXPECT_THAT(parts, HasSubstr("; no batch fits; set a smaller model or a higher budget"));
  EXPECT_THAT(parts, ::testing::Not(HasSubstr("stands at"))) << "there is no file";
  recipe.phases.resize(1);
  EXPECT_THAT(
      refusal(recipe, int64_t{256} << 10),
      HasSubstr("phase 'first' with batch 32 does not fit cpu, which has 256 KiB: it needs "));
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
    const auto allowed = static_cast<int64_t>(static_cast<double>(whole.peak_bytes) * share);
    memory::set_host_budget(before + whole.start_bytes + allowed);
    const auto planned = plan_recipe(recipe, {.advice = false}).phases.at(0);
    const RunReport report = run_recipe(recipe, {.plan = true});
    memory::set_host_budget({});
    ASSERT_TRUE(planned.in_micro_batches) << share;
    EXPECT_GE(planned.largest_validation_micro_batch, planned.largest_micro_batch) << share;
    EXPECT_LE(planned.largest_validation_micro_batch, recipe.batch) << share;
    EXPECT_EQ(planned.micro_batch_peak_bytes, report.phases.at(0).peak_bytes) << share;
    EXPECT_LE(report.phases.at(0).peak_bytes, allowed) << share;
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
  const int64_t allowed = (kept.peak_bytes + all.peak_bytes) / 2;
  memory::set_host_budget(before + kept.start_bytes + allowed);
  std::ostringstream out;
  const RunReport report = run_recipe(recipe, {.out = &out, .plan = true});
  const auto chosen = plan_recipe(recipe, {.advice = false}).phases.at(0);
  memory::set_host_budget({});
  EXPECT_FALSE(chosen.recompute.empty());
  const PhaseReport& phase = report.phases.at(0);
  EXPECT_LE(phase.peak_bytes, allowed);
  EXPECT_EQ(phase.micro_batch, 0);
  ASSERT_TRUE(phase.planned_peak_bytes);
  EXPECT_EQ(*phase.planned_peak_bytes, phase.peak_bytes);
}

TEST(RunWithPlan, RecomputesNothingWhereOnlySoPartsOfABatchFit) {
  const TempDir folder;
  RecipeOptions recipe = without_workers(folder);
  recipe.model.name = "resnet9";
  recipe.model.options = {.width = 8, .dropout = 0.2};
  recipe.phases.resize(1);
  recipe.learner.micro_batch = 1;
  const auto needed = [&](const std::vector<std::string>& modules) {
    recipe.learner.recompute = modules;
    const MemoryPlan phase = plan_recipe(recipe, {.advice = false}).phases.at(0);
    return phase.start_bytes + phase.peak_bytes;
  };
  const int64_t kept = needed({}), all = needed({"all"});
  ASSERT_LT(kept, all) << "a block takes more for one sample than its activations";
  recipe.learner.micro_batch = {};
  recipe.learner.recompute = {"auto"};
  memory::set_host_budget(memory::backend(c10::kCPU).usage().allocated_bytes + (kept + all) / 2);
  const RunReport report = run_recipe(recipe, {.plan = true});
  memory::set_host_budget({});
  EXPECT_GT(report.phases.at(0).micro_batch, 0);
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

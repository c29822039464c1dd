// Fewer batches for a quick try: what limited() and overfitted() give, and recipes with them.
#include "tare/data/limit.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <fstream>

#include "recipe/tiny.h"
#include "tare/base/error.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/transform/transform.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Samples whose target is their number.
DatasetPtr numbered(int64_t count) {
  return tensor_dataset(at::arange(count * 4).view({count, 4}).to(at::kFloat), at::arange(count));
}

std::vector<int64_t> numbers_of(const DatasetPtr& set) {
  const at::Tensor targets = set->targets();
  return {targets.const_data_ptr<int64_t>(), targets.const_data_ptr<int64_t>() + targets.numel()};
}

TEST(Limited, SpreadsTheSamplesOverTheSplits) {
  const Splits all{.train = numbered(100), .valid = numbered(10), .test = numbered(7)};
  const Splits few = limited(all, {.train_batches = 2, .valid_batches = 1}, 3);
  EXPECT_THAT(numbers_of(few.train), ElementsAre(0, 16, 33, 50, 66, 83));
  EXPECT_THAT(numbers_of(few.valid), ElementsAre(0, 3, 6));
  EXPECT_EQ(few.test, all.test);
}

TEST(Limited, LeavesASplitThatHasNoMore) {
  const Splits all{.train = numbered(100), .valid = numbered(10)};
  const Splits same = limited(all, {.train_batches = INT64_MAX, .valid_batches = 4}, 3);
  EXPECT_EQ(same.train, all.train);
  EXPECT_EQ(same.valid, all.valid);
  EXPECT_EQ(same.test, nullptr);
  EXPECT_EQ(limited(all, {}, 3).train, all.train);
}

TEST(Limited, RefusesNumbersThatAreTooLow) {
  const Splits all{.train = numbered(10)};
  EXPECT_THROW((void)limited(all, {.train_batches = 1}, 0), ConfigError);
  EXPECT_THROW((void)limited(all, {.train_batches = -1}, 1), ConfigError);
  EXPECT_THROW((void)limited(all, {.valid_batches = -1}, 1), ConfigError);
  EXPECT_THROW((void)overfitted(all, 0, 1), ConfigError);
  EXPECT_THROW((void)overfitted(all, 1, 0), ConfigError);
  EXPECT_THROW((void)overfitted({.valid = numbered(10)}, 1, 1), StateError);
}

TEST(Overfitted, HasTheSameSamplesWithoutRandomTransforms) {
  const auto images = at::arange(20 * 16).view({20, 1, 4, 4}).to(at::kFloat);
  const auto flipped =
      transformed(tensor_dataset(images, at::arange(20)), Transforms{Flip{.probability = 1}});
  const Splits few = overfitted({.train = flipped, .valid = numbered(5)}, 2, 3);
  EXPECT_THAT(numbers_of(few.train), ElementsAre(0, 3, 6, 10, 13, 16));
  EXPECT_EQ(few.valid, few.train);
  const std::vector<int64_t> first{0};
  const auto get = [&](const DatasetPtr& set) {
    return set->get({.indices = first, .seed = 1, .training = true}).inputs.front().tensor;
  };
  EXPECT_TRUE(at::equal(get(few.train), images.slice(0, 0, 1)));
  EXPECT_FALSE(at::equal(get(flipped), images.slice(0, 0, 1))) << "the transform does something";
}

/// The recipe of tiny() for one phase, with 160 training and 40 validation samples.
RecipeOptions quick(const TempDir& folder) {
  RecipeOptions recipe = tiny(folder);
  recipe.phases = {{.name = "only", .epochs = 2, .lr = 1e-2}};
  recipe.learner.workers = 0;
  return recipe;
}

std::vector<int64_t> samples_of_epochs(const RunReport& report) {
  std::vector<int64_t> samples;
  for (const auto& phase : report.phases)
    for (const auto& row : phase.epochs) samples.push_back(row.samples);
  return samples;
}

TEST(LimitedRecipe, TrainsOnFewerBatchesAsPlanned) {
  const TempDir folder;
  RecipeOptions recipe = quick(folder);
  EXPECT_THAT(samples_of_epochs(run_recipe(recipe)), ElementsAre(160, 160));
  recipe.limit = {.train_batches = 2, .valid_batches = 1};
  recipe.name = "limited";
  const RecipePlan plan = plan_recipe(recipe);
  const RunReport report = run_recipe(recipe);
  EXPECT_THAT(samples_of_epochs(report), ElementsAre(64, 64));
  EXPECT_EQ(report.phases.front().peak_bytes, plan.phases.front().peak_bytes);
}

TEST(LimitedRecipe, GoesByTheBatchOfEachPhase) {
  const TempDir folder;
  RecipeOptions recipe = quick(folder);
  recipe.phases = {{.name = "a", .lr = 1e-2},
                   {.name = "b", .batch = 50, .lr = 1e-2},
                   {.name = "c", .batch = 10, .duration = Duration{.steps = 5}, .lr = 1e-2}};
  recipe.limit.train_batches = 2;
  const RecipePlan plan = plan_recipe(recipe);
  const RunReport report = run_recipe(recipe);
  EXPECT_THAT(samples_of_epochs(report), ElementsAre(64, 100, 20, 20, 10));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(report.phases[i].peak_bytes, plan.phases[i].peak_bytes) << i;
}

TEST(LimitedRecipe, KeepsTheBatchThatAllDataDecide) {
  const TempDir folder;
  RecipeOptions recipe = quick(folder);
  recipe.batch.reset();
  recipe.limit.train_batches = 1;
  EXPECT_THAT(samples_of_epochs(run_recipe(recipe)),
              ElementsAre(default_batch(160), default_batch(160)));
}

TEST(LimitedRecipe, ReadsItsDataOnceWhereTheBatchIsThatOfAllData) {
  const DataOptions digits = quick(TempDir()).data;
  RecipeData data;
  (void)data.open(digits, {.limit = {.train_batches = 2}});
  const int64_t batch = default_batch(160);
  EXPECT_TRUE(data.is_open(digits, {.limit = {.train_batches = 2}, .batch = batch}));
  EXPECT_FALSE(data.is_open(digits, {.limit = {.train_batches = 2}, .batch = batch + 1}));
  EXPECT_FALSE(data.is_open(digits, {.limit = {.train_batches = 3}, .batch = batch}));
  EXPECT_FALSE(data.is_open(digits)) << "all of it";
  (void)data.open(digits);
  EXPECT_FALSE(data.is_open(digits, {.overfit = 2}));
}

TEST(OverfitRecipe, LearnsItsBatchesByHeart) {
  const TempDir folder;
  RecipeOptions recipe = quick(folder);
  recipe.overfit = 1;
  recipe.phases.front().epochs = 40;
  recipe.phases.front().schedule = {.kind = "constant"};
  const RecipePlan plan = plan_recipe(recipe);
  const RunReport report = run_recipe(recipe);
  const auto& epochs = report.phases.front().epochs;
  EXPECT_EQ(epochs.front().samples, 32);
  EXPECT_LT(epochs.back().train_loss, 0.1);
  EXPECT_LT(epochs.back().valid_loss, 0.1) << "it validates on the same samples";
  EXPECT_EQ(report.phases.front().peak_bytes, plan.phases.front().peak_bytes);
}

TEST(OverfitRecipe, IsRefusedBesideWhatContradictsIt) {
  const TempDir folder;
  const auto problem = [&](const std::string& more) -> std::string {
    std::ofstream(folder / "r.yaml") << "model: {name: mlp}\ndata: {name: generated_digits}\n"
                                        "phases: [{name: one}]\n"
                                     << more;
    try {
      (void)read_recipe(folder / "r.yaml");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("overfit: 2\n"), "");
  EXPECT_THAT(problem("overfit: 2\nlimit: {train_batches: 1}\n"), HasSubstr("limit contradicts"));
  EXPECT_THAT(problem("overfit: 2\nsampling: balanced\n"), HasSubstr("sampling contradicts"));
  EXPECT_THAT(problem("overfit: -1\n"), HasSubstr("overfit must be >= 0"));
  EXPECT_THAT(problem("limit: {train_batch: 1}\n"), HasSubstr("train_batches"));
}

}  // namespace
}  // namespace tare::testing

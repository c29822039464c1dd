// A recipe whose model cannot compute the data is refused before any work, also by a plan for a
// card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <filesystem>

#include "recipe/tiny.h"
#include "tare/base/error.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/resolve.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

/// LibTorch refuses the first product, because a sample of the data has more numbers.
struct SevenNumbersImpl : torch::nn::Module {
  explicit SevenNumbersImpl(int64_t classes)
      : layer(register_module("layer", torch::nn::Linear(7, classes))) {}
  at::Tensor forward(const at::Tensor& x) { return layer(x.flatten(1)); }
  torch::nn::Linear layer;
};
TORCH_MODULE(SevenNumbers);

/// Takes nothing but batches of 32 samples, as no probe of few samples has.
struct WholeBatchesImpl : torch::nn::Module {
  explicit WholeBatchesImpl(int64_t classes)
      : layer(register_module("layer", torch::nn::Linear(256, classes))) {}
  at::Tensor forward(const at::Tensor& x) {
    if (x.sum().item<float>() < 0) return x;  // no plan on meta tensors
    return layer(x.reshape({32, 256}));
  }
  torch::nn::Linear layer;
};
TORCH_MODULE(WholeBatches);

RecipeOptions one_phase(const TempDir& folder, const char* model) {
  RecipeOptions recipe = tiny(folder);
  recipe.phases.resize(1);
  recipe.model = {.name = model};
  return recipe;
}

template <class Call>
std::string refusal_of_call(const Call& call) {
  try {
    call();
    return "accepted";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(RefusedModel, IsNamedWithItsLayerBeforeTheRunMakesAFolder) {
  models::add("seven_numbers", [](int64_t classes) { return SevenNumbers(classes); });
  const TempDir folder;
  const RecipeOptions recipe = one_phase(folder, "seven_numbers");
  const char* const why =
      "model does not take the data: [learner.plan] forward of 'layer' (Linear)";
  EXPECT_THAT(refusal_of_call([&] { (void)run_recipe(recipe, {.plan = true}); }), HasSubstr(why));
  EXPECT_FALSE(std::filesystem::exists(folder / recipe.name));
  for (const char* device : {"cpu", "cuda:8GiB"})
    EXPECT_THAT(refusal_of_call([&] { (void)plan_recipe(recipe, {.device = device}); }),
                HasSubstr(why));
}

TEST(RefusedModel, IsFoundByTheCheckOfARecipe) {
  models::add("seven_numbers", [](int64_t classes) { return SevenNumbers(classes); });
  const TempDir folder;
  const auto refusal = [](const RecipeOptions& recipe) {
    RecipeData data;
    return refusal_of_call([&] { check_run(recipe, data); });
  };
  EXPECT_THAT(refusal(one_phase(folder, "seven_numbers")),
              HasSubstr("model does not take the data, samples of shape [1, 16, 16]"));
  EXPECT_THAT(refusal(one_phase(folder, "unet")),
              HasSubstr("with a model of outputs of shape [32, 10, 16, 16]"));
  RecipeOptions vit = tiny(folder);
  vit.model = {.name = "vit"};
  vit.phases.resize(1);
  EXPECT_EQ(refusal(vit), "accepted");
  vit.phases[0].size = 40;
  EXPECT_THAT(refusal(vit), HasSubstr("phases.0.size gives samples of shape [1, 40, 40]"));
}

TEST(RefusedModel, IsNoneThatTakesWholeBatchesOnly) {
  models::add("whole_batches", [](int64_t classes) { return WholeBatches(classes); });
  const TempDir folder;
  RecipeOptions recipe = one_phase(folder, "whole_batches");
  recipe.batch = 32;
  recipe.learner.drop_last = true;
  recipe.data.count = 160;
  recipe.data.train = 128;
  recipe.data.valid = 32;
  for (const char* device : {"cpu", "cuda:8GiB"})
    EXPECT_FALSE(plan_recipe(recipe, {.device = device}).phases[0].known());
  EXPECT_EQ(refusal_of_call([&] { (void)run_recipe(recipe, {.plan = true}); }), "accepted");
}

}  // namespace
}  // namespace tare::testing

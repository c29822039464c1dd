// The options of a Learner as a recipe gives them, phase by phase.
#include "tare/recipe/learner_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "recipe/tiny.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

RecipeOptions recipe_of(const std::string& text) {
  return config::read<RecipeOptions>(config::parse_text(text, "test"));
}

const DataFacts& thousand_samples() {
  static const DataFacts facts{.training_samples = 1000, .all_training_samples = 1000};
  return facts;
}

std::string flow_of(const config::Node& root, const std::string& key) {
  const config::Node* value = root.find(key);
  return value ? config::flow_text(*value) : "no such key";
}

template <config::Options S>
std::set<const void*> values_of(S& options) {
  config::Visitor visit;
  visit_fields(visit, options);
  std::set<const void*> values;
  for (const config::Field& field : visit.fields()) values.insert(field.value);
  return values;
}

/// An option, and why no file or no recipe has it; empty: it is there.
struct Option {
  const void* value = nullptr;
  std::string not_in_a_file{}, not_in_a_recipe{};
};

// An option that is added to LearnerOptions does not compile here until it has a row.
TEST(LearnerOptionsOfARecipe, EveryOptionIsAKeyOrHasAReason) {
  RecipeOptions recipe;
  auto& [loss, metrics, device, batch, micro_batch, recompute, offload, precision, kernels,
         step_in_backward, graph, frozen_weights, optimizer, clip, optimizer_factory, optimizers,
         seed, workers, shuffle, sampling, class_sampling, group_by_length, valid_every,
         save_in_background, sample_weights, drop_last, stop_on_nan, folder, callbacks, task,
         progress, group, data_parallel, stages] = recipe.learner;
  const std::string function = "holds functions", hidden = "a recipe has a key of its own for it";
  const std::vector<Option> options{
      {&loss},
      {&metrics},
      {&device},
      {&batch, "", hidden + ", which may be unset"},
      {&micro_batch},
      {&recompute},
      {&offload},
      {&precision},
      {&kernels},
      {&step_in_backward},
      {&graph},
      {&frozen_weights},
      {&optimizer},
      {&clip},
      {&optimizer_factory, function, function},
      {&optimizers, function, function},
      {&seed},
      {&workers},
      {&shuffle},
      {&sampling},
      {&class_sampling},
      {&group_by_length},
      {&valid_every},
      {&save_in_background},
      {&sample_weights, "are of single samples", "are of single samples"},
      {&drop_last},
      {&stop_on_nan},
      {&folder, "", hidden + ": the folder of all runs"},
      {&callbacks, function, hidden + ", with names"},
      {&task, function, function},
      {&progress, "", "the run prints the table to its own stream"},
      {&group, "is a process's own", "is a process's own"},
      {&data_parallel},
      {&stages}};
  const auto in_file = values_of(recipe.learner), in_recipe = values_of(recipe);
  for (size_t i = 0; i < options.size(); ++i) {
    const Option& option = options[i];
    EXPECT_EQ(in_file.contains(option.value), option.not_in_a_file.empty()) << "option " << i;
    EXPECT_EQ(in_recipe.contains(option.value), option.not_in_a_recipe.empty()) << "option " << i;
  }
}

TEST(LearnerOptionsOfARecipe, HaveTheValueOfEveryKey) {
  const std::map<std::string, std::string> values{
      {"loss", "{cross_entropy: {label_smoothing: 0.5}}"},
      {"metrics", "[error_rate, accuracy]"},
      {"device", "cuda:1"},
      {"stages", "[cuda:0, cuda:1]"},
      {"batch", "16"},
      {"micro_batch", "8"},
      {"recompute", "[layer1, layer2]"},
      {"offload", "all"},
      {"precision", "bf16"},
      {"kernels", "{channels_last: true}"},
      {"step_in_backward", "true"},
      {"graph", "true"},
      {"frozen_weights", "fp8"},
      {"optimizer", "{kind: sgd, lr: 0.5}"},
      {"clip", "{norm: 2}"},
      {"data_parallel", "{find_unused: true}"},
      {"seed", "7"},
      {"workers", "3"},
      {"drop_last", "true"},
      {"shuffle", "false"},
      {"sampling", "balanced"},
      {"class_sampling", "{cat: 2}"},
      {"group_by_length", "true"},
      {"valid_every", "7"},
      {"save_in_background", "true"},
      {"stop_on_nan", "false"},
      {"folder", "elsewhere"}};
  std::set<std::string> common;
  const auto of_learner = config::field_names<LearnerOptions>();
  for (const auto& key : config::field_names<RecipeOptions>())
    if (std::ranges::find(of_learner, key) != of_learner.end()) common.insert(key);
  const config::Node defaults = config::to_node(LearnerOptions());
  for (const auto& [key, value] : values) {
    EXPECT_EQ(common.erase(key), 1U) << key << " is not a key of both";
    const RecipeOptions recipe = recipe_of(key + ": " + value + "\nphases: [{name: one}]\n");
    const auto options = config::to_node(learner_options(recipe, 0, thousand_samples()));
    EXPECT_NE(flow_of(options, key), flow_of(defaults, key)) << key;
    if (key == "folder")
      EXPECT_EQ(flow_of(options, key), "elsewhere/run");
    else
      EXPECT_EQ(flow_of(options, key), flow_of(config::to_node(recipe), key));
  }
  EXPECT_THAT(common, ::testing::IsEmpty()) << "keys without a row";
}

TEST(LearnerOptionsOfARecipe, APhasePutsItsOwnValuesInPlaceOfThoseOfTheRecipe) {
  const RecipeOptions recipe = recipe_of(
      "batch: 64\nmicro_batch: 8\nrecompute: all\noffload: [layer1]\n"
      "phases: [{name: one}, {batch: 32, micro_batch: auto, recompute: none, offload: all}]\n");
  const LearnerOptions first = learner_options(recipe, 0, thousand_samples()),
                       second = learner_options(recipe, 1, thousand_samples());
  using Names = std::vector<std::string>;
  EXPECT_EQ(first.batch, 64);
  EXPECT_EQ(first.micro_batch, 8);
  EXPECT_EQ(first.recompute, Names{"all"});
  EXPECT_EQ(first.offload, Names{"layer1"});
  const FitSetup setup = fit_setup(second, {});
  EXPECT_EQ(setup.batch, 32);
  EXPECT_EQ(setup.micro_batch, MicroBatch{});
  EXPECT_EQ(setup.recompute, Names{});
  EXPECT_EQ(setup.offload, Names{"all"});
  EXPECT_TRUE(setup.data);
  const RecipeOptions of_data = recipe_of("phases: [{name: one}]\n");
  EXPECT_EQ(learner_options(of_data, 0, thousand_samples()).batch, default_batch(1000));
}

TEST(LearnerOptionsOfARecipe, WhatAFileCannotSayIsRefused) {
  const TempDir folder;
  const auto refusal = [&](auto change) -> std::string {
    RecipeOptions recipe = tiny(folder);
    change(recipe.learner);
    return config_error_of([&] { check_recipe(recipe); });
  };
  EXPECT_EQ(refusal([](LearnerOptions&) {}), "accepted");
  const auto zero = [](const at::Tensor& output, const at::Tensor&) { return output; };
  EXPECT_THAT(refusal([&](LearnerOptions& o) { o.loss = LossFunction(zero); }),
              HasSubstr("loss must be a name"));
  EXPECT_THAT(refusal([&](LearnerOptions& o) { o.metrics = {Metric("own", zero)}; }),
              HasSubstr("metrics.0 must be a name"));
  EXPECT_THAT(refusal([](LearnerOptions& o) {
                o.task.step = [](Model&, const Batch&) { return StepResult{}; };
              }),
              HasSubstr("learner.task is not read"));
  EXPECT_THAT(refusal([](LearnerOptions& o) { o.batch = 3; }),
              HasSubstr("learner.batch is not read"));
}

}  // namespace
}  // namespace tare::testing

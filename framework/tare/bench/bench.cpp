// Sets a recipe or a model up for a measurement of its steps.
#include "tare/bench/bench.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>

#include <utility>

#include "tare/base/error.h"
#include "tare/learner/learner.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/learner_options.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/recipe/resolve.h"

namespace tare::bench {
namespace {

constexpr const char* kWhere = "bench";

void check(const BenchOptions& options, const RecipeOptions& recipe) {
  const size_t phases = recipe.phases.size();
  if (recipe.learner.graph)
    throw ConfigError(kWhere, "graph", "records the step, whose operators cannot be timed then",
                      "false", "true");
  if (options.steps < 1)
    throw ConfigError(kWhere, "steps", "is too small", "at least 1", std::to_string(options.steps));
  if (options.phase >= phases)
    throw ConfigError(kWhere, "phase", "is not one of the recipe",
                      "0 to " + std::to_string(phases - 1), std::to_string(options.phase));
}

/// Adds the callbacks of a list that change what a step computes, or watch it.
void add_working(std::vector<CallbackPtr>& callbacks, std::vector<ChosenCallback> chosen) {
  for (ChosenCallback& one : chosen) {
    const CallbackFacts facts = one.callback->facts();
    if (!facts.only_writes && !facts.saves_epochs && !facts.saves_steps && facts.files.empty())
      callbacks.push_back(std::move(one.callback));
  }
}

BenchResult measure(const RecipeOptions& recipe, Learner& learner, FitOptions fit,
                    const BenchOptions& options) {
  BenchResult result{.name = recipe.name,
                     .model = recipe.model.name,
                     .precision = recipe.learner.precision,
                     .step = measure_steps(learner, std::move(fit), options.steps)};
  result.machine = measure_limits(learner.device(), options.folder);
  return result;
}

/// Makes samples of the family's shape, with classes of the shape of the model's outputs.
Splits random_samples(const models::Family& family, const ModelOptions& options, Model& model,
                      int64_t count) {
  std::vector<int64_t> shape =
      options.sample_shape.empty() ? family.sample_shape : options.sample_shape;
  shape.insert(shape.begin(), count);
  const int64_t vocabulary = family.vocabulary > 0 ? family.vocabulary : options.classes;
  const at::Tensor input =
      family.tokens ? at::randint(vocabulary, shape, at::kLong) : at::rand(shape);
  const at::NoGradGuard without_graph;
  model.train(false);
  at::Tensor output;
  try {
    output = model.forward(input.narrow(0, 0, 1));
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw ConfigError(kWhere, "model",
                      "does not take one tensor of its sample_shape (" +
                          printable(text.substr(0, text.find('\n')), 300) + ")",
                      "a recipe of the model", printable(family.name));
  }
  // [1, classes], [1, classes, height, width], or of tokens [1, classes, context].
  std::vector<int64_t> targets{count};
  for (int64_t i = 1; i < output.dim(); ++i)
    if (i != 1) targets.push_back(output.size(i));
  return {.train = tensor_dataset(input, at::randint(options.classes, targets, at::kLong))};
}

}  // namespace

BenchResult bench_recipe(const RecipeOptions& given, const BenchOptions& options) {
  check(options, given);
  check_recipe(given);
  check_files(given);
  RecipeData data;
  const ResolvedRecipe resolved = resolve_recipe(given, data);
  const RecipeOptions& recipe = resolved.recipe;
  at::manual_seed(recipe.learner.seed);
  Model model = make_model(recipe, resolved.facts, resolved.phases);
  const OpenData& open = open_data(recipe, options.phase, data);
  check_data(recipe, options.phase, open);
  const PhaseOptions& phase = recipe.phases[options.phase];
  FitOptions fit{.lr = rate_of(recipe, phase)};
  add_working(fit.callbacks, make_callbacks(recipe));
  add_working(fit.callbacks, make_callbacks(recipe, options.phase));
  if (fit.lr && fit.lr->search()) fit.lr.reset();
  LearnerOptions own = learner_options(recipe, options.phase, open.facts);
  const int64_t batch = own.batch;
  Learner learner(std::move(model), {.train = open.named.splits.train}, std::move(own));
  (void)learner.freeze_to(phase.freeze_to);
  BenchResult result = measure(recipe, learner, std::move(fit), options);
  result.phase = name_of(recipe, options.phase);
  result.step.batch = batch;
  return result;
}

BenchResult bench_model(const std::string& name, const std::vector<std::string>& overrides,
                        const BenchOptions& options) {
  const models::Family family = models::family(name);
  std::string text = "name: " + name + "\nmodel: {name: " + name + "}\nphases: [{epochs: 1}]\n";
  if (family.log_probabilities) text += "loss: nll\n";
  RecipeOptions recipe = recipe_from_text(text, "tare bench " + name, overrides);
  if (recipe.file.has("data")) return bench_recipe(recipe, options);
  check(options, recipe);
  ModelOptions& model_options = recipe.model.options;
  if (model_options.classes == 0) model_options.classes = ModelOptions().classes;
  at::manual_seed(recipe.learner.seed);
  Model model = models::make(name, model_options);
  const int64_t batch = recipe.batch.value_or(32);
  recipe.batch = batch;
  const Splits data = random_samples(family, model_options, model, 4 * batch);
  Learner learner(std::move(model), data, learner_options(recipe, 0, facts_of(data)));
  BenchResult result = measure(recipe, learner, {}, options);
  result.step.batch = batch;
  return result;
}

}  // namespace tare::bench

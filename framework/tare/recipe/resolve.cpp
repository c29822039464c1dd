// Fills a recipe's open values from its data.
#include "tare/recipe/resolve.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/model/registry.h"
#include "tare/recipe/class_weights.h"
#include "tare/recipe/column_check.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/resume.h"
#include "tare/recipe/target_check.h"
#include "tare/recipe/target_defaults.h"
#include "tare/recipe/weights_bundle.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

Origin::Data origin_of(const datasets::Named& data) { return {data.description, data.identity}; }

/// Returns the facts for the phase, which shows the images of `data` in its own size. Throws
/// ConfigError for a size of samples that are no images.
DataFacts resized(const DataFacts& facts, const DataOptions& data, const RecipeOptions& recipe,
                  size_t index) {
  DataFacts result = facts;
  const int64_t size = recipe.phases[index].size;
  if (size == 0) return result;
  const std::string key = "phases." + std::to_string(index) + ".size";
  if (facts.sample_shape.size() != 3)
    throw ConfigError("recipe.run", key,
                      "can change images only, and the shape of a sample is " +
                          c10::str(at::IntArrayRef(facts.sample_shape)),
                      "0", std::to_string(size))
        .within("", recipe.file.place(key));
  result.sample_shape = data.transforms.output_shape({facts.sample_shape[0], size, size});
  std::vector<int64_t> batch{1};
  batch.insert(batch.end(), result.sample_shape.begin(), result.sample_shape.end());
  for (NamedTensor& input : result.sample.inputs)
    if (input.tensor.dim() == 4) input.tensor = input.tensor.new_empty(batch);
  return result;
}

void resolve_main(const RecipeOptions& given, const OpenData& data, ResolvedRecipe& resolved) {
  RecipeOptions& recipe = resolved.recipe;
  resolved.description = data.named.description;
  resolved.generated = data.named.generated;
  resolved.facts = data.facts;
  set_target_defaults(recipe, data.facts);
  recipe.model.options.classes = classes_of(recipe, data.facts);
  count_class_weights(recipe, data.facts);
  recipe.batch = given.batch.value_or(default_batch(data.facts.all_training_samples));
  const Origin::Data origin = origin_of(data.named);
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    resolved.origin.data.push_back(origin);
    OpenData own = data;  // a limit of batches leaves samples by the batch of the phase
    own.facts.training_samples = limited_samples(recipe, recipe.phases[i], data.facts);
    resolved.phases.push_back(resized(own.facts, recipe.data, recipe, i));
    if (!recipe.phases[i].data) check_data(recipe, i, own);
  }
}

void resolve_phase(const RecipeOptions& given, size_t index, const OpenData& data,
                   ResolvedRecipe& resolved) {
  RecipeOptions& recipe = resolved.recipe;
  PhaseOptions& phase = recipe.phases[index];
  if (phase.batch == 0 && !given.batch) phase.batch = batch_of(given, phase, data.facts);
  check_data(recipe, index, data);
  check_same_columns(recipe, index, resolved.facts, data.facts);
  warn_of_other_weights(given, index, resolved.facts, data.facts);
  resolved.origin.data[index] = origin_of(data.named);
  resolved.phases[index] = resized(data.facts, *phase.data, recipe, index);
  if (index + 1 == recipe.phases.size()) resolved.generated = data.named.generated;
}

}  // namespace

ResolvedRecipe resolve_recipe(const RecipeOptions& given, RecipeData& data) {
  ResolvedRecipe resolved{.recipe = given};
  const RecipeOptions& recipe = resolved.recipe;
  resolve_main(given, open_data(recipe, data), resolved);
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    if (recipe.phases[i].data) resolve_phase(given, i, open_data(recipe, i, data), resolved);
  check_same_targets(recipe, resolved.phases);
  check_sample_shape(recipe, resolved.phases.front());
  check_recipe(recipe);  // with the batches that the data has decided
  resolved.origin.recipe = essence_of(recipe);
  return resolved;
}

// A sample shape that the recipe does not give is that of its data.
Model make_model(const RecipeOptions& recipe, const DataFacts& facts,
                 const std::vector<DataFacts>& phases, int64_t ranks) {
  check_weight_columns(recipe, facts);
  std::optional<Model> made;
  make_for(recipe, facts,
           [&] { made.emplace(models::make(recipe.model.name, model_options(recipe, facts))); });
  Model model = *std::move(made);
  check_model(recipe, facts, model);
  warn_of_weights_bundle(recipe, facts);
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    check_batches(recipe, i, phases[i], ranks, [&] { return refuses_one_of(phases[i], model); });
  return model;
}

void check_run(const RecipeOptions& recipe, RecipeData& data, int64_t ranks) {
  const ResolvedRecipe resolved = resolve_recipe(recipe, data);
  const RecipeOptions& run = resolved.recipe;
  const ModelOptions options = models::without_weights(model_options(run, resolved.facts));
  check_weights(run, resolved.facts);
  warn_of_weights_bundle(run, resolved.facts);
  std::optional<ModelSpec> spec;
  try {
    const plan::MetaScope meta;
    std::optional<Model> model;
    make_for(run, resolved.facts, [&] { model.emplace(models::make(run.model.name, options)); });
    check_model(run, resolved.facts, *model);
    spec = model->spec();
    for (size_t i = 0; i < run.phases.size(); ++i) {
      check_batches(run, i, resolved.phases[i], ranks,
                    [&] { return refuses_one_of(resolved.phases[i], *model); });
      check_forward(run, i, resolved.phases[i], *model);
    }
  } catch (const plan::NotPlannable& error) {
    log::debug("the model is not checked: " + std::string(error.what()));
  }
  if (spec) check_formats(run, resolved.phases.back(), *spec);
}

}  // namespace tare

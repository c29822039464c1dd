#include "tare/recipe/phase_data.h"

#include "tare/base/error.h"

namespace tare {

DataOptions data_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  DataOptions data = phase.data.value_or(recipe.data);
  if (phase.size > 0) data.size = phase.size;
  return data;
}

int64_t batch_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.batch > 0 ? phase.batch : recipe.batch;
}

std::string name_of(const RecipeOptions& recipe, size_t phase) {
  const std::string& name = recipe.phases[phase].name;
  return name.empty() ? "phase " + std::to_string(phase) : name;
}

// The same as the fit would say, and classes that no label of a batch has shown yet.
void check_data(const RecipeOptions& recipe, const Splits& data, int64_t batch) {
  if (!data.train) {
    throw ConfigError("recipe.run", "data.train", "leaves no training split", "a part above 0",
                      "0");
  }
  if (batch > data.train->size()) {
    throw ConfigError("recipe.run", "batch", "is larger than the training split",
                      "at most its " + std::to_string(data.train->size()) + " samples",
                      std::to_string(batch));
  }
  const auto labels = static_cast<int64_t>(data.train->labels().size());
  const bool by_class = recipe.loss == "cross_entropy" || recipe.loss == "nll";
  if (by_class && recipe.model.options.classes < labels) {
    throw ConfigError("recipe.run", "model.classes",
                      "is less than the " + std::to_string(labels) + " classes of the data",
                      "at least " + std::to_string(labels),
                      std::to_string(recipe.model.options.classes));
  }
}

ModelOptions model_options(const RecipeOptions& recipe, const Splits& data) {
  ModelOptions model = recipe.model.options;
  if (model.sample_shape.empty() && data.train) model.sample_shape = data.train->sample_shape();
  return model;
}

}  // namespace tare

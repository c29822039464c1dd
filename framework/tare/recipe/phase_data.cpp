#include "tare/recipe/phase_data.h"

#include "tare/base/error.h"
#include "tare/learner/recompute.h"

namespace tare {
namespace {

/// The path of a value that a phase may give itself, and else the recipe.
std::string path_of(const std::string& value, bool own, size_t phase) {
  return own ? "phases." + std::to_string(phase) + '.' + value : value;
}

[[noreturn]] void refuse(const RecipeOptions& recipe, const std::string& path,
                         const std::string& problem, const std::string& allowed,
                         const std::string& got) {
  throw ConfigError("recipe.run", path, problem, allowed, got).within("", recipe.file.place(path));
}

/// Gives a ConfigError of `call` the place of a value.
template <class Call>
void at_value(const RecipeOptions& recipe, const std::string& path, const Call& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    throw error.within("", recipe.file.place(path));
  }
}

}  // namespace

DataOptions data_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  DataOptions data = phase.data.value_or(recipe.data);
  if (phase.size > 0) data.size = phase.size;
  return data;
}

int64_t batch_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.batch > 0 ? phase.batch : recipe.batch;
}

std::optional<int64_t> micro_batch_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.micro_batch.value_or(recipe.micro_batch).samples;
}

std::vector<std::string> recompute_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.recompute.value_or(recipe.recompute).modules;
}

std::vector<std::string> offload_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.offload.value_or(recipe.offload).modules;
}

std::string batch_path(const RecipeOptions& recipe, size_t phase) {
  return path_of("batch", recipe.phases[phase].batch > 0, phase);
}

std::string samples_path(const RecipeOptions& recipe, size_t phase) {
  const PhaseOptions& options = recipe.phases[phase];
  if (!micro_batch_of(recipe, options)) return batch_path(recipe, phase);
  return path_of("micro_batch", options.micro_batch.has_value(), phase);
}

std::string name_of(const RecipeOptions& recipe, size_t phase) {
  const std::string& name = recipe.phases[phase].name;
  return name.empty() ? "phase " + std::to_string(phase) : name;
}

// The same as the fit would say, and classes that no label of a batch has shown yet.
void check_data(const RecipeOptions& recipe, size_t phase, const Splits& data) {
  const PhaseOptions& options = recipe.phases[phase];
  if (!data.train) {
    refuse(recipe, path_of("data.train", options.data.has_value(), phase),
           "leaves no training split", "a part above 0", "0");
  }
  const int64_t batch = batch_of(recipe, options);
  if (batch > data.train->size()) {
    refuse(recipe, batch_path(recipe, phase), "is larger than the training split",
           "at most its " + std::to_string(data.train->size()) + " samples", std::to_string(batch));
  }
  const auto labels = static_cast<int64_t>(data.train->labels().size());
  const bool by_class = recipe.loss == "cross_entropy" || recipe.loss == "nll";
  const int64_t classes = recipe.model.options.classes;
  if (by_class && classes < labels) {
    refuse(recipe, "model.classes",
           "is less than the " + std::to_string(labels) + " classes of the data",
           "at least " + std::to_string(labels), std::to_string(classes));
  }
}

void check_blocks(const RecipeOptions& recipe, Model& model) {
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    const PhaseOptions& phase = recipe.phases[i];
    auto recompute = recompute_of(recipe, phase);
    if (is_auto(recompute)) recompute = {"all"};  // it needs at least one
    at_value(recipe, path_of("recompute", phase.recompute.has_value(), i),
             [&] { model.set_recompute(recompute); });
    at_value(recipe, path_of("offload", phase.offload.has_value(), i),
             [&] { model.set_offload(offload_of(recipe, phase)); });
  }
  model.set_recompute({});
  model.set_offload({});
}

ModelOptions model_options(const RecipeOptions& recipe, const Splits& data) {
  ModelOptions model = recipe.model.options;
  if (model.sample_shape.empty() && data.train) model.sample_shape = data.train->sample_shape();
  return model;
}

}  // namespace tare

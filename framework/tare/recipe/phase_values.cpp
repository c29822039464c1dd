// Finds the values that hold for a phase.
#include "tare/recipe/phase_values.h"

#include "tare/interchange/export_file.h"
#include "tare/train/train_state.h"

namespace tare {

std::string path_of(const std::string& value, bool own, size_t phase) {
  return own ? "phases." + std::to_string(phase) + '.' + value : value;
}

DataOptions data_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  DataOptions data = phase.data.value_or(recipe.data);
  if (phase.size > 0) data.size = phase.size;
  return data;
}

// Without a limit, phases with other batches share what is open.
DataCut cut_of(const RecipeOptions& recipe, const PhaseOptions* phase) {
  DataCut cut{.limit = recipe.limit, .overfit = recipe.overfit};
  if (cut) cut.batch = phase ? given_batch(recipe, *phase) : recipe.batch;
  return cut;
}

int64_t limited_samples(const RecipeOptions& recipe, const PhaseOptions& phase,
                        const DataFacts& data) {
  const int64_t all = data.all_training_samples;
  const int64_t batches = recipe.overfit > 0 ? recipe.overfit : recipe.limit.train_batches;
  const int64_t batch = batch_of(recipe, phase, data);
  return batches == 0 || batches > all / batch ? all : batches * batch;
}

std::optional<int64_t> given_batch(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.batch > 0 ? phase.batch : recipe.batch;
}

int64_t batch_of(const RecipeOptions& recipe, const PhaseOptions& phase, const DataFacts& data) {
  return given_batch(recipe, phase).value_or(default_batch(data.all_training_samples));
}

Duration duration_of(const PhaseOptions& phase) {
  return phase.duration.value_or(Duration{.epochs = phase.epochs});
}

namespace {

SampleOrder order_of(const RecipeOptions& recipe, const PhaseOptions& phase,
                     const DataFacts& data) {
  return {.batch = batch_of(recipe, phase, data),
          .samples = data.training_samples,
          .drop_last = recipe.learner.drop_last.value_or(false)};
}

}  // namespace

FitLength length_of(const RecipeOptions& recipe, const PhaseOptions& phase, const DataFacts& data) {
  return length_of(duration_of(phase), order_of(recipe, phase, data));
}

int64_t epoch_batches(const RecipeOptions& recipe, const PhaseOptions& phase,
                      const DataFacts& data) {
  return order_of(recipe, phase, data).batches();
}

int64_t all_batches(const RecipeOptions& recipe, const PhaseOptions& phase, const DataFacts& data) {
  const FitLength length = length_of(recipe, phase, data);
  return length.batches > 0 ? length.batches : length.epochs * epoch_batches(recipe, phase, data);
}

LearningRate rate_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.lr.value_or(LearningRate(recipe.learner.optimizer.lr));
}

std::string export_name(const RecipeOptions& recipe) { return recipe.export_to.value_or(""); }

std::string export_name(const RecipeOptions& recipe, const std::string& format) {
  const std::filesystem::path bundle = export_name(recipe);
  return bundle.stem().string() + interchange::file_format(format).extension;
}

bool folds_norms(const RecipeOptions& recipe, const std::string& format) {
  return recipe.export_fold_norms && interchange::file_format(format).graph;
}

int64_t opset_of(const RecipeOptions& recipe, const std::string& format) {
  return format == "onnx" ? recipe.export_opset : RecipeOptions{}.export_opset;
}

std::optional<int64_t> micro_batch_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.micro_batch ? phase.micro_batch->samples : recipe.learner.micro_batch;
}

std::vector<std::string> recompute_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.recompute ? phase.recompute->modules : recipe.learner.recompute;
}

std::vector<std::string> offload_of(const RecipeOptions& recipe, const PhaseOptions& phase) {
  return phase.offload ? phase.offload->modules : recipe.learner.offload;
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
  return name.empty() ? phase_number(phase) : name;
}

std::string phase_number(size_t phase) { return "phase " + std::to_string(phase + 1); }

}  // namespace tare

// Puts the numbers of balanced class weights into a recipe.
#include "tare/recipe/class_weights.h"

#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/text_plot.h"
#include "tare/metric/loss.h"
#include "tare/recipe/phase_data.h"

namespace tare {
namespace {

constexpr const char* kPath = "loss.cross_entropy.class_weights";

[[noreturn]] void refuse(const RecipeOptions& recipe, const std::string& why,
                         const std::string& allowed) {
  throw ConfigError("recipe.run", kPath, "cannot be balanced: " + why, allowed, "balanced")
      .within("", recipe.file.place(kPath));
}

std::string class_text(const DataFacts& data, size_t index) {
  const bool named = data.bundle && index < data.bundle->labels.size();
  return named ? '\'' + printable(data.bundle->labels[index]) + '\'' : std::to_string(index);
}

/// Returns samples / (classes x samples of the class); 0 for a class without one.
std::vector<double> weights_of(const DataFacts& data, int64_t classes) {
  int64_t samples = 0;
  for (const auto& [label, count] : data.class_counts) samples += count;
  std::vector<double> weights(static_cast<size_t>(classes), 0.0);
  for (const auto& [label, count] : data.class_counts)
    if (label < classes)  // a model with fewer outputs is refused later
      weights[static_cast<size_t>(label)] =
          static_cast<double>(samples) / static_cast<double>(classes * count);
  return weights;
}

}  // namespace

bool has_balanced_weights(const RecipeOptions& recipe) {
  return loss_name(recipe) == "cross_entropy" &&
         config::read<CrossEntropyOptions>(recipe.learner.loss.options).class_weights.balanced;
}

void count_class_weights(RecipeOptions& recipe, const DataFacts& data) {
  if (!has_balanced_weights(recipe)) return;
  if (data.class_counts.empty())
    refuse(recipe, "the targets of the data are no class labels, one for each sample",
           "a number for each class of the model");
  const std::vector<double> weights = weights_of(data, classes_of(recipe, data));
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] == 0)
      refuse(recipe, "the training split has no sample of the class " + class_text(data, i),
             "data with samples of every class of the model, or a number for each class");
  auto options = config::read<CrossEntropyOptions>(recipe.learner.loss.options);
  options.class_weights = weights;
  recipe.learner.loss = Loss("cross_entropy", options);
}

void warn_of_other_weights(const RecipeOptions& given, size_t phase, const DataFacts& own,
                           const DataFacts& of_phase) {
  if (!has_balanced_weights(given)) return;
  constexpr double kFar = 2;
  const int64_t classes = classes_of(given, own);
  const auto there = weights_of(own, classes), here = weights_of(of_phase, classes);
  for (size_t i = 0; i < here.size(); ++i) {
    const bool near = here[i] < kFar * there[i] && there[i] < kFar * here[i];
    if (here[i] == 0 || near) continue;
    log::warning_once(
        "class_weights: balanced counts the samples of the recipe's data, which give "
        "the class " +
        class_text(own, i) + " a weight of " + short_number(there[i]) + "; the data of " +
        name_of(given, phase) + " would give it " + short_number(here[i]) +
        ": give numbers for both");
    return;
  }
}

}  // namespace tare

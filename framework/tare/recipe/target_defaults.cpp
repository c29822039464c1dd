// Chooses the loss and the metrics that fit the targets.
#include "tare/recipe/target_defaults.h"

#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/recipe/read_recipe.h"

namespace tare {
namespace {

void set_for_floats(RecipeOptions& recipe, const DataFacts& data) {
  if (!recipe.file || data.sample.targets.size() != 1) return;
  const at::Tensor& target = data.sample.target();
  // A distribution over classes fits the loss of classes.
  if (!target.is_floating_point()) return;
  const bool has_labels = data.bundle && !data.bundle->labels.empty();
  std::vector<std::string> chosen;
  if (!recipe.file.has("loss")) {
    recipe.learner.loss = has_labels ? "bce_with_logits" : "mse";
    chosen.push_back("loss: " + loss_name(recipe));
  }
  if (!recipe.file.has("metrics")) {
    // The metric is mae for labels, too, that another loss takes for numbers.
    const bool by_label = has_labels && loss_name(recipe) == "bce_with_logits";
    const char* metric = by_label ? "{f1: {threshold: 0.5}}" : "mae";
    recipe.learner.metrics.resize(1);
    from_node(config::parse_text(metric, "metrics"), recipe.learner.metrics.front());
    chosen.push_back(std::string("metrics: [") + metric + "]");
  }
  if (chosen.empty()) return;
  log::info_once(std::string("the targets are ") +
                 (has_labels ? "labels, of which a sample may have several" : "numbers") +
                 ", and the recipe does not say otherwise: " + listed(chosen));
}

}  // namespace

void set_target_defaults(RecipeOptions& recipe, const DataFacts& data) {
  set_for_floats(recipe, data);
  recipe.targets_known = true;
  check_recipe(recipe);  // the figures that it watches
}

}  // namespace tare

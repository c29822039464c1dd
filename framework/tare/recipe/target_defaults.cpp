// Chooses the loss and the metrics that fit the targets.
#include "tare/recipe/target_defaults.h"

#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"

namespace tare {

void set_target_defaults(RecipeOptions& recipe, const DataFacts& data) {
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
    const char* metric = has_labels ? "{f1: {threshold: 0.5}}" : "mae";
    recipe.learner.metrics.resize(1);
    from_node(config::parse_text(metric, "metrics"), recipe.learner.metrics.front());
    chosen.push_back(std::string("metrics: [") + metric + "]");
  }
  if (chosen.empty()) return;
  log::info_once(std::string("the targets are ") +
                 (has_labels ? "labels, of which a sample may have several" : "numbers") +
                 ", and the recipe does not say otherwise: " + listed(chosen));
}

}  // namespace tare

// Compares the bundle that a recipe takes its weights from with the recipe's data.
#include "tare/recipe/weights_bundle.h"

#include <string>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/log.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/config/field.h"
#include "tare/inference/bundle.h"

namespace tare {
namespace {

std::string text_of(const Transforms& transforms) {
  return transforms.steps().empty() ? "none" : config::flow_text(config::to_node(transforms));
}

std::string text_of(const std::vector<std::string>& labels) {
  constexpr size_t kShown = 3;
  std::string text = std::to_string(labels.size()) + " labels (";
  for (size_t i = 0; i < std::min(labels.size(), kShown); ++i)
    text += (i > 0 ? ", " : "") + printable(labels[i]);
  return text + (labels.size() > kShown ? ", ...)" : ")");
}

}  // namespace

void warn_of_weights_bundle(const RecipeOptions& recipe, const DataFacts& data) {
  const std::string& path = recipe.model.options.weights;
  if (path.empty() || !data.bundle ||
      !checkpoint::SafeTensors::open(path).metadata().contains("tare"))
    return;
  const BundleManifest bundle = open_bundle(path).manifest();
  const std::string only =
      "the weights alone are taken from the bundle " + printable(path) + ": it ";
  const std::string theirs = text_of(bundle.transforms), ours = text_of(data.bundle->transforms);
  if (theirs != ours)
    log::warning(only + "was trained with the transforms " + theirs +
                 ", and data.transforms gives " + ours);
  if (!bundle.labels.empty() && !data.bundle->labels.empty() &&
      bundle.labels != data.bundle->labels)
    log::warning(only + "has " + text_of(bundle.labels) + ", and the data has " +
                 text_of(data.bundle->labels));
}

}  // namespace tare

// Compares the file that a recipe takes its weights from with the recipe's model and data.
#include "tare/recipe/weights_bundle.h"

#include <optional>
#include <string>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/log.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/checkpoint/torch_file.h"
#include "tare/config/field.h"
#include "tare/inference/bundle.h"
#include "tare/model/first_weights.h"
#include "tare/model/registry.h"
#include "tare/recipe/phase_data.h"
#include "tare/trace/trace.h"

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

bool is_bundle(const std::string& path) {
  return !checkpoint::is_torch_file(path) &&
         checkpoint::SafeTensors::open(path).metadata().contains("tare");
}

/// Returns what the weights are loaded into, without values; unset: they are needed to make it.
std::optional<std::vector<NamedTensor>> targets_of(const RecipeOptions& recipe,
                                                   const DataFacts& data) {
  const ModelOptions options = models::without_weights(model_options(recipe, data));
  try {
    const plan::MetaScope meta;
    std::vector<NamedTensor> targets;
    make_for(recipe, data, [&] { targets = models::make(recipe.model.name, options).state(); });
    return targets;
  } catch (const plan::NotPlannable& error) {
    log::debug("the weights are not checked: " + std::string(error.what()));
    return std::nullopt;
  }
}

}  // namespace

void warn_of_weights_bundle(const RecipeOptions& recipe, const DataFacts& data) {
  const std::string& path = recipe.model.options.weights;
  if (path.empty() || !data.bundle || !is_bundle(path)) return;
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
                 text_of(data.bundle->labels) +
                 (bundle.labels.size() == data.bundle->labels.size()
                      ? "; reset_head: true in the first phase begins with a new head"
                      : ""));
}

void check_weights(const RecipeOptions& recipe, const DataFacts& data) {
  const std::string& path = recipe.model.options.weights;
  if (path.empty()) return;
  const auto targets = targets_of(recipe, data);
  const ModelOptions& options = recipe.model.options;
  const std::string head = models::head_of(recipe.model.name, options);
  if (targets)
    make_for(recipe, data, [&] { models::check_weights(*targets, head, path, options.rename); });
  if (data.bundle && is_bundle(path)) static_cast<void>(open_bundle(path));
}

}  // namespace tare

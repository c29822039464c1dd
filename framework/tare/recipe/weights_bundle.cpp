// Compares the file that a recipe takes its weights from with the recipe's model and data.
#include "tare/recipe/weights_bundle.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/checkpoint/torch_file.h"
#include "tare/config/field.h"
#include "tare/inference/bundle.h"
#include "tare/inference/manifest_json.h"
#include "tare/model/first_weights.h"
#include "tare/model/registry.h"
#include "tare/recipe/column_check.h"
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

/// Returns where two lists of labels differ that text_of() shows alike; else nothing.
std::string first_difference(const std::vector<std::string>& theirs,
                             const std::vector<std::string>& ours) {
  if (text_of(theirs) != text_of(ours)) return {};
  const auto [one, other] = std::ranges::mismatch(theirs, ours);
  return ": label " + std::to_string(one - theirs.begin()) + " (from 0) is '" + printable(*one) +
         "' there, and '" + printable(*other) + "' in the data";
}

/// Returns the manifest of a bundle, or of weights that `tare export` wrote; unset: there is none.
std::optional<BundleManifest> manifest_in(const std::string& path) {
  if (!std::filesystem::is_regular_file(path) || checkpoint::is_torch_file(path))
    return std::nullopt;  // which others refuse, or has no manifest
  const auto file = checkpoint::SafeTensors::open(path);
  if (file.metadata().contains("tare")) return open_bundle(path).manifest();
  const auto text = file.metadata().find(kManifestKey);
  if (text == file.metadata().end()) return std::nullopt;
  return manifest_from_json(text->second, path);
}

/// Refuses weights that were trained on rows of other columns than those of the data.
void check_columns_of(const RecipeOptions& recipe, const RowCoding& theirs,
                      const BundleData& data) {
  if (data.rows && same_columns(theirs, *data.rows)) return;
  constexpr size_t kMostNames = 20;
  const auto names_of = [](const RowCoding& rows) {
    std::vector<std::string> names;
    for (const ColumnCoding& column : rows.columns) names.push_back(column.name);
    return names;
  };
  const std::vector<std::string> wanted = names_of(theirs);
  const std::vector<std::string> have =
      data.rows ? names_of(*data.rows) : std::vector<std::string>();
  std::string problem = "was trained on the columns " + listed(wanted, kMostNames) + ", and ";
  std::string allowed = "data with these columns, or no weights";
  if (have.empty()) {
    problem += "the data are no rows of a table";
  } else if (have == wanted) {
    problem = "was trained on columns of the same names with other categories or numbers in them";
    allowed = "data whose training split has the same categories, or no weights";
  } else {
    problem += "the data have " + listed(have, kMostNames);
    std::set<std::string> one(wanted.begin(), wanted.end()), other(have.begin(), have.end());
    if (one == other) allowed = "data.columns: [" + listed(wanted) + "], in this order";
  }
  throw ConfigError("recipe.run", "model.weights", problem, allowed,
                    printable(recipe.model.options.weights, 1000))
      .within("", recipe.file.place("model.weights"));
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
  if (path.empty() || !data.bundle) return;
  const std::optional<BundleManifest> found = manifest_in(path);
  if (!found) return;
  const BundleManifest& bundle = *found;
  const std::string only = "the weights alone are taken from " + printable(path) + ": it ";
  const std::string theirs = text_of(bundle.transforms), ours = text_of(data.bundle->transforms);
  if (theirs != ours)
    log::warning(only + "was trained with the transforms " + theirs +
                 ", and data.transforms gives " + ours);
  if (!bundle.labels.empty() && !data.bundle->labels.empty() &&
      bundle.labels != data.bundle->labels)
    log::warning(only + "has " + text_of(bundle.labels) + ", and the data has " +
                 text_of(data.bundle->labels) +
                 first_difference(bundle.labels, data.bundle->labels) +
                 (bundle.labels.size() == data.bundle->labels.size()
                      ? "; reset_head: true in the first phase begins with a new head"
                      : ""));
}

void check_weight_columns(const RecipeOptions& recipe, const DataFacts& data) {
  const std::string& path = recipe.model.options.weights;
  if (path.empty() || !data.bundle) return;
  if (const auto manifest = manifest_in(path); manifest && manifest->rows)
    check_columns_of(recipe, *manifest->rows, *data.bundle);
}

void check_weights(const RecipeOptions& recipe, const DataFacts& data) {
  check_weight_columns(recipe, data);
  const std::string& path = recipe.model.options.weights;
  if (path.empty()) return;
  const auto targets = targets_of(recipe, data);
  const ModelOptions& options = recipe.model.options;
  const std::string head = models::head_of(recipe.model.name, options);
  if (targets)
    make_for(recipe, data, [&] { models::check_weights(*targets, head, path, options.rename); });
}

}  // namespace tare

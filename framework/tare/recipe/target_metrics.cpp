// Adds metrics of each target, and compares the units of several targets.
#include "tare/recipe/target_metrics.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/text_plot.h"
#include "tare/metric/column_metrics.h"
#include "tare/recipe/phase_values.h"

namespace tare {
namespace {

constexpr size_t kMostTargets = 20;  // with columns of their own in the tables

/// Returns the targets that have figures of their own; empty: there are none.
std::vector<std::string> reported_targets(const RecipeOptions& recipe) {
  std::vector<std::string> targets = recipe.data.targets;
  if (!recipe.phases.empty()) targets = data_of(recipe, recipe.phases.front()).targets;
  const auto differ = [&](const PhaseOptions& phase) {
    return data_of(recipe, phase).targets != targets;
  };
  const bool reported = targets.size() > 1 && targets.size() <= kMostTargets;
  if (!reported || std::ranges::any_of(recipe.phases, differ)) return {};
  return targets;
}

/// Whether the loss adds up the errors of several targets in their units.
bool adds_units(const std::string& loss) {
  constexpr std::array<std::string_view, 3> kOfNumbers{"mse", "l1", "smooth_l1"};
  return std::ranges::find(kOfNumbers, loss) != kOfNumbers.end();
}

}  // namespace

std::vector<Metric> metrics_of(const RecipeOptions& recipe) {
  return with_columns(recipe.learner.metrics, reported_targets(recipe));
}

std::vector<std::string> metric_columns(const RecipeOptions& recipe) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics_of(recipe)) names.push_back(column_of(metric));
  return names;
}

std::vector<std::string> watched_columns(const RecipeOptions& recipe) {
  std::vector<std::string> columns = metric_columns(recipe);
  if (recipe.file && !recipe.file.has("metrics") && !recipe.targets_known)
    columns.insert(columns.end(), {"mae", "f1"});
  return columns;
}

void warn_of_units(const RecipeOptions& recipe, size_t phase, const Splits& data) {
  constexpr double kMostRatio = 1000;  // of deviations
  const std::string loss = loss_name(recipe);
  if (!adds_units(loss) || !data.train || !data.train->labels().empty()) return;
  const at::Tensor targets = data.train->targets();
  if (!targets.defined() || !targets.is_floating_point() || targets.dim() != 2) return;
  const std::vector<std::string> names = data_of(recipe, recipe.phases[phase]).targets;
  if (names.size() < 2 || std::cmp_not_equal(names.size(), targets.size(1))) return;
  const at::Tensor numbers = targets.to(at::kDouble);
  const at::Tensor deviations = numbers.sub(numbers.mean(0)).square().mean(0).sqrt().contiguous();
  const double* deviation = deviations.const_data_ptr<double>();
  const auto [least, most] = std::minmax_element(deviation, deviation + deviations.numel());
  if (!(*least > 0) || *most < kMostRatio * *least) return;
  const auto text = [&](const double* of) {
    return short_number(*of) + " ('" + printable(names[static_cast<size_t>(of - deviation)]) + "')";
  };
  log::warning_once("the deviations of the targets are from " + text(least) + " to " + text(most) +
                    ", and the loss " + loss +
                    " adds up errors in these units, so that it is nearly that of one target "
                    "alone: give the targets units in which their numbers are of similar size");
}

}  // namespace tare

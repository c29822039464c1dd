// Tries the loss and the metrics of a recipe on the targets of its data.
#include "tare/recipe/figure_check.h"

#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/metric/check.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/recipe/phase_values.h"
#include "tare/recipe/refused_value.h"

namespace tare {
namespace {

/// Returns how data of this kind give numbers in place of whole numbers that are classes, in front
/// of what else is allowed; empty: that is not known, or the labels are texts.
std::string as_numbers(const DataOptions& data, const std::vector<std::string>& labels) {
  const auto is_text = [](const std::string& label) { return !config::as_number(label); };
  if (std::ranges::any_of(labels, is_text)) return {};
  if ((data.name == "csv" || data.name == "jsonl") && !data.target.empty())
    return "data.numbers: " + config::flow_text(config::to_node(std::vector{data.target})) +
           ", which reads the target as a number, ";
  if (data.name == "image_list")
    return "data.targets: [label], which reads the column as numbers, ";
  if (data.name == "npy")
    return "labels of float32, by numpy.save(FILE, labels.astype('float32')), ";
  return {};
}

/// Returns what is allowed in place of a loss that does not take targets of numbers or of classes.
/// `as_number`: see as_numbers().
std::string loss_for(const RecipeOptions& recipe, const std::string& as_number, bool numbers) {
  if (numbers) return "mse or another loss of numbers, or another model.classes";
  const std::string loss = loss_name(recipe);
  const bool by_class = loss == "cross_entropy" || loss == "nll";
  const std::string classes = "cross_entropy or another loss of classes, or another model.classes";
  return by_class ? classes : as_number + classes;
}

/// Returns what is allowed in place of a metric, likewise.
std::string metric_for(bool numbers) {
  return std::string(numbers
                         ? "mae or another metric of numbers, {f1: {threshold: 0.5}} where they "
                           "are labels"
                         : "a metric for such targets") +
         ", or another model.classes";
}

}  // namespace

void try_figures(const RecipeOptions& recipe, at::IntArrayRef shape, const at::Tensor& target,
                 const std::string& outputs, const std::string& as_number) {
  const at::Tensor output = at::zeros(shape, at::TensorOptions(c10::kCPU));
  const bool numbers = target.is_floating_point();
  const auto attempt = [&](const std::string& path, const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      const auto* option = dynamic_cast<const ConfigError*>(&error);
      if (option && !option->field().empty())
        refuse(recipe, path + "." + option->field(), option->problem(), option->allowed(),
               option->got());
      refuse(
          recipe, path,
          "does not take the targets of the data with a model of " + outputs + ": " + error.what(),
          path == "loss" ? loss_for(recipe, as_number, numbers) : metric_for(numbers), "");
    }
  };
  attempt("loss", [&] { check_batch(resolve(recipe.learner.loss), output, target); });
  for (size_t i = 0; i < recipe.learner.metrics.size(); ++i)
    attempt("metrics." + std::to_string(i),
            [&] { MetricState(recipe.learner.metrics[i]).update(output, target); });
}

bool has_one_score(const RecipeOptions& recipe, const DataFacts& data) {
  const bool labelled = data.sample.targets.size() == 1 &&
                        data.sample.target().scalar_type() == c10::kLong &&
                        data.sample.target().dim() == 1;
  return loss_name(recipe) == "bce_with_logits" && labelled && data.labels.classes == 2;
}

void check_one_score(const RecipeOptions& recipe, const DataFacts& data, int64_t classes) {
  if (loss_name(recipe) != "bce_with_logits" || data.labels.classes == 0) return;
  if (has_one_score(recipe, data) && classes != 1)
    refuse(recipe, "model.classes",
           "must be one output for the two classes of the data, by the loss bce_with_logits",
           "auto or 1; or the loss cross_entropy", std::to_string(classes));
  if (data.labels.classes > 2 && data.sample.targets.size() == 1 &&
      data.sample.target().scalar_type() == c10::kLong)
    refuse(recipe, "loss",
           "is for two classes, and the data have " + std::to_string(data.labels.classes),
           "cross_entropy, or data with two classes", "bce_with_logits");
}

namespace {

/// Returns "sample 3 (from 0) of the training split".
std::string sample_text(int64_t sample, const std::string& split) {
  return "sample " + std::to_string(sample) + " (from 0) of the " + split + " split";
}

/// Returns the float targets [samples, outputs] of a data set; undefined: it has others.
at::Tensor numbers_of(const Dataset& data) {
  const at::Tensor all = data.targets();
  if (!all.defined() || !all.is_floating_point() || all.dim() != 2) return {};
  return all.to(c10::kFloat).contiguous();
}

/// Refuses `path` with targets outside of 0 to 1.
void refuse_outside(const RecipeOptions& recipe, size_t phase, const Dataset& data,
                    const std::string& split, const std::string& path, const std::string& allowed,
                    const std::string& got) {
  const at::Tensor targets = numbers_of(data);
  if (!targets.defined()) return;
  const int64_t columns = targets.size(1);
  const std::vector<std::string> names = data_of(recipe, recipe.phases[phase]).targets;
  const float* value = targets.const_data_ptr<float>();
  for (int64_t i = 0; i < targets.numel(); ++i) {
    if (value[i] >= 0 && value[i] <= 1) continue;
    const auto column = static_cast<size_t>(i % columns);
    refuse(recipe, path,
           "takes targets from 0 to 1, and the target " +
               (std::ssize(names) == columns ? '\'' + printable(names[column]) + '\''
                                             : std::to_string(column)) +
               " of " + sample_text(i / columns, split) + " is " + config::number_text(value[i]),
           allowed, got);
  }
}

/// Refuses targets that are not the probabilities of classes for cross_entropy.
void check_sums(const RecipeOptions& recipe, const Dataset& data, const std::string& split) {
  constexpr float kMost = 1e-3F;  // from 1, by rounding
  const at::Tensor targets = numbers_of(data);
  if (!targets.defined()) return;
  const float* value = targets.const_data_ptr<float>();
  for (int64_t i = 0; i < targets.size(0); ++i) {
    float sum = 0;
    for (int64_t c = 0; c < targets.size(1); ++c, ++value) sum += *value;
    if (std::abs(sum - 1) <= kMost) continue;
    refuse(recipe, "loss",
           "takes the probabilities of classes, which add up to 1, and the targets of " +
               sample_text(i, split) + " add up to " + config::number_text(sum),
           "bce_with_logits for labels of 0 or 1 of which a sample may have several, or mse or "
           "another loss of numbers",
           "cross_entropy");
  }
}

/// Refuses numbers that are no probabilities for a loss that takes probabilities: cross_entropy
/// takes those of classes, and bce_with_logits one for each output; and numbers that are no labels
/// for a metric of labels.
void check_probabilities(const RecipeOptions& recipe, size_t phase, const Dataset& data,
                         const std::string& split) {
  const std::string loss = loss_name(recipe);
  if (loss == "cross_entropy") check_sums(recipe, data, split);
  if (loss == "bce_with_logits")
    refuse_outside(recipe, phase, data, split, "loss",
                   "mse or another loss of numbers, or data with such targets", loss);
  for (size_t i = 0; i < recipe.learner.metrics.size(); ++i) {
    const Metric& metric = recipe.learner.metrics[i];
    const auto* name = std::get_if<std::string>(&metric);
    const bool has_threshold = metric.options.find("threshold");
    if (!name || !(has_threshold || *name == "auroc" || *name == "average_precision")) continue;
    const std::string path = "metrics." + std::to_string(i), text = metrics::text_of(metric);
    const std::string allowed = "mae or another metric of numbers";
    refuse_outside(recipe, phase, data, split, path, allowed, text);
    if (has_threshold && !loss.empty() && resolve(recipe.learner.loss).activation_name == "none")
      refuse(recipe, path,
             "compares probabilities with its threshold, and a model with the loss " + loss +
                 " gives numbers",
             allowed + ", or the loss bce_with_logits", text);
  }
}

}  // namespace

void check_targets(const RecipeOptions& recipe, size_t phase, const Splits& data, int64_t classes) {
  const std::vector<int64_t> first{0};
  const Batch sample = data.train->get({.indices = first});
  if (sample.targets.size() > 1) return;  // each has an output of its own, known by the model alone
  const at::Tensor target = sample.target();
  if (!target.defined())
    refuse(recipe, "loss",
           "needs labels, and the data set '" + data_of(recipe, recipe.phases[phase]).name +
               "' has none here",
           "data with labels, such as pictures in one folder for each class", loss_name(recipe));
  std::vector<int64_t> shape{1, classes};
  // Values have the shape of the outputs; class labels lack their second dimension.
  const int64_t common = std::min<int64_t>(target.is_floating_point() ? 2 : 1, target.dim());
  shape.insert(shape.end(), target.sizes().begin() + common, target.sizes().end());
  try_figures(recipe, shape, target,
              std::to_string(classes) + (classes == 1 ? " output" : " outputs"),
              as_numbers(data_of(recipe, recipe.phases[phase]), data.train->labels()));
  if (target.is_floating_point() && target.dim() == 2) {
    check_probabilities(recipe, phase, *data.train, "training");
    if (data.valid) check_probabilities(recipe, phase, *data.valid, "validation");
    if (data.test) check_probabilities(recipe, phase, *data.test, "test");
  }
}

}  // namespace tare

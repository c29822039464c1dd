// Counts labels against predictions, and finds the worst samples.
#include "tare/recipe/classification.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>

#include <limits>
#include <utility>

#include "tare/base/error.h"
#include "tare/train/options.h"

namespace tare {
namespace {

constexpr double kLabelThreshold = 0.5;
constexpr size_t kMostNames = 20;  // of the labels of a sample

/// Whether there is one output for two classes, the probability of the second.
bool is_one_probability(const at::Tensor& outputs, size_t classes) {
  return classes == 2 && outputs.size(1) == 1;
}

bool classifies(const Predictions& predictions, size_t classes) {
  const at::Tensor &outputs = predictions.outputs, &targets = predictions.targets;
  return classes >= 2 && classes <= kMostClasses && predictions.more_targets.empty() &&
         outputs.defined() && targets.defined() && outputs.dim() == 2 &&
         (outputs.size(1) == static_cast<int64_t>(classes) ||
          is_one_probability(outputs, classes)) &&
         targets.dim() == 1 && targets.scalar_type() == at::kLong;
}

/// Whether each label of a sample is there or not, and has a probability of its own.
bool has_several_labels(const Predictions& predictions, size_t labels) {
  const at::Tensor &outputs = predictions.outputs, &targets = predictions.targets;
  return labels >= 1 && labels <= kMostClasses && predictions.more_targets.empty() &&
         outputs.defined() && targets.defined() && outputs.dim() == 2 &&
         outputs.size(1) == static_cast<int64_t>(labels) && targets.is_floating_point() &&
         targets.sizes() == outputs.sizes();
}

/// Returns the names of the labels whose numbers are at least 0.5, in one text.
std::string names_of(const at::Tensor& numbers, const std::vector<std::string>& labels) {
  std::vector<std::string> names;
  for (size_t i = 0; i < labels.size(); ++i)
    if (numbers[static_cast<int64_t>(i)].item<double>() >= kLabelThreshold)
      names.push_back(labels[i]);
  return names.empty() ? "(none)" : listed(names, kMostNames);
}

/// Returns the samples from the highest loss to the lowest; none without losses.
std::vector<int64_t> by_loss(const at::Tensor& losses) {
  if (!losses.defined()) return {};
  const at::Tensor order = at::argsort(losses, /*stable=*/true, 0, /*descending=*/true);
  const int64_t* first = order.const_data_ptr<int64_t>();
  return {first, first + order.numel()};
}

Classification of_several_labels(const Predictions& predictions,
                                 const std::vector<std::string>& labels) {
  const at::Tensor outputs = predictions.outputs.to(at::kDouble),
                   targets = predictions.targets.to(at::kDouble);
  const auto output = outputs.accessor<double, 2>(), target = targets.accessor<double, 2>();
  Classification result{.labels = labels};
  result.label_counts.resize(labels.size());
  for (int64_t i = 0; i < outputs.size(0); ++i)
    for (size_t label = 0; label < labels.size(); ++label) {
      const auto at = static_cast<int64_t>(label);
      const bool predicted = output[i][at] >= kLabelThreshold,
                 has = target[i][at] >= kLabelThreshold;
      LabelCounts& counts = result.label_counts[label];
      ++(predicted ? has ? counts.true_positives : counts.false_positives
         : has     ? counts.false_negatives
                   : counts.true_negatives);
    }
  for (const int64_t index : by_loss(predictions.losses)) {
    if (result.worst.size() == kWorstSamples) break;
    WorstSample sample{.index = index,
                       .label = names_of(targets[index], labels),
                       .predicted = names_of(outputs[index], labels),
                       .probability = std::numeric_limits<double>::quiet_NaN(),
                       .loss = predictions.losses[index].item<double>()};
    for (int64_t label = 0; label < outputs.size(1); ++label)
      sample.probabilities.push_back(output[index][label]);
    result.worst.push_back(std::move(sample));
  }
  return result;
}

/// Returns the probability of each class, [samples, classes].
at::Tensor probabilities_of(const at::Tensor& outputs, size_t classes) {
  if (!is_one_probability(outputs, classes)) return outputs;
  return at::cat({outputs.neg().add(1), outputs}, /*dim=*/1);
}

}  // namespace

std::optional<Classification> classification_of(const Predictions& predictions,
                                                const std::vector<std::string>& labels) {
  if (has_several_labels(predictions, labels.size())) return of_several_labels(predictions, labels);
  if (!classifies(predictions, labels.size())) return std::nullopt;
  const auto [probabilities, predicted] =
      probabilities_of(predictions.outputs, labels.size()).max(1);
  const auto targets = predictions.targets.accessor<int64_t, 1>();
  const auto classes = predicted.accessor<int64_t, 1>();
  const auto known = [&](int64_t target) {
    return target >= 0 && target < static_cast<int64_t>(labels.size());
  };
  Classification result{.labels = labels};
  result.counts.assign(labels.size(), std::vector<int64_t>(labels.size(), 0));
  for (int64_t i = 0; i < targets.size(0); ++i)
    if (known(targets[i]))
      ++result.counts[static_cast<size_t>(targets[i])][static_cast<size_t>(classes[i])];
  for (const int64_t index : by_loss(predictions.losses)) {
    if (result.worst.size() == kWorstSamples) break;
    if (!known(targets[index])) continue;
    result.worst.push_back({.index = index,
                            .label = labels[static_cast<size_t>(targets[index])],
                            .predicted = labels[static_cast<size_t>(classes[index])],
                            .probability = probabilities[index].item<double>(),
                            .loss = predictions.losses[index].item<double>()});
  }
  return result;
}

}  // namespace tare

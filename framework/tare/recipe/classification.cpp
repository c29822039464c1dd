// Counts labels against predictions, and finds the worst samples.
#include "tare/recipe/classification.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>

#include "tare/train/options.h"

namespace tare {
namespace {

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

/// Returns the probability of each class, [samples, classes].
at::Tensor probabilities_of(const at::Tensor& outputs, size_t classes) {
  if (!is_one_probability(outputs, classes)) return outputs;
  return at::cat({outputs.neg().add(1), outputs}, /*dim=*/1);
}

}  // namespace

std::optional<Classification> classification_of(const Predictions& predictions,
                                                const std::vector<std::string>& labels) {
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
  if (!predictions.losses.defined()) return result;
  const at::Tensor order = at::argsort(predictions.losses, /*stable=*/true, 0, /*descending=*/true);
  for (int64_t i = 0; i < order.size(0) && result.worst.size() < kWorstSamples; ++i) {
    const int64_t index = order[i].item<int64_t>();
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

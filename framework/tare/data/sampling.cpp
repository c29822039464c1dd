// Draws samples by their weights, and groups samples by their lengths.
#include "tare/data/sampling.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/data/splits.h"
#include "tare/transform/random.h"

namespace tare {

void check_weights(std::span<const double> weights, int64_t samples, const std::string& where) {
  const auto refuse = [&](const std::string& problem, const std::string& got) {
    throw ConfigError(where, "sample_weights", problem,
                      std::to_string(samples) + " numbers >= 0, one of them above 0", got);
  };
  if (std::ssize(weights) != samples)
    refuse("must be as many as the samples of the training split", std::to_string(weights.size()));
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      refuse("has one that is no weight", config::number_text(weight));
    sum += weight;
  }
  if (sum == 0 || !std::isfinite(sum))
    refuse("have a sum that is no weight", config::number_text(sum));
}

std::vector<int64_t> weighted_indices(std::span<const double> weights, uint64_t seed) {
  const auto count = weights.size();
  double sum = 0;
  for (const double weight : weights) sum += weight;
  const double stride = sum / static_cast<double>(count);
  double point = static_cast<double>(RandomBits(seed).uniform()) * stride;
  std::vector<int64_t> indices;
  indices.reserve(count);
  double end = 0;
  size_t last = 0;  // of the samples with a weight, for a point that rounding moves to the end
  for (size_t i = 0; i < count; ++i) {
    if (weights[i] == 0) continue;
    end += weights[i];
    last = i;
    for (; indices.size() < count && point < end; point += stride)
      indices.push_back(static_cast<int64_t>(i));
  }
  indices.resize(count, static_cast<int64_t>(last));
  return indices;
}

SampleWeights class_weights(const DatasetPtr& data, const std::map<std::string, double>& of_labels,
                            const std::string& where) {
  constexpr size_t kMostNames = 20;
  const std::vector<std::string> names = data->labels();
  const auto refuse = [&](const std::string& problem, const std::string& allowed,
                          const std::string& got) {
    throw ConfigError(where, "class_sampling", problem, allowed, got);
  };
  if (!has_class_labels(data) || names.empty())
    refuse("needs targets that are class labels with names", "omit it", "weights");
  std::vector<double> by_class(names.size(), 1);
  for (const auto& [label, weight] : of_labels) {
    const auto found = std::ranges::find(names, label);
    if (found == names.end())
      refuse("has a label that is not in the data" + did_you_mean(label, names),
             listed(names, kMostNames), label);
    by_class[static_cast<size_t>(found - names.begin())] = weight;
  }
  const at::Tensor labels = data->targets().contiguous();
  auto weights = std::make_shared<std::vector<double>>();
  for (const int64_t label :
       std::span(labels.const_data_ptr<int64_t>(), static_cast<size_t>(labels.numel())))
    weights->push_back(label < 0 ? 0.0 : by_class[static_cast<size_t>(label)]);
  if (std::ranges::all_of(*weights, [](double weight) { return weight == 0; }))
    refuse("leaves no sample of the training split", "a weight above 0", "0 for all");
  return weights;
}

SampleWeights balancing_weights(const DatasetPtr& data, const std::string& where) {
  if (!has_class_labels(data))
    throw ConfigError(where, "sampling", "needs targets that are class labels", "each", "balanced");
  const at::Tensor labels = data->targets().contiguous();
  const std::span<const int64_t> all(labels.const_data_ptr<int64_t>(),
                                     static_cast<size_t>(labels.numel()));
  std::map<int64_t, int64_t> counts;
  for (const int64_t label : all) ++counts[label];
  const auto weight_of = [&](int64_t label) {  // losses ignore labels below 0
    return label < 0 ? 0.0 : 1 / static_cast<double>(counts[label]);
  };
  auto weights = std::make_shared<std::vector<double>>();
  weights->reserve(all.size());
  for (const int64_t label : all) weights->push_back(weight_of(label));
  return weights;
}

std::vector<int64_t> sample_lengths(const Dataset& data, const std::string& where) {
  std::vector<int64_t> lengths;
  lengths.reserve(static_cast<size_t>(data.size()));
  for (int64_t i = 0; i < data.size(); ++i) lengths.push_back(data.sample_size(i));
  if (std::ranges::none_of(lengths, [](int64_t length) { return length > 0; }))
    throw ConfigError(where, "group_by_length",
                      "needs samples of different lengths, and these are all of one size",
                      "false, or data such as text_folder or text_list", "true");
  return lengths;
}

namespace {

/// Sorts the samples of each pool by length, the longest first. A rest smaller than a batch belongs
/// to the last pool, so that its batches hold the longest sample.
void sort_pools(std::vector<int64_t>& order, std::span<const int64_t> lengths, int64_t batch) {
  constexpr int64_t kMostBatches = 50;
  const auto longer = [&](int64_t one, int64_t other) {
    return lengths[static_cast<size_t>(one)] > lengths[static_cast<size_t>(other)];
  };
  // With one pool the batches would have the same samples in each epoch.
  const int64_t batches = std::ssize(order) / batch;
  const int64_t pools = std::max<int64_t>(2, (batches + kMostBatches - 1) / kMostBatches);
  const int64_t pool = batch * std::max<int64_t>(1, (batches + pools - 1) / pools);
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = order.end() - begin < pool + batch ? order.end() : begin + pool;
    std::stable_sort(begin, end, longer);
    begin = end;
  }
}

}  // namespace

std::vector<int64_t> grouped_by_length(std::vector<int64_t> order, std::span<const int64_t> lengths,
                                       int64_t batch, uint64_t seed) {
  sort_pools(order, lengths, batch);
  const int64_t whole = std::ssize(order) / batch;
  if (whole == 0) return order;
  std::vector<int64_t> batches = permutation(whole, seed);
  const auto longest_of = [&](int64_t index) {  // it is the first one of the batch
    return lengths[static_cast<size_t>(order[static_cast<size_t>(index * batch)])];
  };
  std::iter_swap(batches.begin(), std::ranges::max_element(batches, {}, longest_of));
  std::vector<int64_t> grouped;
  grouped.reserve(order.size());
  for (const int64_t index : batches)
    grouped.insert(grouped.end(), order.begin() + index * batch,
                   order.begin() + (index + 1) * batch);
  grouped.insert(grouped.end(), order.begin() + whole * batch, order.end());
  return grouped;
}

}  // namespace tare

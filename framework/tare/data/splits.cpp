// Divides data sets into splits and folds, with each class's share.
#include "tare/data/splits.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

// Samples of one part; `what` names it. Not yet checked against the other parts.
int64_t part_size(const char* what, double size, int64_t total) {
  if (!(size >= 0) || size > static_cast<double>(total) || (size > 1 && size != std::floor(size)))
    throw ConfigError(
        "data.split", what, "is not a size of a part",
        "a fraction in [0, 1] or a whole number of at most " + std::to_string(total) + " samples",
        config::number_text(size));
  if (size > 1) return static_cast<int64_t>(size);
  const auto samples = std::llround(size * static_cast<double>(total));
  if (size > 0 && samples == 0)
    throw ConfigError("data.split", what, "leaves a part without samples",
                      "0 for no part, or a larger one", config::number_text(size));
  return samples;
}

std::vector<int64_t> slice(const std::vector<int64_t>& order, int64_t begin, int64_t end) {
  return {order.begin() + begin, order.begin() + end};
}

bool are_class_labels(const at::Tensor& targets) {
  return targets.defined() && targets.dim() == 1 && targets.scalar_type() == at::kLong &&
         targets.device().is_cpu();
}

// The samples of each class, in the order of `order`.
std::vector<std::vector<int64_t>> by_class(const char* where, const DatasetPtr& data,
                                           const std::vector<int64_t>& order) {
  const at::Tensor targets = data->targets();
  if (!are_class_labels(targets))
    throw ConfigError(where, "stratify needs class labels as targets: make it false");
  const at::Tensor flat = targets.contiguous();
  const int64_t* labels = flat.const_data_ptr<int64_t>();
  std::map<int64_t, std::vector<int64_t>> classes;
  for (const int64_t sample : order) classes[labels[sample]].push_back(sample);
  std::vector<std::vector<int64_t>> result;
  for (auto& [label, samples] : classes) result.push_back(std::move(samples));
  return result;
}

// How many of `wanted` samples each class gives: its share, rounded by largest remainders. A class
// gives its last sample only where there is no other way.
std::vector<int64_t> quotas(const std::vector<std::vector<int64_t>>& classes, int64_t wanted) {
  int64_t total = 0;
  for (const auto& samples : classes) total += static_cast<int64_t>(samples.size());
  std::vector<int64_t> result, remainders;
  for (const auto& samples : classes) {
    const int64_t share = static_cast<int64_t>(samples.size()) * wanted;
    result.push_back(total > 0 ? share / total : 0);
    remainders.push_back(total > 0 ? share % total : 0);
  }
  std::vector<size_t> ranking(classes.size());
  std::iota(ranking.begin(), ranking.end(), size_t{0});
  std::ranges::stable_sort(ranking, std::greater<>(), [&](size_t c) { return remainders[c]; });
  int64_t missing = wanted - std::accumulate(result.begin(), result.end(), int64_t{0});
  for (const int64_t kept : {1, 0})
    for (const size_t c : ranking)
      if (missing > 0 && result[c] + kept < static_cast<int64_t>(classes[c].size())) {
        ++result[c];
        --missing;
      }
  return result;
}

// `order` rearranged so that its first `train` samples, the `valid` behind them and the `test`
// behind those have every class in proportion. Within a part the order stays.
std::vector<int64_t> stratified(const DatasetPtr& data, const std::vector<int64_t>& order,
                                int64_t train, int64_t valid, int64_t test) {
  auto classes = by_class("data.split", data, order);
  const auto total = static_cast<int64_t>(order.size());
  std::vector<int> part_of(order.size(), 0);
  const std::vector<int64_t> sizes{train, valid, test, total - train - valid - test};
  for (const int part : {3, 2, 1}) {  // what is left is the training split
    const auto taken = quotas(classes, sizes[static_cast<size_t>(part)]);
    for (size_t c = 0; c < classes.size(); ++c)
      for (int64_t i = 0; i < taken[c]; ++i) {
        part_of[static_cast<size_t>(classes[c].back())] = part;
        classes[c].pop_back();
      }
  }
  std::vector<int64_t> result;
  for (int part = 0; part < 4; ++part)
    for (const int64_t sample : order)
      if (part_of[static_cast<size_t>(sample)] == part) result.push_back(sample);
  return result;
}

// `order` class by class, dealt out to `count` folds like cards; the folds follow one another.
std::vector<int64_t> dealt(const DatasetPtr& data, const std::vector<int64_t>& order,
                           int64_t count) {
  std::vector<std::vector<int64_t>> folds(static_cast<size_t>(count));
  size_t next = 0;
  for (const auto& samples : by_class("data.fold", data, order))
    for (const int64_t sample : samples) folds[next++ % folds.size()].push_back(sample);
  std::vector<int64_t> result;
  for (const auto& samples : folds) result.insert(result.end(), samples.begin(), samples.end());
  return result;
}

}  // namespace

std::vector<int64_t> first_of_each_class(const DatasetPtr& data, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(data->size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  order = stratified(data, order, count, 0, 0);
  order.resize(static_cast<size_t>(count));
  return order;
}

bool has_class_labels(const DatasetPtr& data) { return are_class_labels(data->targets()); }

Splits split(const DatasetPtr& data, const SplitSizes& sizes, uint64_t seed,
             const SplitOptions& options) {
  if (!data) throw ConfigError("data.split", "the data set is null, give one");
  const int64_t total = data->size();
  const int64_t train = part_size("train", sizes.train, total);
  const int64_t valid = part_size("valid", sizes.valid, total);
  int64_t test = part_size("test", sizes.test, total);
  const int64_t surplus = train + valid + test - total;
  const bool fractions = sizes.train <= 1 && sizes.valid <= 1 && sizes.test <= 1;
  const double sum = sizes.train + sizes.valid + sizes.test;
  if (surplus > 0 && !(fractions && sum <= 1 + 1e-9))
    throw ConfigError("data.split", test > 0 ? "test" : "valid",
                      "leaves too few: train, valid and test need " +
                          std::to_string(train + valid + test) + " samples together",
                      "parts of at most " + std::to_string(total) +
                          " samples, such as train: 0.7, "
                          "valid: 0.2, test: 0.1",
                      config::number_text(test > 0 ? sizes.test : sizes.valid));
  // Fractions that fill the set may round up together; the last part gives way.
  const int64_t valid_end = std::min(total, train + valid);
  test = std::min(test, total - valid_end);
  std::vector<int64_t> order = permutation(total, seed);
  if (options.stratify) order = stratified(data, order, train, valid_end - train, test);
  Splits splits;
  if (train > 0) splits.train = subset(data, slice(order, 0, train));
  if (valid_end > train) splits.valid = subset(data, slice(order, train, valid_end), false);
  if (test > 0) splits.test = subset(data, slice(order, valid_end, valid_end + test), false);
  return splits;
}

Splits fold(const DatasetPtr& data, int64_t count, int64_t index, uint64_t seed,
            const SplitOptions& options) {
  if (!data) throw ConfigError("data.fold", "the data set is null, give one");
  const int64_t total = data->size();
  if (count < 2 || count > total || index < 0 || index >= count)
    throw ConfigError("data.fold", "folds must be in [2, " + std::to_string(total) +
                                       "] and the index below them, got " + std::to_string(count) +
                                       " and " + std::to_string(index));
  std::vector<int64_t> order = permutation(total, seed);
  if (options.stratify) order = dealt(data, order, count);
  const int64_t begin = total / count * index + std::min(index, total % count);
  const int64_t end = begin + total / count + (index < total % count ? 1 : 0);
  std::vector<int64_t> valid = slice(order, begin, end);
  order.erase(order.begin() + begin, order.begin() + end);
  return {subset(data, std::move(order)), subset(data, std::move(valid), false), nullptr};
}

}  // namespace tare

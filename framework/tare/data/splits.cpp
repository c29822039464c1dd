#include "tare/data/splits.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tare/base/error.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

// Samples of one part; `what` names it. Not yet checked against the other parts.
int64_t part_size(const char* what, double size, int64_t total) {
  if (!(size >= 0) || size > static_cast<double>(total) || (size > 1 && size != std::floor(size)))
    throw ConfigError(
        "data.split", what, "is no size of a part",
        "a fraction in [0, 1] or a whole number of at most " + std::to_string(total) + " samples",
        std::to_string(size));
  if (size > 1) return static_cast<int64_t>(size);
  const auto samples = std::llround(size * static_cast<double>(total));
  if (size > 0 && samples == 0)
    throw ConfigError("data.split", what, "leaves a part without samples",
                      "0 for no part, or a larger one", std::to_string(size));
  return samples;
}

std::vector<int64_t> slice(const std::vector<int64_t>& order, int64_t begin, int64_t end) {
  return {order.begin() + begin, order.begin() + end};
}

}  // namespace

Splits split(const DatasetPtr& data, const SplitSizes& sizes, uint64_t seed) {
  if (!data) throw ConfigError("data.split", "the data set is null, give one");
  const int64_t total = data->size();
  const int64_t train = part_size("train", sizes.train, total);
  const int64_t valid = part_size("valid", sizes.valid, total);
  int64_t test = part_size("test", sizes.test, total);
  const int64_t surplus = train + valid + test - total;
  const bool fractions = sizes.train <= 1 && sizes.valid <= 1 && sizes.test <= 1;
  const double sum = sizes.train + sizes.valid + sizes.test;
  if (surplus > 0 && !(fractions && sum <= 1 + 1e-9))
    throw ConfigError("data.split", "the parts need " + std::to_string(train + valid + test) +
                                        " samples, the data set has " + std::to_string(total) +
                                        ": make them smaller");
  // Fractions that fill the set may round up together; the last part gives way.
  const int64_t valid_end = std::min(total, train + valid);
  test = std::min(test, total - valid_end);
  const std::vector<int64_t> order = permutation(total, seed);
  Splits splits;
  if (train > 0) splits.train = subset(data, slice(order, 0, train));
  if (valid_end > train) splits.valid = subset(data, slice(order, train, valid_end), false);
  if (test > 0) splits.test = subset(data, slice(order, valid_end, valid_end + test), false);
  return splits;
}

Splits fold(const DatasetPtr& data, int64_t count, int64_t index, uint64_t seed) {
  if (!data) throw ConfigError("data.fold", "the data set is null, give one");
  const int64_t total = data->size();
  if (count < 2 || count > total || index < 0 || index >= count)
    throw ConfigError("data.fold", "folds must be in [2, " + std::to_string(total) +
                                       "] and the index below them, got " + std::to_string(count) +
                                       " and " + std::to_string(index));
  std::vector<int64_t> order = permutation(total, seed);
  const int64_t begin = total / count * index + std::min(index, total % count);
  const int64_t end = begin + total / count + (index < total % count ? 1 : 0);
  std::vector<int64_t> valid = slice(order, begin, end);
  order.erase(order.begin() + begin, order.begin() + end);
  return {subset(data, std::move(order)), subset(data, std::move(valid), false), nullptr};
}

}  // namespace tare

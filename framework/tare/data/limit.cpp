// Takes some samples of each split, spread evenly over it.
#include "tare/data/limit.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"

namespace tare {
namespace {

void require(const char* call, const char* field, int64_t value, int64_t least) {
  if (value < least)
    throw ConfigError(call, field, "is too low", "at least " + std::to_string(least),
                      std::to_string(value));
}

/// Returns the samples of so many batches, or all; a product of both may exceed int64_t.
int64_t samples_of(int64_t batches, int64_t batch, int64_t all) {
  return batches >= all / batch + 1 ? all : std::min(all, batches * batch);
}

DatasetPtr spread(const DatasetPtr& set, int64_t count, bool random) {
  const int64_t all = set->size();
  std::vector<int64_t> indices;
  indices.reserve(static_cast<size_t>(count));
  // i * all / count without a product that is too large.
  for (int64_t i = 0; i < count; ++i) indices.push_back(all / count * i + all % count * i / count);
  return subset(set, std::move(indices), random);
}

DatasetPtr bounded(const DatasetPtr& set, int64_t batches, int64_t batch) {
  if (!set || batches == 0) return set;
  const int64_t count = samples_of(batches, batch, set->size());
  return count == set->size() ? set : spread(set, count, /*random=*/true);
}

}  // namespace

Splits limited(const Splits& data, const LimitOptions& limit, int64_t batch) {
  constexpr const char* kCall = "data.limited";
  require(kCall, "batch", batch, 1);
  require(kCall, "train_batches", limit.train_batches, 0);
  require(kCall, "valid_batches", limit.valid_batches, 0);
  return {.train = bounded(data.train, limit.train_batches, batch),
          .valid = bounded(data.valid, limit.valid_batches, batch),
          .test = data.test};
}

Splits overfitted(const Splits& data, int64_t batches, int64_t batch) {
  constexpr const char* kCall = "data.overfitted";
  require(kCall, "batch", batch, 1);
  require(kCall, "batches", batches, 1);
  if (!data.train)
    throw StateError(kCall, "without data in its training split", "give it a training split");
  const int64_t count = samples_of(batches, batch, data.train->size());
  const DatasetPtr few = spread(data.train, count, /*random=*/false);
  return {.train = few, .valid = few, .test = data.test};
}

}  // namespace tare

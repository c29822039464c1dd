// Collects whole data sets, and checks class indices.
#include "tare/data/dataset.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "tare/base/error.h"

namespace tare {

Batch get_all(const Dataset& data) {
  constexpr int64_t kFew = 256;
  // Samples of different sizes are padded to the longest of their batch, and batches of different
  // lengths cannot be joined, so all of them are read in one batch.
  const int64_t chunk = data.sample_size(0) > 0 ? data.size() : kFew;
  std::vector<int64_t> indices;
  std::vector<Batch> chunks;
  for (int64_t begin = 0; begin < data.size(); begin += chunk) {
    indices.resize(static_cast<size_t>(std::min(chunk, data.size() - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    chunks.push_back(data.get({.indices = indices}));
  }
  return joined(std::move(chunks), [](const auto& parts) { return at::cat(parts); });
}

Batch Dataset::first_sample() const {
  constexpr std::array<int64_t, 1> kFirst{0};
  return get({.indices = kFirst});
}

std::string Dataset::sample_name(int64_t) const { return {}; }

int64_t Dataset::sample_size(int64_t) const { return 0; }

std::vector<int64_t> Dataset::sample_sizes(int64_t index) const { return {sample_size(index)}; }

namespace {

/// Returns for each of sample_sizes() the first of the samples whose size none `beats`.
template <class Compare>
std::vector<int64_t> first_of(const Dataset& data, Compare beats) {
  std::vector<int64_t> sizes = data.sample_sizes(0), samples(sizes.size(), 0);
  for (int64_t i = 1; i < data.size(); ++i) {
    const std::vector<int64_t> other = data.sample_sizes(i);
    for (size_t tensor = 0; tensor < std::min(sizes.size(), other.size()); ++tensor) {
      if (!beats(other[tensor], sizes[tensor])) continue;
      sizes[tensor] = other[tensor];
      samples[tensor] = i;
    }
  }
  return samples;
}

}  // namespace

std::vector<int64_t> smallest_samples(const Dataset& data) {
  return first_of(data, std::less<int64_t>());
}

std::vector<int64_t> largest_samples(const Dataset& data) {
  const std::vector<int64_t> first = data.sample_sizes(0);
  if (std::ranges::none_of(first, [](int64_t size) { return size > 0; })) return {0};
  const auto largest = first_of(data, std::greater<int64_t>()), smallest = smallest_samples(data);
  std::set<int64_t> samples;
  for (size_t tensor = 0; tensor < largest.size(); ++tensor)
    if (largest[tensor] != smallest[tensor]) samples.insert(largest[tensor]);
  if (samples.empty()) samples.insert(0);
  return {samples.begin(), samples.end()};
}

at::Tensor Dataset::targets() const { return get_all(*this).target(); }

void check_labels(const at::Tensor& targets, int64_t classes) {
  if (!targets.defined() || targets.scalar_type() != at::kLong || !targets.device().is_cpu())
    throw ShapeError("data.check_labels", "int64 class indices on the host",
                     targets.defined() ? targets.toString() : "an undefined tensor");
  constexpr int64_t kIgnored = -100;
  const at::Tensor flat = targets.contiguous();
  const int64_t* label = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    if ((label[i] < 0 && label[i] != kIgnored) || label[i] >= classes)
      throw ConfigError("data.check_labels",
                        "class indices must be in [0, " + std::to_string(classes) + "), got " +
                            std::to_string(label[i]) + " at sample " + std::to_string(i) +
                            ": check the labels or the model's classes");
}

}  // namespace tare

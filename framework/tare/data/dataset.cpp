// Collects whole data sets, and checks class indices.
#include "tare/data/dataset.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <array>
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

std::vector<int64_t> largest_samples(const Dataset& data) {
  const std::vector<int64_t> first = data.sample_sizes(0);
  const bool have_sizes = std::ranges::any_of(first, [](int64_t size) { return size > 0; });
  std::vector<int64_t> sizes = first, largest(first.size(), 0);
  std::vector<bool> differ(first.size(), false);
  for (int64_t i = 1; have_sizes && i < data.size(); ++i) {
    const std::vector<int64_t> other = data.sample_sizes(i);
    for (size_t tensor = 0; tensor < std::min(sizes.size(), other.size()); ++tensor) {
      differ[tensor] = differ[tensor] || other[tensor] != first[tensor];
      if (other[tensor] <= sizes[tensor]) continue;
      sizes[tensor] = other[tensor];
      largest[tensor] = i;
    }
  }
  std::set<int64_t> samples;
  for (size_t tensor = 0; tensor < largest.size(); ++tensor)
    if (differ[tensor]) samples.insert(largest[tensor]);
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

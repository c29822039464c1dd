// Collects whole data sets, and checks class indices.
#include "tare/data/dataset.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tare/base/error.h"

namespace tare {

Batch get_all(const Dataset& data) {
  constexpr int64_t kChunk = 256;
  std::vector<int64_t> indices;
  std::vector<at::Tensor> inputs, targets;
  for (int64_t begin = 0; begin < data.size(); begin += kChunk) {
    indices.resize(static_cast<size_t>(std::min(kChunk, data.size() - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    Batch batch = data.get({.indices = indices});
    inputs.push_back(std::move(batch.input));
    if (batch.target.defined()) targets.push_back(std::move(batch.target));
  }
  return {at::cat(inputs), targets.empty() ? at::Tensor() : at::cat(targets)};
}

Batch Batch::narrow(int64_t start, int64_t length) const {
  return {input.narrow(0, start, length),
          target.defined() ? target.narrow(0, start, length) : at::Tensor()};
}

std::string Dataset::sample_name(int64_t) const { return {}; }

at::Tensor Dataset::targets() const { return get_all(*this).target; }

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

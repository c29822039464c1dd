// Copies samples by their indices, and derives their seeds.
#include "tare/data/gather.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <utility>

#include "tare/base/error.h"
#include "tare/transform/random.h"

namespace tare {

void check_indices(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices)
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(size))
      throw ConfigError("data.get", "sample index must be in [0, " + std::to_string(size) +
                                        "), got " + std::to_string(index));
}

at::Tensor gather_rows(const at::Tensor& source, std::span<const int64_t> rows) {
  c10::DimVector shape(source.sizes());
  shape[0] = static_cast<int64_t>(rows.size());
  at::Tensor result = at::empty(shape, source.options());
  const size_t bytes = source.nbytes() / static_cast<size_t>(source.size(0));
  const auto* in = static_cast<const std::byte*>(source.const_data_ptr());
  auto* out = static_cast<std::byte*>(result.mutable_data_ptr());
  for (const int64_t row : rows) {
    std::memcpy(out, in + static_cast<size_t>(row) * bytes, bytes);
    out += bytes;
  }
  return result;
}

std::vector<uint64_t> sample_seeds(const BatchRequest& request, size_t input) {
  constexpr uint64_t kInputs = 0x5eed0f1b;  // not the depth of a list of transforms
  const uint64_t seed =
      input == 0 ? request.seed : derive_seed(derive_seed(request.seed, kInputs), input);
  std::vector<uint64_t> seeds;
  seeds.reserve(request.indices.size());
  for (const int64_t index : request.indices)
    seeds.push_back(derive_seed(seed, static_cast<uint64_t>(index)));
  return seeds;
}

Transforms joined(const Transforms* first, const Transforms& second) {
  std::vector<Transform> steps = first ? first->steps() : std::vector<Transform>();
  steps.insert(steps.end(), second.steps().begin(), second.steps().end());
  return Transforms(std::move(steps));
}

}  // namespace tare

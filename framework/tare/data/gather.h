// Helpers that the data sets share: checking and copying by index, seeds, lists of transforms.
// Internal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tare/data/dataset.h"

namespace tare {

/// Throws ConfigError unless every index is in [0, size).
void check_indices(std::span<const int64_t> indices, int64_t size);
/// Returns the rows of a contiguous host tensor as a new tensor; each row in [0, source.size(0)).
[[nodiscard]] at::Tensor gather_rows(const at::Tensor& source, std::span<const int64_t> rows);
/// Returns the seed of each sample of a request, for the transforms of its `input`-th input.
[[nodiscard]] std::vector<uint64_t> sample_seeds(const BatchRequest& request, size_t input = 0);
/// Returns the steps of `first`, then those of `second`.
[[nodiscard]] Transforms joined(const Transforms* first, const Transforms& second);
}  // namespace tare

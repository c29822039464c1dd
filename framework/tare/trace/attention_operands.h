// Operands and results of attention as the host and cards lay them out. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tare::plan {

using Mask = std::optional<at::Tensor>;

/// Makes a tensor [batch, heads, time, features], with time and heads exchanged in memory.
[[nodiscard]] at::Tensor by_time(const at::Tensor& like, at::IntArrayRef sizes);

/// Makes a tensor without gaps whose dimensions have the memory order of `like`.
[[nodiscard]] at::Tensor in_order_of(const at::Tensor& like, const std::vector<int64_t>& sizes);

/// Whether tensors [batch, heads, time, features] and a mask are such as fused kernels take them.
[[nodiscard]] bool can_be_fused(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, const Mask& mask);

/// Returns the mask to be added to the scores; a boolean one becomes 0 where true, else -infinity.
[[nodiscard]] Mask additive(const Mask& mask, const at::Tensor& query);

/// Returns the mask as [batch, heads, queries, keys].
[[nodiscard]] Mask four_dimensional(const Mask& mask, const at::Tensor& query,
                                    const at::Tensor& key);

}  // namespace tare::plan

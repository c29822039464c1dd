// Lays out the tensors of attention.
#include "tare/trace/attention_operands.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tare/trace/blocks.h"

namespace tare::plan {

using at::Tensor;

Tensor by_time(const Tensor& like, at::IntArrayRef sizes) {
  return fresh({sizes[0], sizes[2], sizes[1], sizes[3]}, like).transpose(1, 2);
}

Tensor in_order_of(const Tensor& like, const std::vector<int64_t>& sizes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return like.stride(static_cast<int64_t>(a)) < like.stride(static_cast<int64_t>(b));
  });
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (const size_t dim : order) {
    strides[dim] = stride;
    stride *= std::max<int64_t>(1, sizes[dim]);
  }
  return at::empty_strided(sizes, strides, like.options());
}

bool can_be_fused(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask) {
  const auto fits = [](const Tensor& t) {
    return t.dim() == 4 && t.stride(3) == 1 && t.size(2) > 0;
  };
  if (!fits(query) || !fits(key) || !fits(value)) return false;
  if (mask && (mask->requires_grad() || (mask->dim() != 2 && mask->dim() != 4))) return false;
  return query.size(0) == key.size(0) && key.size(0) == value.size(0) &&
         query.size(1) == key.size(1) && key.size(1) == value.size(1);
}

Mask additive(const Mask& mask, const Tensor& query) {
  if (!mask || mask->scalar_type() != at::kBool) return mask;
  const auto options = at::TensorOptions().dtype(query.scalar_type()).device(mask->device());
  const Tensor never = at::scalar_tensor(-std::numeric_limits<double>::infinity(), options);
  return at::where(*mask, 0.0, never);
}

Mask four_dimensional(const Mask& mask, const Tensor& query, const Tensor& key) {
  if (!mask) return mask;
  return mask->expand({query.size(0), query.size(1), query.size(2), key.size(2)});
}

}  // namespace tare::plan

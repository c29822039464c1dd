// Pools and sliding windows that have no shape-only kernel in LibTorch.
#include <ATen/native/Pool.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <tuple>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/not_plannable.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::MemoryFormat;
using at::Tensor;

/// Returns the sizes of `self` with its last dimensions replaced.
std::vector<int64_t> with_last(const Tensor& self, IntArrayRef last) {
  auto sizes = self.sizes().vec();
  std::copy(last.begin(), last.end(), sizes.end() - static_cast<int64_t>(last.size()));
  return sizes;
}

/// Makes the gradient, from a copy of `grad` if that has gaps.
Tensor gradient_of(const Tensor& self, const Tensor& grad, MemoryFormat format) {
  Tensor result = at::empty_like(self, format);
  hold_contiguous(grad, format).clear();
  return result;
}

Tensor adaptive_avg_pool2d(const Tensor& self, IntArrayRef output) {
  const auto format = self.suggest_memory_format();
  Tensor result = at::empty(with_last(self, output), self.options(), format);
  hold_contiguous(self, format).clear();
  return result;
}

Tensor adaptive_avg_pool2d_backward(const Tensor& grad, const Tensor& self) {
  Tensor result = at::empty_like(self, self.suggest_memory_format());
  if (for_card()) {
    if (self.suggest_memory_format() == MemoryFormat::Contiguous) hold_contiguous(grad).clear();
    return result;
  }
  const auto format = grad.suggest_memory_format();
  const auto first = hold_contiguous(grad, format), second = hold_contiguous(result, format);
  return result;
}

Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output) {
  return fresh(with_last(self, output), self);
}

Tensor adaptive_avg_pool3d_backward(const Tensor& grad, const Tensor& self) {
  return gradient_of(self, grad, MemoryFormat::Contiguous);
}

int64_t of(IntArrayRef values, size_t i) { return values.size() == 1 ? values[0] : values[i]; }

std::tuple<Tensor, Tensor> max_pool3d(const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                                      IntArrayRef padding, IntArrayRef dilation, bool ceil) {
  if (self.suggest_memory_format() != MemoryFormat::Contiguous)
    throw NotPlannable("aten::max_pool3d_with_indices", "is not known with channels last",
                       "plan with contiguous()");
  const auto window = stride.empty() ? kernel : stride;
  std::vector<int64_t> output;
  for (size_t i = 0; i < 3; ++i)
    output.push_back(at::native::pooling_output_shape(
        self.size(self.dim() - 3 + static_cast<int64_t>(i)), of(kernel, i), of(padding, i),
        of(window, i), of(dilation, i), ceil));
  const auto sizes = with_last(self, output);
  const Tensor result = fresh(sizes, self);
  const Tensor indices = at::empty(sizes, self.options().dtype(at::kLong));
  hold_contiguous(self).clear();
  return {result, indices};
}

Tensor max_pool3d_backward(const Tensor& grad, const Tensor& self, IntArrayRef, IntArrayRef,
                           IntArrayRef, IntArrayRef, bool, const Tensor&) {
  return gradient_of(self, grad, MemoryFormat::Contiguous);
}

/// Pads by `padding`: left, right, top, bottom.
Tensor reflection_pad2d(const Tensor& self, IntArrayRef padding) {
  const int64_t height = self.size(-2) + padding[2] + padding[3],
                width = self.size(-1) + padding[0] + padding[1];
  return at::empty(with_last(self, {height, width}), self.options(), self.suggest_memory_format());
}

Tensor reflection_pad2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef) {
  return gradient_of(self, grad, self.suggest_memory_format());
}

/// A card takes a gradient with gaps as it is.
Tensor replication_pad2d_backward(const Tensor& grad, const Tensor& self, IntArrayRef) {
  const auto format = self.suggest_memory_format();
  return for_card() ? at::empty_like(self, format) : gradient_of(self, grad, format);
}

}  // namespace

void add_pool_kernels(Kernels& kernels) {
  kernels.add("aten::_adaptive_avg_pool2d", &adaptive_avg_pool2d);
  kernels.add("aten::_adaptive_avg_pool2d_backward", &adaptive_avg_pool2d_backward);
  kernels.add("aten::_adaptive_avg_pool3d", &adaptive_avg_pool3d);
  kernels.add("aten::_adaptive_avg_pool3d_backward", &adaptive_avg_pool3d_backward);
  kernels.add("aten::max_pool3d_with_indices", &max_pool3d);
  kernels.add("aten::max_pool3d_with_indices_backward", &max_pool3d_backward);
  kernels.add("aten::reflection_pad2d", &reflection_pad2d);
  kernels.add("aten::reflection_pad2d_backward", &reflection_pad2d_backward);
  kernels.add("aten::replication_pad2d_backward", &replication_pad2d_backward);
}

}  // namespace tare::plan

// Losses.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/empty_like.h>

#include "tare/plan/blocks.h"
#include "tare/plan/dispatch.h"
#include "tare/plan/trace.h"

namespace tare::plan {
namespace {

using at::Tensor;

/// The host reduces into the memory of a result of full size, and keeps that.
Tensor reduced(const char* op, const Tensor& self, const Tensor& target, int64_t reduction) {
  if (self.scalar_type() != target.scalar_type())
    throw CannotTell(op, "is not known for an output and a target of two dtypes",
                     "bring them to one");
  Tensor result = fresh(at::infer_size(self.sizes(), target.sizes()), self);
  if (reduction == at::Reduction::None) return result;
  const auto each = hold(bytes_of(result.numel(), result.scalar_type()));
  result.resize_({});
  if (reduction == at::Reduction::Sum) return result;
  const auto count = hold(bytes_of(1, at::kLong)),
             converted = hold(bytes_of(1, result.scalar_type()));
  return result;
}

Tensor mse(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced("aten::mse_loss", self, target, reduction);
}

Tensor smooth_l1(const Tensor& self, const Tensor& target, int64_t reduction, double) {
  return reduced("aten::smooth_l1_loss", self, target, reduction);
}

Tensor mse_backward(const Tensor&, const Tensor& self, const Tensor&, int64_t) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

Tensor& smooth_l1_backward_out(const Tensor&, const Tensor&, const Tensor&, int64_t, double,
                               Tensor& grad_input) {
  return grad_input;
}

}  // namespace

void add_loss_kernels(Kernels& kernels) {
  kernels.add("aten::mse_loss", &mse);
  kernels.add("aten::mse_loss_backward", &mse_backward);
  kernels.add("aten::smooth_l1_loss", &smooth_l1);
  kernels.add("aten::smooth_l1_loss_backward.grad_input", &smooth_l1_backward_out);
}

}  // namespace tare::plan

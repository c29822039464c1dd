// Losses.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

#include <tuple>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/not_plannable.h"

namespace tare::plan {
namespace {

using at::Tensor;

/// The host reduces into the memory of a result of full size, and keeps that.
Tensor reduced(const char* op, const Tensor& self, const Tensor& target, int64_t reduction) {
  if (self.scalar_type() != target.scalar_type())
    throw NotPlannable(op, "is not known for an output and a target of two dtypes",
                       "bring them to one");
  Tensor result = fresh(at::infer_size(self.sizes(), target.sizes()), self);
  if (reduction == at::Reduction::None) return result;
  const auto each = hold(bytes_of(result.numel(), result.scalar_type()));
  result.resize_({});
  if (reduction == at::Reduction::Sum) return result;
  const auto count = hold_on_host(bytes_of(1, at::kLong)),
             converted = hold_on_host(bytes_of(1, result.scalar_type()));
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

/// Loss and summed weight, of classes on the pixels of an image.
std::tuple<Tensor, Tensor> nll_loss2d(const Tensor& self, const Tensor& target,
                                      const std::optional<Tensor>&, int64_t reduction, int64_t) {
  const bool each = reduction == at::Reduction::None;
  const Tensor total = fresh({}, self);
  const Tensor loss = each ? fresh(target.sizes(), self) : fresh({}, self);
  if (each) return {loss, total};
  const auto input_copy = hold_contiguous(self), target_copy = hold_contiguous(target);
  return {loss, total};
}

Tensor nll_loss2d_backward(const Tensor&, const Tensor& self, const Tensor&,
                           const std::optional<Tensor>&, int64_t, int64_t, const Tensor&) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

/// Computes the loss of each element, then the sum or mean by separate operators.
Tensor elementwise(const Tensor& each, int64_t reduction) {
  if (reduction == at::Reduction::None) return each;
  return reduction == at::Reduction::Mean ? each.mean() : each.sum();
}

Tensor huber(const Tensor& self, const Tensor& target, int64_t reduction, double) {
  return elementwise(fresh(at::infer_size(self.sizes(), target.sizes()), self), reduction);
}

Tensor huber_backward(const Tensor&, const Tensor& self, const Tensor&, int64_t, double) {
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

void require_no_weights(const char* op, const std::optional<Tensor>& weight) {
  if (weight && weight->defined())
    throw NotPlannable(op, "is not known with weights", "plan without");
}

/// On the host the result, a single number, keeps the memory of the losses of all elements.
Tensor binary_cross_entropy(const Tensor& self, const Tensor&, const std::optional<Tensor>& weight,
                            int64_t reduction) {
  require_no_weights("aten::binary_cross_entropy", weight);
  Tensor each = at::empty_like(self);
  if (reduction == at::Reduction::None) return each;
  const Tensor loss = elementwise(each, reduction);
  return each.resize_({});
}

/// For a mean, the gradient of the sum is divided in place, so that no more memory is allocated.
Tensor binary_cross_entropy_backward(const Tensor&, const Tensor& self, const Tensor&,
                                     const std::optional<Tensor>& weight, int64_t reduction) {
  require_no_weights("aten::binary_cross_entropy_backward", weight);
  Tensor result = at::empty_like(self);
  if (reduction == at::Reduction::Mean) result.div_(self.numel());
  return result;
}

void with_logits(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  const auto arguments = op.schema().arguments().size();
  if (torch::jit::peek(*stack, 3, arguments).isTensor())
    throw NotPlannable("aten::binary_cross_entropy_with_logits", "is not known with pos_weight",
                       "plan without");
  op.redispatchBoxed(keys, stack);
}

}  // namespace

void add_loss_kernels(Kernels& kernels) {
  kernels.add("aten::binary_cross_entropy", &binary_cross_entropy);
  kernels.add("aten::binary_cross_entropy_backward", &binary_cross_entropy_backward);
  kernels.add_boxed<&with_logits>("aten::binary_cross_entropy_with_logits");
  kernels.add("aten::huber_loss", &huber);
  kernels.add("aten::huber_loss_backward", &huber_backward);
  kernels.add("aten::mse_loss", &mse);
  kernels.add("aten::mse_loss_backward", &mse_backward);
  kernels.add("aten::nll_loss2d_backward", &nll_loss2d_backward);
  kernels.add("aten::nll_loss2d_forward", &nll_loss2d);
  kernels.add("aten::smooth_l1_loss", &smooth_l1);
  kernels.add("aten::smooth_l1_loss_backward.grad_input", &smooth_l1_backward_out);
}

}  // namespace tare::plan

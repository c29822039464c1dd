// Operators on one or two tensors, element by element. The host brings operands of another dtype
// to the common one in a copy, and makes a number a tensor of its own; a card converts while it
// reads, and its numbers are tensors of the host.
#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>

#include <tuple>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/gradient_sum.h"

namespace tare::plan {
namespace {

using at::Tensor;
using torch::jit::Stack;

void binary(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor a = operands[0].toTensor(), b = operands[1].toTensor();
  const auto common = at::result_type(a, b);
  const c10::DataPtr first = hold_on_host(converted_bytes(a, common)),
                     second = hold_on_host(converted_bytes(b, common));
  op.redispatchBoxed(keys, stack);
}

/// Runs like binary(), or in place: what is left on the stack is the result.
template <bool (*InPlace)(const Tensor&)>
void overwriting(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const size_t arguments = op.schema().arguments().size();
  if (!InPlace(torch::jit::peek(*stack, 0, arguments).toTensor())) return binary(op, keys, stack);
  torch::jit::drop(*stack, arguments - 1);
}

void masked_fill(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  if (!is_gradient_of_extreme()) return op.redispatchBoxed(keys, stack);
  torch::jit::drop(*stack, op.schema().arguments().size() - 1);
}

// LibTorch's kernel continues with the one for two tensors.
void with_number(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const c10::DataPtr number = hold_on_host(bytes_of(1, operands[1].toScalar().type()));
  op.redispatchBoxed(keys, stack);
}

// The number becomes a tensor, and that one of the common dtype; the result comes after both.
void compare_with_number(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor self = operands[0].toTensor();
  const auto number = operands[1].toScalar();
  c10::DataPtr wrapped = hold_on_host(bytes_of(1, number.type()));
  const auto common = at::result_type(self, number);
  const c10::DataPtr converted = hold_on_host(converted_bytes(self, common));
  c10::DataPtr cast = hold_on_host(common == number.type() ? 0 : bytes_of(1, common));
  op.redispatchBoxed(keys, stack);
  wrapped.clear();
}

/// Returns a result as LibTorch's iterator lays it out: in the default layout where the operand has
/// that and another one at once, as a single pixel does.
Tensor iterated(const Tensor& self, const at::TensorOptions& options) {
  return self.is_contiguous() ? at::empty(self.sizes(), options) : at::empty_like(self, options);
}

/// Handles operators with a result like their first operand, for which LibTorch has no kernel for
/// meta tensors or one with another result.
template <bool Iterated>
void like_first(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const size_t arguments = op.schema().arguments().size();
  const Tensor self = torch::jit::peek(*stack, 0, arguments).toTensor();
  torch::jit::drop(*stack, arguments);
  stack->emplace_back(Iterated ? iterated(self, self.options()) : at::empty_like(self));
}

Tensor logical(const Tensor& self, const Tensor& other) {
  return at::empty(at::infer_size(self.sizes(), other.sizes()),
                   self.options().dtype(at::kBool).device(c10::kMeta));
}

Tensor& logical_(Tensor& self, const Tensor&) { return self; }

/// Gradients of the input and, for each element, of its slope.
std::tuple<Tensor, Tensor> prelu_backward(const Tensor&, const Tensor& self, const Tensor&) {
  const Tensor of_self = at::empty_like(self);
  return {of_self, at::empty_like(self)};
}

Tensor glu_backward(const Tensor&, const Tensor& self, int64_t) {
  return fresh(self.sizes(), self);
}

Tensor is_nan(const Tensor& self) { return iterated(self, self.options().dtype(at::kBool)); }

}  // namespace

void add_pointwise_kernels(Kernels& kernels) {
  kernels.add_boxed<&overwriting<&sums_in_place>>("aten::add.Tensor");
  for (const auto* name : {"aten::sub.Tensor", "aten::mul.Tensor"})
    kernels.add_boxed<&overwriting<&is_loss_gradient>>(name);
  kernels.add_boxed<&masked_fill>("aten::masked_fill.Scalar");
  for (const auto* name :
       {"aten::add_.Tensor", "aten::sub_.Tensor", "aten::mul_.Tensor", "aten::mul.out",
        "aten::div.Tensor", "aten::div_.Tensor", "aten::eq.Tensor", "aten::ne.Tensor",
        "aten::lt.Tensor", "aten::le.Tensor", "aten::gt.Tensor", "aten::ge.Tensor"})
    kernels.add_boxed<&binary>(name);
  for (const auto* name :
       {"aten::add.Scalar", "aten::add_.Scalar", "aten::sub.Scalar", "aten::sub_.Scalar",
        "aten::mul.Scalar", "aten::mul_.Scalar", "aten::div.Scalar", "aten::div_.Scalar"})
    kernels.add_boxed<&with_number>(name);
  for (const auto* name : {"aten::eq.Scalar", "aten::ne.Scalar", "aten::lt.Scalar",
                           "aten::le.Scalar", "aten::gt.Scalar", "aten::ge.Scalar"})
    kernels.add_boxed<&compare_with_number>(name);
  for (const auto* name : {"aten::abs", "aten::relu", "aten::hardtanh", "aten::hardtanh_backward",
                           "aten::hardswish", "aten::hardswish_backward"})
    kernels.add_boxed<&like_first<true>>(name);
  for (const auto* name : {"aten::flip", "aten::_prelu_kernel"})
    kernels.add_boxed<&like_first<false>>(name);
  for (const auto* name : {"aten::logical_and", "aten::logical_or", "aten::logical_xor"})
    kernels.add(name, &logical);
  for (const auto* name : {"aten::logical_and_", "aten::logical_or_", "aten::logical_xor_"})
    kernels.add(name, &logical_);
  kernels.add("aten::_prelu_kernel_backward", &prelu_backward);
  kernels.add("aten::glu_backward", &glu_backward);
  kernels.add("aten::isnan", &is_nan);
}

}  // namespace tare::plan

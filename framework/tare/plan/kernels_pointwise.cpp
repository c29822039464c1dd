// Operators on one or two tensors, element by element. The host brings operands of another dtype
// to the common one in a copy, and makes a number a tensor of its own.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/result_type.h>

#include "tare/plan/blocks.h"
#include "tare/plan/dispatch.h"
#include "tare/plan/gradient_sum.h"

namespace tare::plan {
namespace {

using at::Tensor;
using torch::jit::Stack;

c10::DataPtr promoted(const Tensor& operand, c10::ScalarType common) {
  return hold(operand.scalar_type() == common ? 0 : bytes_of(operand.numel(), common));
}

void binary(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor a = operands[0].toTensor(), b = operands[1].toTensor();
  const auto common = at::result_type(a, b);
  const c10::DataPtr first = promoted(a, common), second = promoted(b, common);
  op.redispatchBoxed(keys, stack);
}

/// Like binary(), or in place: what is left on the stack is the result.
template <bool (*InPlace)(const Tensor&)>
void overwriting(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const size_t arguments = op.schema().arguments().size();
  if (!InPlace(torch::jit::peek(*stack, 0, arguments).toTensor())) return binary(op, keys, stack);
  torch::jit::drop(*stack, arguments - 1);
}

// LibTorch's kernel goes on to the one for two tensors.
void with_number(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const c10::DataPtr number = hold(bytes_of(1, operands[1].toScalar().type()));
  op.redispatchBoxed(keys, stack);
}

}  // namespace

void add_pointwise_kernels(Kernels& kernels) {
  kernels.add_boxed<&overwriting<&sums_in_place>>("aten::add.Tensor");
  for (const auto* name : {"aten::sub.Tensor", "aten::mul.Tensor"})
    kernels.add_boxed<&overwriting<&is_loss_gradient>>(name);
  for (const auto* name :
       {"aten::add_.Tensor", "aten::sub_.Tensor", "aten::mul_.Tensor", "aten::div.Tensor",
        "aten::div_.Tensor", "aten::eq.Tensor", "aten::ne.Tensor", "aten::lt.Tensor",
        "aten::le.Tensor", "aten::gt.Tensor", "aten::ge.Tensor"})
    kernels.add_boxed<&binary>(name);
  for (const auto* name :
       {"aten::add.Scalar", "aten::add_.Scalar", "aten::sub.Scalar", "aten::sub_.Scalar",
        "aten::mul.Scalar", "aten::mul_.Scalar", "aten::div.Scalar", "aten::div_.Scalar"})
    kernels.add_boxed<&with_number>(name);
}

}  // namespace tare::plan

// Sums, means and the like.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "tare/plan/blocks.h"
#include "tare/plan/dispatch.h"

namespace tare::plan {
namespace {

using at::Tensor;
using torch::jit::Stack;

c10::DataPtr copied(const Tensor& self, c10::ScalarType dtype) {
  return hold(dtype == self.scalar_type() ? 0 : bytes_of(self.numel(), dtype));
}

// To another dtype the host sums a copy of it; booleans and integers are summed as int64.
void sum(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor self = operands[0].toTensor();
  const auto asked = operands[3].toOptional<c10::ScalarType>();
  const bool integral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/true);
  const auto dtype = asked.value_or(integral ? at::kLong : self.scalar_type());
  op.redispatchBoxed(keys, stack);
  const c10::DataPtr copy = copied(self, dtype);
}

// A sum, then a division by the count, which becomes a tensor, and that one of the result's dtype.
void mean(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto operands = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor self = operands[0].toTensor();
  const auto dtype = operands[3].toOptional<c10::ScalarType>().value_or(self.scalar_type());
  op.redispatchBoxed(keys, stack);
  copied(self, dtype).clear();
  const c10::DataPtr count = hold(bytes_of(1, at::kLong)), converted = hold(bytes_of(1, dtype));
}

}  // namespace

void add_reduction_kernels(Kernels& kernels) {
  kernels.add_boxed<&sum>("aten::sum.dim_IntList");
  kernels.add_boxed<&mean>("aten::mean.dim");
}

}  // namespace tare::plan

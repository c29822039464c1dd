// Sends operators on meta tensors to their shape-only kernels.
#include "tare/trace/dispatch.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "tare/base/immortal.h"
#include "tare/trace/composites.h"
#include "tare/trace/deterministic.h"
#include "tare/trace/dispatch_key.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using c10::IValue;
using torch::jit::Stack;

Kernels all_kernels() {
  Kernels all;
  add_activation_kernels(all);
  add_attention_kernels(all);
  add_contiguous_kernels(all);
  add_convolution_kernels(all);
  add_index_kernels(all);
  add_loss_kernels(all);
  add_matrix_kernels(all);
  add_norm_kernels(all);
  add_optimizer_kernels(all);
  add_pointwise_kernels(all);
  add_pool_kernels(all);
  add_recurrent_kernels(all);
  add_reduction_kernels(all);
  add_upsample_kernels(all);
  return all;
}

const Kernels& kernels() {
  static Immortal<Kernels> all(all_kernels());
  return *all;
}

enum class Operands { none, meta, other };

bool is_meta(const at::Tensor& tensor) { return tensor.defined() && tensor.is_meta(); }

Operands operands_of(const IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return Operands::none;
    return tensor.is_meta() ? Operands::meta : Operands::other;
  }
  if (value.isTensorList()) {
    const auto list = value.toTensorList();
    if (list.empty()) return Operands::none;
    return is_meta(list.get(0)) ? Operands::meta : Operands::other;
  }
  if (!value.isList()) return Operands::none;
  for (const IValue& item : value.toListRef()) {
    if (const auto found = operands_of(item); found != Operands::none) return found;
  }
  return Operands::none;
}

// A meta tensor may stand beside a number, which LibTorch wraps in a host tensor.
Operands operands_of(const Stack& stack, size_t count) {
  auto found = Operands::none;
  for (const IValue& value : torch::jit::last(stack, count)) {
    const auto of_value = operands_of(value);
    if (of_value == Operands::meta) return of_value;
    if (of_value == Operands::other) found = of_value;
  }
  return found;
}

/// Sets the operator's device argument, if it has one, to meta. A missing device follows the
/// operand, if there is one.
void redirect_device(const c10::FunctionSchema& schema, Stack& stack, Operands operands) {
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != "device") continue;
    IValue& value = torch::jit::peek(stack, i, arguments.size());
    if (value.isDevice() || (value.isNone() && operands == Operands::none))
      value = c10::Device(c10::kMeta);
  }
}

// LibTorch has a fallback of its own for meta tensors, which only throws: so it is asked for
// kernels that work on any backend, besides those for meta.
void require_shape_only(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  for (const auto key : {DispatchKey::Meta, DispatchKey::CompositeExplicitAutograd,
                         DispatchKey::CompositeExplicitAutogradNonFunctional,
                         DispatchKey::CompositeImplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return;
  }
  const auto& name = op.operator_name().name;
  if (name == "aten::_local_scalar_dense")
    throw NotPlannable(name, "reads the value of a tensor, and a plan has none",
                       "decide by shapes, or plan a part that reads no value");
  throw NotPlannable(name, "has no shape-only kernel", "plan a part without it");
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto& schema = op.schema();
  const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  const auto operands = operands_of(*stack, schema.arguments().size());
  redirect_device(schema, *stack, operands);
  if (operands == Operands::other) return op.redispatchBoxed(below, stack);
  require_deterministic(op, *stack);
  const WorkingOp working(op.operator_name());
  if (const auto* kernel = kernels().find(op.operator_name()))
    return kernel->callBoxed(op, below, stack);
  require_shape_only(op);
  op.redispatchBoxed(below, stack);
}

}  // namespace

void register_fallback() {
  // For the life of the process: another thread may be in a MetaScope when this one ends.
  static Immortal<c10::RegistrationHandleRAII> registered(
      c10::Dispatcher::singleton().registerFallback(
          kKey, c10::KernelFunction::makeFromBoxedFunction<&fallback>(), "tare::plan"));
  static_cast<void>(registered);
  static const bool composites = (register_composites(), true);
  static_cast<void>(composites);
}

}  // namespace tare::plan

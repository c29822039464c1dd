// Casts operands of meta tensors as autocast does on a card.
#include "tare/trace/autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "tare/base/immortal.h"
#include "tare/memory/libtorch.h"
#include "tare/trace/card_recurrent.h"

namespace tare::plan {
namespace {

using at::Tensor;
using at::autocast::CastPolicy;
using c10::IValue;
using torch::jit::Stack;
using Policies = std::unordered_map<c10::OperatorName, CastPolicy>;

/// Adds operators: a name, or a name and an overload, as LibTorch's lists have them.
void add(Policies& all, CastPolicy policy, const std::string& name,
         const std::string& overload = "") {
  all.emplace(c10::OperatorName("aten::" + name, overload), policy);
}

// NOLINTBEGIN(cppcoreguidelines-macro-usage): LibTorch's lists are macros
#define TARE_TEXT_1(name) #name
#define TARE_TEXT_2(name, overload) #name, #overload
#define TARE_TEXT_OF(first, second, chosen, ...) chosen
#define TARE_TEXT(...) TARE_TEXT_OF(__VA_ARGS__, TARE_TEXT_2, TARE_TEXT_1)(__VA_ARGS__)
#define TARE_ADD(policy, ...) add(all, policy, TARE_TEXT(__VA_ARGS__));
#define TARE_ADD_LOWER(...) TARE_ADD(CastPolicy::lower_precision_fp, __VA_ARGS__)
#define TARE_ADD_FLOAT(...) TARE_ADD(CastPolicy::fp32, __VA_ARGS__)
#define TARE_ADD_DTYPE(...) TARE_ADD(CastPolicy::fp32_set_opt_dtype, __VA_ARGS__)
#define TARE_ADD_PROMOTE(...) TARE_ADD(CastPolicy::promote, __VA_ARGS__)

Policies policies() {
  Policies all;
  AT_FORALL_LOWER_PRECISION_FP(TARE_ADD_LOWER)
  AT_FORALL_FP32(TARE_ADD_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(TARE_ADD_DTYPE)
  AT_FORALL_PROMOTE(TARE_ADD_PROMOTE)
  for (const char* overload : {"Scalar", "ScalarOpt_dim"})
    add(all, CastPolicy::fp32_append_dtype, "norm", overload);
  return all;
}

#undef TARE_TEXT_1
#undef TARE_TEXT_2
#undef TARE_TEXT_OF
#undef TARE_TEXT
#undef TARE_ADD
#undef TARE_ADD_LOWER
#undef TARE_ADD_FLOAT
#undef TARE_ADD_DTYPE
#undef TARE_ADD_PROMOTE
// NOLINTEND(cppcoreguidelines-macro-usage)

bool is_cast(const Tensor& tensor) {
  return tensor.defined() && tensor.is_meta() && tensor.is_floating_point() &&
         tensor.scalar_type() != c10::kDouble;
}

/// Calls `action` with each tensor among the operands. The last operand comes first, as where GCC
/// evaluates the arguments of LibTorch's calls: the order of the casts is that of their backward.
template <class Action>
void for_each_tensor(Stack& stack, size_t count, const Action& action) {
  for (size_t i = count; i-- > 0;) {
    IValue& value = torch::jit::peek(stack, i, count);
    if (value.isTensor()) {
      Tensor tensor = value.toTensor();
      if (action(tensor)) value = tensor;
    } else if (value.isTensorList()) {
      std::vector<Tensor> tensors = value.toTensorVector();
      bool changed = false;
      for (Tensor& tensor : tensors) changed = action(tensor) || changed;
      if (changed) value = tensors;
    }
  }
}

void cast_all(Stack& stack, size_t count, c10::ScalarType type) {
  for_each_tensor(stack, count, [type](Tensor& tensor) {
    if (!is_cast(tensor) || tensor.scalar_type() == type) return false;
    tensor = tensor.to(type);
    return true;
  });
}

/// Casts to the widest of the operands' types.
void promote_all(Stack& stack, size_t count) {
  c10::ScalarType widest = at::autocast::get_autocast_dtype(libtorch::kMetaAutocast);
  for_each_tensor(stack, count, [&](const Tensor& tensor) {
    if (is_cast(tensor) && tensor.scalar_type() == c10::kFloat) widest = c10::kFloat;
    return false;
  });
  cast_all(stack, count, widest);
}

bool first_is_cast(const Stack& stack, size_t count) {
  const IValue& first = torch::jit::peek(stack, 0, count);
  return first.isTensor() && is_cast(first.toTensor());
}

/// Asks for a result of float32 where the call asks for none.
void set_dtype(const c10::FunctionSchema& schema, Stack& stack) {
  const auto& arguments = schema.arguments();
  if (!first_is_cast(stack, arguments.size())) return;
  for (size_t i = 0; i < arguments.size(); ++i) {
    IValue& value = torch::jit::peek(stack, i, arguments.size());
    if (arguments[i].name() == "dtype" && value.isNone()) value = c10::kFloat;
  }
}

/// Calls the overload of a norm that takes a type.
void append_dtype(const c10::OperatorHandle& op, Stack& stack) {
  const size_t count = op.schema().arguments().size();
  const Tensor first = torch::jit::peek(stack, 0, count).toTensor();
  stack.emplace_back(is_cast(first) ? c10::kFloat : first.scalar_type());
  const bool of_all = op.operator_name().overload_name == "Scalar";
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("aten::norm", of_all ? "ScalarOpt_dtype" : "ScalarOpt_dim_dtype")
      .callBoxed(&stack);
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  static Immortal<Policies> all(policies());
  const auto found = all->find(op.operator_name());
  if (found == all->end()) {
    const c10::DispatchKeySet below(c10::DispatchKeySet::FULL_AFTER, kAutocastKey);
    return op.redispatchBoxed(keys & below, stack);
  }
  const c10::impl::ExcludeDispatchKeyGuard once(kAutocastKey);
  const size_t count = op.schema().arguments().size();
  switch (found->second) {
    case CastPolicy::lower_precision_fp:
      cast_all(*stack, count, at::autocast::get_autocast_dtype(libtorch::kMetaAutocast));
      break;
    case CastPolicy::fp32:
      cast_all(*stack, count, c10::kFloat);
      break;
    case CastPolicy::promote:
      promote_all(*stack, count);
      break;
    case CastPolicy::fp32_set_opt_dtype:
      set_dtype(op.schema(), *stack);
      break;
    case CastPolicy::fp32_append_dtype:
      return append_dtype(op, *stack);
  }
  op.callBoxed(stack);
}

/// Calls a function without autocast.
template <auto kFunction>
struct Once;
template <class Result, class... Arguments, Result (*kFunction)(Arguments...)>
struct Once<kFunction> {
  static Result run(Arguments... arguments) {
    const c10::impl::ExcludeDispatchKeyGuard once(kAutocastKey);
    return kFunction(arguments...);
  }
};

}  // namespace

void register_autocast() {
  // For the life of the process, as the kernels of kKey are.
  static Immortal<c10::RegistrationHandleRAII> registered(
      c10::Dispatcher::singleton().registerFallback(
          kAutocastKey, c10::KernelFunction::makeFromBoxedFunction<&fallback>(), "tare::plan"));
  static_cast<void>(registered);
  static Immortal<torch::Library> library(torch::Library::IMPL, "aten", kAutocastKey, __FILE__,
                                          uint32_t{__LINE__});
  static const bool recurrent = (library->impl("_cudnn_rnn", &Once<&cast_recurrent>::run), true);
  static_cast<void>(recurrent);
}

}  // namespace tare::plan

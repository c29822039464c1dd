// How operators reach their shape-only kernels. Internal.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/operator_name.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace tare::plan {

/// Kernels that replace LibTorch's on the meta device: for operators without a kernel there, and
/// for operators whose host kernel takes memory beyond its results.
class Kernels {
 public:
  /// Adds a kernel for the operator `name`: "aten::relu", or with an overload "aten::add.Tensor".
  /// The function has the operator's signature, with int64_t for SymInt.
  template <class Function>
  void add(const char* name, Function* function) {
    insert(name, c10::KernelFunction::makeFromUnboxedRuntimeFunction(function));
  }
  /// Adds a function that gets the operands as a stack and the keys below kKey; it may hold blocks
  /// and continue to LibTorch's kernel by op.redispatchBoxed(keys, stack).
  template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* Function>
  void add_boxed(const char* name) {
    insert(name, c10::KernelFunction::makeFromBoxedFunction<Function>());
  }
  /// Adds a function object with state of its own: `functor` is a c10::OperatorKernel.
  template <class Functor>
  void add_functor(const char* name, Functor functor) {
    insert(name, c10::KernelFunction::makeFromBoxedFunctor(
                     std::make_unique<Functor>(std::move(functor))));
  }
  /// Returns the kernel of an operator; null if there is none.
  [[nodiscard]] const c10::KernelFunction* find(const c10::OperatorName& name) const {
    const auto at = map_.find(name);
    return at == map_.end() ? nullptr : &at->second;
  }

 private:
  void insert(const char* name, const c10::KernelFunction& kernel) {
    const auto parsed = c10::OperatorNameView::parse(name);
    map_.insert_or_assign(
        c10::OperatorName(std::string(parsed.name), std::string(parsed.overload_name)), kernel);
  }

  std::unordered_map<c10::OperatorName, c10::KernelFunction> map_;
};

/// Adds the kernels of a family; each family has a file of its own.
void add_activation_kernels(Kernels& kernels);
void add_attention_kernels(Kernels& kernels);
void add_contiguous_kernels(Kernels& kernels);
void add_convolution_kernels(Kernels& kernels);
void add_index_kernels(Kernels& kernels);
void add_loss_kernels(Kernels& kernels);
void add_matrix_kernels(Kernels& kernels);
void add_norm_kernels(Kernels& kernels);
void add_optimizer_kernels(Kernels& kernels);
void add_pointwise_kernels(Kernels& kernels);
void add_pool_kernels(Kernels& kernels);
void add_recurrent_kernels(Kernels& kernels);
void add_reduction_kernels(Kernels& kernels);
void add_upsample_kernels(Kernels& kernels);

/// Registers the fallback for kKey, once.
void register_fallback();

}  // namespace tare::plan

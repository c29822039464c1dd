// The fused optimizers: they work in place and allocate nothing.
#include <ATen/core/Tensor.h>

#include <optional>

#include "tare/trace/dispatch.h"

namespace tare::plan {
namespace {

using at::Tensor;
using at::TensorList;

void fused_adam(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, double,
                double, double, double, double, bool, bool, const std::optional<Tensor>&,
                const std::optional<Tensor>&) {}

void fused_sgd(TensorList, TensorList, TensorList, double, double, double, double, bool, bool, bool,
               const std::optional<Tensor>&, const std::optional<Tensor>&) {}

}  // namespace

void add_optimizer_kernels(Kernels& kernels) {
  kernels.add("aten::_fused_adam_", &fused_adam);
  kernels.add("aten::_fused_adamw_", &fused_adam);
  kernels.add("aten::_fused_sgd_", &fused_sgd);
}

}  // namespace tare::plan

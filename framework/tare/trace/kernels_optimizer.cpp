// The fused optimizers and the scaler of gradients: they work in place and allocate nothing.
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

void unscale(TensorList, Tensor&, const Tensor&) {}

}  // namespace

void add_optimizer_kernels(Kernels& kernels) {
  kernels.add("aten::_fused_adam_", &fused_adam);
  kernels.add("aten::_fused_adamw_", &fused_adam);
  kernels.add("aten::_fused_sgd_", &fused_sgd);
  kernels.add("aten::_amp_foreach_non_finite_check_and_unscale_", &unscale);
}

}  // namespace tare::plan

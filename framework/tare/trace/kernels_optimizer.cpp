// The fused optimizers and the scaler of gradients, which work in place and allocate nothing, and
// the search for the codes of an optimizer of 8 bits.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "tare/trace/dispatch.h"

namespace tare::plan {
namespace {

using at::Tensor;
using at::TensorList;

void fused_adam(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, double,
                double, double, double, double, bool, bool, const std::optional<Tensor>&,
                const std::optional<Tensor>&) {}

/// Is fused_adam() with the rate in a tensor.
void fused_adam_by_tensor(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList,
                          const Tensor&, double, double, double, double, bool, bool,
                          const std::optional<Tensor>&, const std::optional<Tensor>&) {}

void fused_sgd(TensorList, TensorList, TensorList, double, double, double, double, bool, bool, bool,
               const std::optional<Tensor>&, const std::optional<Tensor>&) {}

void fused_sgd_by_tensor(TensorList, TensorList, TensorList, double, double, const Tensor&, double,
                         bool, bool, bool, const std::optional<Tensor>&,
                         const std::optional<Tensor>&) {}

void unscale(TensorList, Tensor&, const Tensor&) {}

Tensor bucketize(const Tensor& self, const Tensor&, bool out_int32, bool) {
  return at::empty(self.sizes(), self.options().dtype(out_int32 ? at::kInt : at::kLong));
}

}  // namespace

void add_optimizer_kernels(Kernels& kernels) {
  kernels.add("aten::_fused_adam_", &fused_adam);
  kernels.add("aten::_fused_adamw_", &fused_adam);
  kernels.add("aten::_fused_adam_.tensor_lr", &fused_adam_by_tensor);
  kernels.add("aten::_fused_adamw_.tensor_lr", &fused_adam_by_tensor);
  kernels.add("aten::_fused_sgd_", &fused_sgd);
  kernels.add("aten::_fused_sgd_.tensor_lr", &fused_sgd_by_tensor);
  kernels.add("aten::_amp_foreach_non_finite_check_and_unscale_", &unscale);
  kernels.add("aten::bucketize.Tensor", &bucketize);
}

}  // namespace tare::plan

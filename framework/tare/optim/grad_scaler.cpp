// Unscales gradients, and adapts the scale to overflows.
#include "tare/optim/grad_scaler.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "tare/base/error.h"

namespace tare {
namespace {

constexpr double kGrowth = 2, kBackoff = 0.5;
constexpr double kLeast = 1.0 / 16384;
constexpr int64_t kGrowthInterval = 2000;

/// Returns the gradients, in lists of one type on one device, as the kernel takes them.
std::vector<std::vector<at::Tensor>> lists_of(const std::vector<ParameterGroup>& groups) {
  std::vector<std::vector<at::Tensor>> lists;
  for (const auto& group : groups) {
    for (const auto& parameter : group.parameters) {
      const at::Tensor gradient = parameter.tensor.grad();
      if (!gradient.defined()) continue;
      auto list = std::ranges::find_if(lists, [&](const auto& other) {
        return other.front().device() == gradient.device() &&
               other.front().dtype() == gradient.dtype();
      });
      if (list == lists.end()) list = lists.emplace(lists.end());
      list->push_back(gradient);
    }
  }
  return lists;
}

/// Multiplies gradients of one type on one device by `factor`, in place; `found` becomes 1 where
/// one is not finite.
void multiply(std::vector<at::Tensor>& list, at::Tensor& found, const at::Tensor& factor) {
  const bool has_kernel = list.front().is_cpu() || list.front().scalar_type() != at::kBFloat16;
  if (has_kernel) return at::_amp_foreach_non_finite_check_and_unscale_(list, found, factor);
  for (const at::Tensor& gradient : list) {  // one at a time, in twice its bytes
    std::vector<at::Tensor> wide{gradient.to(at::kFloat)};
    at::_amp_foreach_non_finite_check_and_unscale_(wide, found, factor);
    gradient.copy_(wide.front());
  }
}

}  // namespace

bool GradScaler::unscale(const std::vector<ParameterGroup>& groups) const {
  const c10::AutoGradMode no_grad(false);
  bool finite = true;
  for (auto& list : lists_of(groups)) {
    const auto options = list.front().options().dtype(at::kFloat);
    at::Tensor found = at::zeros({1}, options);
    const at::Tensor inverse = at::full({1}, 1 / scale_, options);
    multiply(list, found, inverse);
    if (!found.is_meta()) finite = found.item<float>() == 0 && finite;  // a plan reads no value
  }
  return finite;
}

void GradScaler::update(bool finite) {
  if (!finite) {
    if (scale_ * kBackoff < kLeast)
      throw StateError("grad_scaler", "with gradients that are not finite at any scale",
                       "the training diverges: lower the learning rate, or use bf16");
    scale_ *= kBackoff;
    finite_steps_ = 0;
  } else if (++finite_steps_ == kGrowthInterval) {
    scale_ *= kGrowth;
    finite_steps_ = 0;
  }
}

void GradScaler::restore(double scale, int64_t finite_steps) {
  scale_ = scale;
  finite_steps_ = finite_steps;
}

}  // namespace tare

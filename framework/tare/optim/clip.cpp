// Clips gradients by their joint norm and by value.
#include "tare/optim/clip.h"

#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"
#include "tare/config/scalar.h"

namespace tare {
namespace {

std::vector<at::Tensor> gradients(const std::vector<ParameterGroup>& groups) {
  std::vector<at::Tensor> all;
  for (const auto& group : groups) {
    for (const auto& parameter : group.parameters) {
      if (parameter.tensor.grad().defined()) all.push_back(parameter.tensor.grad());
    }
  }
  return all;
}

/// Returns the tensors of each device, in order of the first tensor of each.
std::vector<std::vector<at::Tensor>> by_device(const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<at::Tensor>> lists;
  for (const at::Tensor& tensor : tensors) {
    auto list = std::ranges::find_if(
        lists, [&](const auto& other) { return other.front().device() == tensor.device(); });
    if (list == lists.end()) list = lists.emplace(lists.end());
    list->push_back(tensor);
  }
  return lists;
}

at::Tensor on(c10::Device device, const at::Tensor& tensor) {
  return tensor.device() == device ? tensor : tensor.to(device);
}

/// Returns the norm on the device of the first tensor.
at::Tensor joint_norm(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> norms;
  for (const auto& list : by_device(tensors))
    for (const at::Tensor& norm : at::_foreach_norm(list, 2))
      norms.push_back(on(tensors.front().device(), norm));
  return at::linalg_vector_norm(at::stack(norms));
}

void scale(const std::vector<at::Tensor>& gradients, const at::Tensor& norm, double max_norm) {
  constexpr double kTiny = 1e-6;  // as torch: keeps the factor finite for zero gradients
  const at::Tensor factor = norm.add(kTiny).reciprocal().mul(max_norm).clamp_max(1.0);
  for (const auto& list : by_device(gradients))
    at::_foreach_mul_(list, on(list.front().device(), factor));
}

void require_positive(const char* where, double value) {
  if (!(value > 0))
    throw ConfigError(where, "the limit must be > 0, got " + config::number_text(value));
}

}  // namespace

void check_clip(const ClipOptions& options) {
  const auto check = [](const char* field, double bound) {
    if (!(bound >= 0) || std::isinf(bound))
      throw ConfigError("optimizer.clip", field, "must be finite and >= 0", "",
                        config::number_text(bound));
  };
  check("norm", options.norm);
  check("value", options.value);
  if (options.norm > 0 && options.value > 0)
    throw ConfigError("optimizer.clip", "value", "contradicts norm", "one of them",
                      config::number_text(options.value));
}

void clip_gradients(const std::vector<ParameterGroup>& groups, const ClipOptions& options) {
  if (options.norm > 0) clip_grad_norm(groups, options.norm);
  if (options.value > 0) clip_grad_value(groups, options.value);
}

at::Tensor grad_norm(const std::vector<ParameterGroup>& groups) {
  const c10::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients(groups);
  return all.empty() ? at::Tensor() : joint_norm(all);
}

at::Tensor clip_grad_norm(const std::vector<ParameterGroup>& groups, double max_norm) {
  require_positive("optimizer.clip_grad_norm", max_norm);
  const c10::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients(groups);
  if (all.empty()) return {};
  at::Tensor norm = joint_norm(all);
  scale(all, norm, max_norm);
  return norm;
}

void scale_to_norm(const std::vector<ParameterGroup>& groups, const at::Tensor& norm,
                   double max_norm) {
  const c10::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients(groups);
  if (!all.empty()) scale(all, norm, max_norm);
}

void clip_grad_value(const std::vector<ParameterGroup>& groups, double max_value) {
  require_positive("optimizer.clip_grad_value", max_value);
  const c10::NoGradGuard no_grad;
  const std::vector<at::Tensor> all = gradients(groups);
  if (all.empty()) return;
  for (const auto& list : by_device(all)) {
    at::_foreach_clamp_min_(list, -max_value);
    at::_foreach_clamp_max_(list, max_value);
  }
}

}  // namespace tare

// Activations and other functions of single elements.
#include <ATen/ops/empty_like.h>

#include <tuple>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"

namespace tare::plan {
namespace {

using at::Tensor;

Tensor& relu_(Tensor& self) { return self; }

/// Returns the result and the buffer.
std::tuple<Tensor, Tensor> log_sigmoid(const Tensor& self) {
  const Tensor result = at::empty_like(self);
  return {result, at::empty_like(self)};
}

Tensor log_sigmoid_backward(const Tensor& grad, const Tensor&, const Tensor&) {
  return at::empty_like(grad);
}

}  // namespace

void add_activation_kernels(Kernels& kernels) {
  kernels.add("aten::log_sigmoid_backward", &log_sigmoid_backward);
  kernels.add("aten::log_sigmoid_forward", &log_sigmoid);
  kernels.add("aten::relu_", &relu_);
}

}  // namespace tare::plan

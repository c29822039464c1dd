// Activations and other functions of single elements.
#include <ATen/ops/empty_like.h>

#include <optional>
#include <tuple>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"

namespace tare::plan {
namespace {

using at::Tensor;

Tensor& relu_(Tensor& self) { return self; }

/// Returns the result and the buffer, which a card leaves empty.
std::tuple<Tensor, Tensor> log_sigmoid(const Tensor& self) {
  const Tensor result = at::empty_like(self);
  return {result, for_card() ? fresh({0}, self) : at::empty_like(self)};
}

Tensor log_sigmoid_backward(const Tensor& grad, const Tensor&, const Tensor&) {
  return at::empty_like(grad);
}

/// Returns the result of a card's dropout and its mask, which is made first.
std::tuple<Tensor, Tensor> dropout(const Tensor& self, double, std::optional<bool>) {
  const Tensor mask = at::empty_like(self, self.options().dtype(at::kBool));
  return {at::empty_like(self), mask};
}

Tensor dropout_backward(const Tensor& grad, const Tensor&, double) { return at::empty_like(grad); }

}  // namespace

void add_activation_kernels(Kernels& kernels) {
  kernels.add("aten::log_sigmoid_backward", &log_sigmoid_backward);
  kernels.add("aten::log_sigmoid_forward", &log_sigmoid);
  kernels.add("aten::native_dropout", &dropout);
  kernels.add("aten::native_dropout_backward", &dropout_backward);
  kernels.add("aten::relu_", &relu_);
}

}  // namespace tare::plan

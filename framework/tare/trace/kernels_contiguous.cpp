// Operators whose kernel needs its operands, and sometimes its result, without gaps: it makes
// copies of those that have some, once the result is there. A card copies fewer of them.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <utility>
#include <vector>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"

namespace tare::plan {
namespace {

using at::MemoryFormat;
using at::Tensor;
using torch::jit::Stack;

/// Redispatches; then copies the given operands, in that order.
class Contiguous : public c10::OperatorKernel {
 public:
  /// Takes as `format_of` the operand that decides whether channels come last; without it they do
  /// not.
  explicit Contiguous(std::vector<size_t> operands, std::optional<size_t> format_of = {},
                      bool result = false)
      : operands_(std::move(operands)), format_of_(format_of), result_(result) {}

  /// Returns the kernel with these operands copied by a card.
  [[nodiscard]] Contiguous on_card(std::vector<size_t> operands) const {
    Contiguous other = *this;
    other.on_card_ = std::move(operands);
    return other;
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const {
    const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
    const auto& operands = for_card() && on_card_ ? *on_card_ : operands_;
    std::vector<Tensor> needed;
    needed.reserve(operands.size() + 1);
    for (const size_t i : operands) needed.push_back(arguments[i].toTensor());
    const auto format = format_of_ ? arguments[*format_of_].toTensor().suggest_memory_format()
                                   : MemoryFormat::Contiguous;
    op.redispatchBoxed(keys, stack);
    if (result_ && !(for_card() && on_card_)) needed.push_back(stack->back().toTensor());
    std::vector<c10::DataPtr> copies;
    copies.reserve(needed.size());
    for (const Tensor& tensor : needed) copies.push_back(hold_contiguous(tensor, format));
    while (!copies.empty()) copies.pop_back();
  }

 private:
  std::vector<size_t> operands_;
  std::optional<std::vector<size_t>> on_card_;  // unset: as the host
  std::optional<size_t> format_of_;
  bool result_;
};

/// Computes the gradient of GELU. Only the exact formula is oneDNN's, which wants both operands in
/// one layout.
void gelu_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor grad = arguments[0].toTensor();
  const bool exact = arguments[2].toStringView() == "none";
  op.redispatchBoxed(keys, stack);
  if (exact && !for_card()) hold_contiguous(grad).clear();
}

/// Computes the gradient of softmax. The host needs both operands without gaps; a card multiplies
/// them first.
void softmax_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor grad = arguments[0].toTensor(), output = arguments[1].toTensor();
  op.redispatchBoxed(keys, stack);
  const c10::DataPtr first =
      for_card() ? hold(bytes_of(grad.numel(), output.scalar_type())) : hold_contiguous(grad);
  const c10::DataPtr second = hold_contiguous(output);
}

}  // namespace

void add_contiguous_kernels(Kernels& kernels) {
  const auto add = [&](const char* name, const Contiguous& kernel) {
    kernels.add_functor(name, kernel);
  };
  const Contiguous first({0});
  for (const auto* name : {"aten::_softmax", "aten::_log_softmax",
                           "aten::reflection_pad1d_backward", "aten::adaptive_max_pool2d_backward",
                           "aten::adaptive_max_pool3d_backward", "aten::avg_pool3d_backward"})
    add(name, first);
  for (const auto* name :
       {"aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::fractional_max_pool2d_backward",
        "aten::replication_pad1d_backward"})
    add(name, first.on_card({}));
  add("aten::_log_softmax_backward_data", Contiguous({0, 1}));
  add("aten::avg_pool2d", Contiguous({0}, 0, true));
  add("aten::avg_pool2d_backward", Contiguous({0}, 0, true));
  add("aten::max_pool2d_with_indices_backward", Contiguous({0, 7}, 0, true).on_card({0}));
  for (const auto* name :
       {"aten::upsample_nearest1d_backward", "aten::upsample_nearest2d_backward",
        "aten::upsample_nearest3d_backward", "aten::upsample_linear1d_backward",
        "aten::upsample_bilinear2d_backward", "aten::upsample_trilinear3d_backward",
        "aten::upsample_bicubic2d_backward"})
    add(name, Contiguous({0}, 0, true));
  kernels.add_boxed<&softmax_backward>("aten::_softmax_backward_data");
  kernels.add_boxed<&gelu_backward>("aten::gelu_backward");
}

}  // namespace tare::plan

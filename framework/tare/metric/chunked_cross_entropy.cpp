// Computes the cross-entropy of many logits in parts.
#include "tare/metric/chunked_cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss2d_backward.h>
#include <ATen/ops/nll_loss2d_forward.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/nll_loss_nd.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <tuple>

namespace tare {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kMostParts = 16;

/// Calls `use` with the first sample of each part and their number.
template <class F>
void for_each_part(const Tensor& logits, F&& use) {
  const int64_t samples = logits.size(0), size = (samples + kMostParts - 1) / kMostParts;
  for (int64_t first = 0; first < samples; first += size)
    use(first, std::min(size, samples - first));
}

/// Returns the loss, and the number of labels that count, of log-probabilities [n, classes] or
/// [n, classes, 1, values].
std::tuple<Tensor, Tensor> loss_of(const Tensor& logp, const Tensor& labels, int64_t ignored,
                                   int64_t reduction) {
  return logp.dim() == 2 ? at::nll_loss_forward(logp, labels, {}, reduction, ignored)
                         : at::nll_loss2d_forward(logp, labels, {}, reduction, ignored);
}

Tensor gradient_of(const Tensor& grad, const Tensor& logp, const Tensor& labels, int64_t ignored,
                   int64_t reduction, const Tensor& total) {
  return logp.dim() == 2
             ? at::nll_loss_backward(grad, logp, labels, {}, reduction, ignored, total)
             : at::nll_loss2d_backward(grad, logp, labels, {}, reduction, ignored, total);
}

class ChunkedLoss final : public torch::autograd::Function<ChunkedLoss> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels,
                        int64_t ignored, int64_t reduction) {
    const Tensor each = at::empty(labels.sizes(), logits.options());
    for_each_part(logits, [&](int64_t first, int64_t size) {
      const Tensor logp = at::_log_softmax(logits.narrow(0, first, size), 1, false);
      const Tensor part = labels.narrow(0, first, size);
      each.narrow(0, first, size)
          .copy_(std::get<0>(loss_of(logp, part, ignored, at::Reduction::None)));
    });
    Tensor loss = each, total;
    if (reduction != at::Reduction::None)  // of what each label picks, so that sums have one order
      std::tie(loss, total) = loss_of(
          each.neg().unsqueeze(1), labels.masked_fill(labels.ne(ignored), 0), ignored, reduction);
    context->save_for_backward({logits, labels, total});
    context->saved_data["ignored"] = ignored;
    context->saved_data["reduction"] = reduction;
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &logits = saved[0], &labels = saved[1], &grad = gradients.front();
    const int64_t ignored = context->saved_data["ignored"].toInt(),
                  reduction = context->saved_data["reduction"].toInt();
    if (c10::GradMode::is_enabled()) {
      const Tensor loss =
          at::nll_loss_nd(at::log_softmax(logits, 1), labels, {}, reduction, ignored);
      return {torch::autograd::grad({loss}, {logits}, {grad}, true, true).front(), {}, {}, {}};
    }
    const bool each = reduction == at::Reduction::None;
    const Tensor total = each ? at::empty({}, logits.options()) : saved[2];
    Tensor result = at::empty_like(logits);
    for_each_part(logits, [&](int64_t first, int64_t size) {
      const Tensor logp = at::_log_softmax(logits.narrow(0, first, size), 1, false);
      const Tensor of_logp = gradient_of(each ? grad.narrow(0, first, size) : grad, logp,
                                         labels.narrow(0, first, size), ignored, reduction, total);
      result.narrow(0, first, size)
          .copy_(at::_log_softmax_backward_data(of_logp, logp, 1, logits.scalar_type()));
    });
    return {result, {}, {}, {}};
  }
};

}  // namespace

std::optional<Tensor> chunked_cross_entropy(const Tensor& logits, const Tensor& labels,
                                            int64_t ignored, int64_t reduction) {
  const bool fits = logits.dim() > 1 && labels.dim() == logits.dim() - 1 &&
                    labels.scalar_type() == at::kLong && logits.scalar_type() == at::kFloat &&
                    labels.size(0) == logits.size(0);
  if (!fits || static_cast<int64_t>(logits.nbytes()) < kChunkedFrom) return std::nullopt;
  const int64_t classes = logits.size(1);
  const Tensor innermost = logits.movedim(1, -1);
  if (innermost.is_contiguous()) {
    const Tensor loss = ChunkedLoss::apply(innermost.reshape({-1, classes}), labels.reshape({-1}),
                                           ignored, reduction);
    return reduction == at::Reduction::None ? loss.reshape(labels.sizes()) : loss;
  }
  if (!logits.is_contiguous()) return std::nullopt;
  const int64_t samples = logits.size(0);
  const Tensor loss = ChunkedLoss::apply(logits.reshape({samples, classes, 1, -1}),
                                         labels.reshape({samples, 1, -1}), ignored, reduction);
  return reduction == at::Reduction::None ? loss.reshape(labels.sizes()) : loss;
}

}  // namespace tare

// Keeps the loss, rate and momentum of every step in tensors.
#include "tare/callback/recorder.h"

#include <ATen/ops/stack.h>

#include <limits>

namespace tare {
namespace {
constexpr double kBeta = 0.98;  // fastai's SmoothenValue
}

void Recorder::add(double loss) {
  steps_[read_++].loss = loss;
  average_ = kBeta * average_ + (1 - kBeta) * loss;
  weight_ = kBeta * weight_ + (1 - kBeta);
}

Action Recorder::after_batch(FitContext& context) {
  if (!context.loss.defined()) return Action::proceed;  // the batch was skipped
  steps_.push_back({0, context.lr, context.momentum});
  if (context.loss.device().is_cpu()) {
    add(context.loss_value());
  } else {
    pending_.push_back(context.loss.detach());
    if (pending_.size() >= kBunch) flush();
  }
  return Action::proceed;
}

Action Recorder::after_epoch(FitContext&) {
  flush();
  return Action::proceed;
}

void Recorder::flush() {
  if (pending_.empty()) return;
  const at::Tensor losses = at::stack(pending_).to(c10::kCPU, c10::kDouble);
  const double* values = losses.const_data_ptr<double>();
  for (size_t i = 0; i < pending_.size(); ++i) add(values[i]);
  pending_.clear();
}

const std::vector<StepRecord>& Recorder::steps() {
  flush();
  return steps_;
}

double Recorder::smooth_loss() const {
  return weight_ > 0 ? average_ / weight_ : std::numeric_limits<double>::quiet_NaN();
}

void Recorder::clear() {
  pending_.clear();
  steps_.clear();
  read_ = 0;
  average_ = weight_ = 0;
}

void Recorder::account(Ledger& ledger) const {
  for (const auto& loss : pending_) ledger.add(Category::other, "recorder", loss);
}

}  // namespace tare

// Sums losses of batches and of their parts.
#include "tare/train/loss_meter.h"

#include <ATen/ops/zeros.h>

#include <limits>
#include <utility>

namespace tare {

void LossMeter::prepare(c10::Device device, bool for_card) {
  if (!device.is_cpu() && (for_card || !device.is_meta()))
    device_sum_ = at::zeros({}, at::TensorOptions(c10::kDouble).device(device));
}

void LossMeter::reset() {
  sum_ = 0;
  samples_ = 0;
  counted_ = 0;
  if (device_sum_.defined()) device_sum_.zero_();
}

void LossMeter::add(const at::Tensor& loss, int64_t samples, double counted) {
  samples_ += samples;
  if (counted == 0) return;
  counted_ += counted;
  if (loss.is_meta()) return;  // a plan has no values
  if (loss.device().is_cpu()) {
    // item() dispatches; a host float is one load away.
    const bool plain = loss.scalar_type() == c10::kFloat;
    sum_ += counted * (plain ? *loss.const_data_ptr<float>() : loss.item<double>());
    return;
  }
  if (!device_sum_.defined())
    device_sum_ = at::zeros({}, loss.options().requires_grad(false).dtype(c10::kDouble));
  device_sum_.add_(loss.detach(), counted);
}

double LossMeter::sum() const {
  const bool has_value = device_sum_.defined() && !device_sum_.is_meta();
  return sum_ + (has_value ? device_sum_.item<double>() : 0.0);
}

double LossTotals::mean() const {
  return counted > 0 ? sum / counted : std::numeric_limits<double>::quiet_NaN();
}

void LossMeter::restore(const LossTotals& totals) {
  reset();
  sum_ = totals.sum;
  samples_ = totals.samples;
  counted_ = totals.counted;
}

void LossMean::add(FitContext& c, double share) {
  const at::Tensor loss = c.loss.detach().mul(share);
  sum_ = sum_.defined() ? sum_.add_(loss) : loss;
  shares_ += share;
  c.outputs.reset();
  c.loss.reset();
}

at::Tensor LossMean::take() {
  constexpr double kAll = 1 - 1e-9;  // shares are rounded
  const double shares = std::exchange(shares_, 0.0);
  const at::Tensor sum = std::exchange(sum_, {});
  return shares > kAll ? sum : sum.div(shares);
}

}  // namespace tare

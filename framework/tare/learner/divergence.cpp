// A loss that is NaN or infinite ends a fit, see LearnerOptions::stop_on_nan.
#include <cmath>

#include "tare/base/error.h"
#include "tare/learner/parts.h"

namespace tare {

void Learner::Parts::diverged(const FitContext& context, const char* figure, double value) const {
  throw DivergedError(running_call, figure, value, context.epoch, context.step);
}

// On a device only at every kLossEvery-th step, as reading it waits.
void Learner::check_loss(const Run& run) const {
  constexpr int64_t kLossEvery = 16;
  const Parts& p = *parts_;
  if (!p.options.stop_on_nan || p.stand_in) return;
  const FitContext& c = run.context;
  if (!c.loss.device().is_cpu() && c.step % kLossEvery != 0) return;
  const double loss = c.loss_value();
  if (!std::isfinite(loss)) p.diverged(c, "loss", loss);
}

// A callback that ends the fit itself comes first.
void Learner::check_mean(const Run& run, const char* figure, double loss) const {
  const Parts& p = *parts_;
  if (!p.options.stop_on_nan || p.stand_in || std::isfinite(loss)) return;
  if (run.action < Action::stop_fit) p.diverged(run.context, figure, loss);
}

}  // namespace tare

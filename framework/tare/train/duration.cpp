// Computes the epochs and batches of a duration.
#include "tare/train/duration.h"

#include <cmath>

#include "tare/base/error.h"
#include "tare/callback/callback.h"
#include "tare/config/scalar.h"
#include "tare/optim/fit_schedules.h"
#include "tare/train/train_state.h"

namespace tare {
namespace {

int64_t rounded_up(int64_t count, int64_t size) { return count / size + (count % size > 0); }

}  // namespace

void check(const Duration& duration, const Schedule& schedule, const HyperSchedules& schedules,
           const std::string& where) {
  const auto refuse = [&](const std::string& problem, const std::string& allowed,
                          const std::string& got) {
    throw ConfigError(where, "duration", problem, allowed, got);
  };
  const std::string given = "epochs " + std::to_string(duration.epochs) + ", steps " +
                            std::to_string(duration.steps) + ", samples " +
                            std::to_string(duration.samples);
  int counts = 0;
  for (const int64_t count : {duration.epochs, duration.steps, duration.samples}) {
    if (count < 0) refuse("must not be negative", ">= 0", given);
    if (count > 0) ++counts;
  }
  if (!(duration.minutes >= 0) || !std::isfinite(duration.minutes))
    refuse("has minutes that are no length of time", ">= 0", config::number_text(duration.minutes));
  if (counts > 1) refuse("has more than one of epochs, steps and samples", "one of them", given);
  if (counts == 0 && duration.minutes == 0)
    refuse("is empty", "epochs, steps, samples or minutes", "none");
  if (duration.epochs > kMostEpochs)
    refuse("has too many epochs", "at most 1,000,000,000", std::to_string(duration.epochs));
  if (counts == 0 && schedule.kind != "constant")
    refuse("has minutes alone, and the schedule " + schedule.kind +
               " needs to know the number of steps",
           "epochs, steps or samples too, or schedule: constant", schedule.kind);
  if (counts == 0 && schedules.any())
    refuse("has minutes alone, and schedules need to know the number of steps",
           "epochs, steps or samples too, or no schedules", "schedules");
}

FitLength length_of(const Duration& duration, const SampleOrder& order) {
  FitLength length{.epochs = duration.epochs, .seconds = duration.minutes * 60};
  const int64_t in_epoch = order.batches();
  const int64_t samples = order.drop_last ? in_epoch * order.batch : order.samples;
  if (duration.steps > 0) length.batches = duration.steps;
  if (duration.samples > 0)
    length.batches =
        duration.samples / samples * in_epoch + rounded_up(duration.samples % samples, order.batch);
  if (length.batches > 0) length.epochs = rounded_up(length.batches, in_epoch);
  if (length.epochs == 0) length.epochs = kMostEpochs;  // by the clock alone
  return length;
}

}  // namespace tare

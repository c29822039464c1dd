// How long a fit trains: in epochs, steps, samples or minutes.
#pragma once

#include <cstdint>
#include <string>

#include "tare/config/field.h"

namespace tare {

struct HyperSchedules;
struct Schedule;
struct SampleOrder;

/// Sets how long a fit trains: one of `epochs`, `steps` and `samples`, at most for `minutes`; or
/// `minutes` alone, with a constant schedule, because no other one is known without the number of
/// steps. A fit that ends inside an epoch validates and closes that epoch as usual.
struct Duration {
  int64_t epochs = 0;  ///< passes over the training split
  /// Batches: each is an optimizer step, unless its gradients overflow or a callback skips it.
  int64_t steps = 0;
  int64_t samples = 0;  ///< counted again in each epoch; the batch that reaches them is the last
  /// Bounds the time by the clock, with callbacks and saves, and with the training and validation
  /// before a resume. A fit ends after the batch in which the minutes are over.
  double minutes = 0;
  bool operator==(const Duration&) const = default;
};
void visit_fields(auto& visit, Duration& d) {
  visit("epochs", d.epochs, config::at_least(0));
  visit("steps", d.steps, config::at_least(0));
  visit("samples", d.samples, config::at_least(0));
  visit("minutes", d.minutes, config::at_least(0));
}

/// Throws ConfigError, naming `where`, for none or two of epochs, steps and samples, for a number
/// out of range, and for minutes alone with a schedule that is not constant, of the rate or of
/// another option.
void check(const Duration& duration, const Schedule& schedule, const HyperSchedules& schedules,
           const std::string& where);

/// Holds a duration for the data of a fit.
struct FitLength {
  int64_t epochs = 0;   ///< >= 1, the last of which may be partial
  int64_t batches = 0;  ///< in all; 0: the epochs are whole
  double seconds = 0;   ///< the fit ends after so many; 0: no limit
};
/// Returns the length of a checked duration for data in this order.
[[nodiscard]] FitLength length_of(const Duration& duration, const SampleOrder& order);

}  // namespace tare

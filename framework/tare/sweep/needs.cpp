#include "tare/sweep/needs.h"

#include <algorithm>
#include <utility>

#include "tare/base/error.h"

namespace tare::sweep {

int64_t Needs::planned(const Trial& trial) const {
  if (trial.asked_bytes > 0) return trial.asked_bytes;
  const bool asks = !sweep_.resources.memory.bytes && predict_;
  const auto bytes =
      asks ? predict_(settings_of(sweep_, trial.cell, trial.run_name)) : std::nullopt;
  return rooms_.with_context(reservation(sweep_, bytes));
}

int64_t Needs::measured(const Trial& trial) {
  const int64_t peak = peak_of_kind(trial);
  return peak > 0 ? rooms_.with_context(reservation(sweep_, peak)) : rooms_.largest_bytes();
}

void Needs::see(const Trial& trial) {
  if (trial.peak_bytes <= 0) return;
  highest_ = std::max(highest_, trial.peak_bytes);
  unread_.push_back(trial);
}

int64_t Needs::peak_of_kind(const Trial& trial) {
  if (highest_ == 0) return 0;
  for (const Trial& ended : std::exchange(unread_, {})) {
    int64_t& peak = peaks_[signature_of(ended)];
    peak = std::max(peak, ended.peak_bytes);
  }
  const auto like = peaks_.find(signature_of(trial));
  return like == peaks_.end() ? highest_ : like->second;
}

const std::string& Needs::signature_of(const Trial& trial) {
  const auto known = signatures_.find(trial.number);
  if (known != signatures_.end()) return known->second;
  std::string signature;
  try {
    if (signature_) signature = signature_(settings_of(sweep_, trial.cell, trial.run_name));
  } catch (const Error&) {  // the recipe no longer takes the settings of a run that has ended
  }
  return signatures_.emplace(trial.number, std::move(signature)).first->second;
}

}  // namespace tare::sweep

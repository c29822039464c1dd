#include "tare/sweep/measured_peaks.h"

#include <algorithm>

#include "tare/base/error.h"

namespace tare::sweep {

void MeasuredPeaks::see(const Trial& trial) {
  if (trial.peak_bytes <= 0) return;
  highest_ = std::max(highest_, trial.peak_bytes);
  unread_.push_back(trial);
}

int64_t MeasuredPeaks::of(const Trial& trial) {
  if (highest_ == 0) return 0;
  for (const Trial& ended : std::exchange(unread_, {})) {
    int64_t& peak = peaks_[signature_of(ended)];
    peak = std::max(peak, ended.peak_bytes);
  }
  const auto like = peaks_.find(signature_of(trial));
  return like == peaks_.end() ? highest_ : like->second;
}

const std::string& MeasuredPeaks::signature_of(const Trial& trial) {
  const auto known = signatures_.find(trial.number);
  if (known != signatures_.end()) return known->second;
  std::string signature;
  try {
    signature = signature_(trial);
  } catch (const Error&) {  // the recipe no longer takes the settings of a run that has ended
  }
  return signatures_.emplace(trial.number, std::move(signature)).first->second;
}

}  // namespace tare::sweep

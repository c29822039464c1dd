// What the blocks of a model save and cost when they recompute. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/learner/fit_trace.h"

namespace tare {

/// The blocks of the subject's model that save memory, those first whose forward takes the least
/// time for a byte saved (the greedy policy of PyTorch's SACEstimator). Measured in two steps of
/// four samples of the subject's fit, with a model of its own on this host; without effect on the
/// generators. Throws plan::CannotTell if that may be too large for this host, and what the fit
/// throws.
[[nodiscard]] std::vector<std::string> blocks_by_cost(const FitSubject& subject);

}  // namespace tare

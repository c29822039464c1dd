// Divides a model over cards by the plan of its layer groups. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/plan/fit_trace.h"

namespace tare {

/// Returns the texts of LearnerOptions::stages for a fit on as many of the cards of the request as
/// its model can have stages. They are divided so that the largest share of its card that a stage
/// takes at its peak is as small as it can be, with the peak of each part between two cuts as a
/// trace of the fit has it. `devices`: the names of the cards. Throws plan::NotPlannable, and
/// c10::Error for work that meta tensors cannot do.
[[nodiscard]] std::vector<std::string> stages_by_plan(const PlanRequest& request,
                                                      const std::vector<std::string>& devices);

}  // namespace tare

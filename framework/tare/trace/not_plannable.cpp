// Words the message of NotPlannable.
#include "tare/trace/not_plannable.h"

#include <utility>

namespace tare::plan {

NotPlannable::NotPlannable(std::string op, std::string_view reason, std::string_view advice)
    : NotPlannable(op, printable(op) + " " + printable(reason) + "; " + printable(advice)) {}

NotPlannable::NotPlannable(std::string op, std::string reason)
    : Error("[plan] the memory cannot be predicted: " + reason),
      op_(std::move(op)),
      reason_(std::move(reason)) {}

}  // namespace tare::plan

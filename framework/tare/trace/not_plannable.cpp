// Words the message of NotPlannable.
#include "tare/trace/not_plannable.h"

#include <utility>

namespace tare::plan {

NotPlannable::NotPlannable(std::string op, std::string_view reason, std::string_view advice)
    : Error("[plan] the memory cannot be predicted: " + printable(op) + " " + printable(reason) +
            "; " + printable(advice)),
      op_(std::move(op)) {}

}  // namespace tare::plan

// Words the message of CannotTell.
#include "tare/plan/cannot_tell.h"

#include <utility>

namespace tare::plan {

CannotTell::CannotTell(std::string op, std::string_view reason, std::string_view advice)
    : Error("[plan] cannot tell: " + printable(op) + " " + printable(reason) + "; " +
            printable(advice)),
      op_(std::move(op)) {}

}  // namespace tare::plan

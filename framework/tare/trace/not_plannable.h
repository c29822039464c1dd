// NotPlannable: a plan needs what shapes alone cannot give.
#pragma once

#include <string>
#include <string_view>

#include "tare/base/error.h"

namespace tare::plan {

/// Reports work that needs more than shapes: an operator without a shape-only kernel, or the values
/// of a tensor (`item()`, a condition on data). The plan never guesses instead.
class NotPlannable : public Error {
 public:
  /// Takes as `reason` why shapes are not enough, and as `advice` what to do, which ends the
  /// message.
  NotPlannable(std::string op, std::string_view reason, std::string_view advice);
  /// Returns the operator, e.g. "aten::foo".
  [[nodiscard]] const std::string& op() const { return op_; }
  /// Returns the message without the words that the memory cannot be predicted: the operator, why,
  /// and what to do.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  NotPlannable(std::string op, std::string reason);

  std::string op_, reason_;
};

}  // namespace tare::plan

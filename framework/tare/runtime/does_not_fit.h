// DoesNotFit: the error for a plan that needs more memory than there is.
#pragma once

#include <string>

#include "tare/base/error.h"

namespace tare {

/// Thrown before the work begins, so that nothing has changed. Not an OutOfMemory: no allocation
/// was refused.
class DoesNotFit : public Error {
 public:
  /// Takes the whole message, with what to do at its end.
  explicit DoesNotFit(const std::string& text) : Error(text) {}
};

}  // namespace tare

// DoesNotFit: the error for a plan that needs more memory than there is.
#pragma once

#include <string>

#include "tare/base/error.h"

namespace tare {

/// Reports a plan above the memory before the work begins: nothing has changed. It is no
/// OutOfMemory, since no allocation was refused.
class DoesNotFit : public Error {
 public:
  /// Takes the whole message, with what to do at its end.
  explicit DoesNotFit(const std::string& text) : Error(text) {}
};

}  // namespace tare

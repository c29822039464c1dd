// DoesNotFit: the error for what needs more memory than there is, found before the work begins.
#pragma once

#include <string>

#include "tare/base/error.h"

namespace tare {

/// Reports a plan above the memory, or a card without memory for a context, before the work begins:
/// nothing has changed. It is no OutOfMemory, since no allocation of tensors was refused.
class DoesNotFit : public Error {
 public:
  /// Takes the whole message, with what to do at its end.
  explicit DoesNotFit(const std::string& text) : Error(text) {}
};

}  // namespace tare

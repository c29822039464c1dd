// Distinguishes a wrong path from a failure of the disk, also in programs without LibTorch.
// Internal.
#pragma once

#include <cerrno>

#include "tare/base/error.h"

namespace tare {

/// Whether the path of the error is not there, or is of another kind: bad input, and no failure.
[[nodiscard]] inline bool is_wrong_path(const IoError& error) {
  const int cause = error.error_number();
  return cause == ENOENT || cause == ENOTDIR || cause == EISDIR;
}

}  // namespace tare

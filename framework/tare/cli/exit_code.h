// What the programs return, and how an error becomes it.
#pragma once

#include <exception>

namespace tare::cli {

enum ExitCode { kSuccess = 0, kFailed = 1, kBadInput = 2, kOutOfMemory = 3, kIo = 4 };

/// The same for people: --help and the man pages say it.
inline constexpr const char* kExitCodes =
    "0 done, 1 the run failed, 2 bad input, 3 out of memory, 4 I/O, 130 and 143 stopped by a "
    "signal";

/// Logs the error as one line; returns the code that belongs to it.
int report(const std::exception_ptr& error);

}  // namespace tare::cli

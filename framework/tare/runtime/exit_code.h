// Exit codes of the programs, and report_error(), which turns an error into one.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace tare {

/// Lists the exit status of the programs; kFailed is any failure that has none of its own.
enum ExitCode { kSuccess = 0, kFailed = 1, kBadInput = 2, kOutOfMemory = 3, kIo = 4 };

/// Describes the exit codes as text for --help and the man pages.
inline constexpr const char* kExitCodes =
    "0 done, 1 the run failed, 2 bad input, 3 out of memory, 4 I/O, 130 and 143 stopped by a "
    "signal";

/// Describes an error for a person and for a script.
struct ErrorText {
  std::string text{};       ///< what happened and what to do; a foreign error may have lines
  ExitCode code = kFailed;  ///< of a program that it ends
};
/// Returns what a program says of an error that ends it. Rethrows what is no std::exception.
[[nodiscard]] ErrorText describe_error(const std::exception_ptr& error);

/// Logs the error as one line and returns its exit code. `file`, with a `line` > 0 of it, stands in
/// front of a message that does not name the file.
int report_error(const std::exception_ptr& error, const std::string& file = {}, int64_t line = 0);

}  // namespace tare

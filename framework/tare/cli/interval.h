// The time between two looks of a command that looks again and again. Internal.
#pragma once

#include <chrono>
#include <string>

#include "tare/cli/arguments.h"

namespace tare::cli {

using Seconds = std::chrono::duration<double>;

/// Returns the value of an option, such as "every", as a time from 0.1 seconds to a day. Throws
/// ConfigError, naming `command`, for any other value.
[[nodiscard]] Seconds interval(const Arguments& arguments, const std::string& option,
                               const std::string& command);

/// Waits for `time`, or until a signal of an InterruptScope arrives.
void wait(Seconds time);

}  // namespace tare::cli

// answer_help(): what a program of the commands says of itself.
#pragma once

#include <optional>
#include <string>

namespace tare::cli {

/// Returns the name that a program was called by, from its first argument.
[[nodiscard]] std::string called_by(const char* program);

/// Prints what the arguments of a program ask to be told: the list of the commands (`--help`,
/// `help`, or on standard error where there are no arguments), the help of a command (`help run`,
/// `run --help`) or the version. Returns the exit status; unset: the arguments ask for work. Throws
/// ConfigError for a command or an option that is not known, and IoError for a text that cannot be
/// written.
[[nodiscard]] std::optional<int> answer_help(int argc, char** argv);

}  // namespace tare::cli

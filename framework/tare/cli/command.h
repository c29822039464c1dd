// The commands of the `tare` program, in one table: what they are called and take.
#pragma once

#include <string>
#include <vector>

#include "tare/cli/arguments.h"

namespace tare::cli {

/// Returns every command, in the order of the help.
[[nodiscard]] const std::vector<Command>& commands();
/// Throws ConfigError for an unknown name, naming the nearest.
[[nodiscard]] const Command& find_command(const std::string& name);
/// Returns the text that `tare --help` prints, within `width` columns; `program` is the name that
/// the program was called by.
[[nodiscard]] std::string overview(size_t width, const std::string& program);

}  // namespace tare::cli

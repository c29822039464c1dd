// Shell completion scripts, made from the table of commands. Completing runs no program.
#pragma once

#include <string>
#include <vector>

#include "tare/cli/arguments.h"

namespace tare::cli {

/// `shell`: "bash", "zsh" or "fish"; another is a ConfigError. The script completes commands,
/// options, files, folders and fixed words, as the placeholders of the table say.
[[nodiscard]] std::string completion(const std::string& shell,
                                     const std::vector<Command>& commands);

}  // namespace tare::cli

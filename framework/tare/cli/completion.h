// Shell completion scripts, made from the table of commands. Completing runs no program.
#pragma once

#include <string>
#include <vector>

#include "tare/cli/arguments.h"

namespace tare::cli {

/// Names a key of a recipe, "phases.N.lr", and values to offer.
struct Setting {
  std::string key{};                  ///< dotted path
  std::vector<std::string> values{};  ///< values to offer
};

/// Returns the completion script for a `shell`: "bash", "zsh" or "fish"; another is a ConfigError.
/// The script completes commands, options, files, folders and fixed words, as the placeholders of
/// the table say, and behind a recipe its keys and their values, with the number of a phase as it
/// was typed, or 0, for N. A place for a KEY takes `options_of_entries` too, such as
/// "model.resnet9.width". `program`: the name that the script completes, with functions of its own.
[[nodiscard]] std::string completion(const std::string& shell, const std::vector<Command>& commands,
                                     const std::vector<Setting>& settings,
                                     const std::vector<std::string>& options_of_entries,
                                     const std::string& program = "tare");

}  // namespace tare::cli

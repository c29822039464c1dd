// Parses the placeholders in the table of commands: "FILE", "a|b", "[key=value ...]".
#pragma once

#include <string>
#include <vector>

namespace tare::cli {

/// Selects the completions that a shell offers for an argument.
enum class Completes {
  nothing,
  files,
  folders,
  words,
  keys,     ///< of a recipe
  settings  ///< keys of a recipe with their values
};

/// Describes an argument in the help of a command, such as "[RECIPE ...]".
struct Placeholder {
  std::string name{};                        ///< without brackets and dots
  Completes completes = Completes::nothing;  ///< what a shell offers
  std::vector<std::string> words{};          ///< of Completes::words
  bool repeats = false;                      ///< "...": any number of them
};

/// Parses one placeholder. `commands` are the words of "COMMAND".
[[nodiscard]] Placeholder parse_placeholder(const std::string& text,
                                            const std::vector<std::string>& commands);
/// Parses the placeholders of Command::arguments, by position.
[[nodiscard]] std::vector<Placeholder> parse_placeholders(const std::string& arguments,
                                                          const std::vector<std::string>& commands);

}  // namespace tare::cli

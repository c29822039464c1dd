// Command: the description of a command, from which parsing, --help, man page and shell completion
// are made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tare/base/table.h"
#include "tare/base/terminal.h"

namespace tare::cli {

/// Describes one option. Its placeholder decides what the shell completes: "FILE", "RECIPE",
/// "BUNDLE" and "INPUT" files, "DIR" and "RUN" folders, "COMMAND" the commands, "a|b" these words,
/// any other nothing.
struct OptionSpec {
  std::string name{};   ///< long name without dashes
  std::string value{};  ///< placeholder of its value, e.g. "FILE"; empty: a flag
  std::string help{};   ///< one line
  /// The value of an option given without one: then `--name`, `--name=VALUE` and, for the fixed
  /// words of the placeholder, `--name WORD` are allowed; any other word after it is an argument of
  /// its own. Empty: a value is required.
  std::string implicit{};
  char letter = 0;  ///< 'v' for "-v" beside "--verbose"; 0: none
};

/// Holds a parsed command line.
class Arguments {
 public:
  /// Takes the options' values by name, without dashes; "" for a flag.
  Arguments(std::vector<std::string> positional, std::map<std::string, std::string> options)
      : positional_(std::move(positional)), options_(std::move(options)) {}
  /// Returns the words that are no options, in order.
  [[nodiscard]] const std::vector<std::string>& positional() const { return positional_; }
  /// Whether it was given.
  [[nodiscard]] bool has(const std::string& option) const { return options_.contains(option); }
  /// Returns the option's value, or `otherwise`.
  [[nodiscard]] std::string get(const std::string& option, const std::string& otherwise = {}) const;
  /// Returns the option's whole number, or `otherwise` where it is not given. Throws ConfigError
  /// for a text that is none from `least` to `most`.
  [[nodiscard]] int64_t number(const std::string& option, int64_t otherwise, int64_t least,
                               int64_t most = INT64_MAX) const;

 private:
  std::vector<std::string> positional_;
  std::map<std::string, std::string> options_;
};

/// Describes a command of the program, as in `tare --help`.
struct Command {
  std::string name{};                   ///< the word after `tare`
  std::string summary{};                ///< one line
  std::string arguments{};              ///< placeholders, e.g. "RECIPE [key=value ...]"
  size_t least = 0;                     ///< positional arguments it needs
  std::vector<OptionSpec> options{};    ///< in the order of the help
  std::vector<std::string> examples{};  ///< whole command lines
  std::vector<ListEntry> actions{};     ///< what its first argument may be, if that is an action
};

/// Returns all options of a command: its own, then --help.
[[nodiscard]] std::vector<OptionSpec> all_options(const Command& command);
/// Returns how an option is written, e.g. "--json FILE", "--resume[=always|auto]".
[[nodiscard]] std::string usage(const OptionSpec& option);
/// Returns "tare run [OPTIONS] RECIPE [key=value ...]", where `called` is "tare run".
[[nodiscard]] std::string usage(const Command& command, const std::string& called);
/// Returns the text that --help prints, within `width` columns. `called` is how the command was
/// called, such as "./own run" or "tare-predict"; empty: "tare run".
[[nodiscard]] std::string help(const Command& command, size_t width = kAnyWidth,
                               std::string called = {});

/// Parses a command line; `argv` begins with the command's own name. --help and -h set the option
/// "help", and nothing else is checked then. Throws ConfigError for an unknown option (naming the
/// nearest), a missing value, an option with a value that is given twice, too few or too many
/// positional arguments, or an argument above 4 KiB.
[[nodiscard]] Arguments parse(const Command& command, int argc, const char* const* argv);

/// Returns the program tare-predict, which `tare predict` executes.
[[nodiscard]] const Command& predict_command();

}  // namespace tare::cli

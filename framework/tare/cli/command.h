// The commands of the `tare` program: one table, from which parsing and --help are made.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tare::cli {

/// What the program returns; documented in every --help.
enum ExitCode { kSuccess = 0, kFailed = 1, kBadInput = 2, kOutOfMemory = 3, kIo = 4 };

struct OptionSpec {
  std::string name;   ///< long name without dashes
  std::string value;  ///< placeholder of its value, e.g. "FILE"; empty: a flag
  std::string help;   ///< one line
  /// The value taken when the option stands bare, so that `--name`, `--name=WORD` and `--name WORD`
  /// are allowed where WORD is `value` or this; any other word behind it is an argument of its own.
  /// Empty: a value must be given.
  std::string implicit{};
};

/// A parsed command line.
class Arguments {
 public:
  Arguments(std::vector<std::string> positional, std::map<std::string, std::string> options)
      : positional_(std::move(positional)), options_(std::move(options)) {}
  [[nodiscard]] const std::vector<std::string>& positional() const { return positional_; }
  [[nodiscard]] bool has(const std::string& option) const { return options_.contains(option); }
  /// The option's value, or `otherwise`.
  [[nodiscard]] std::string get(const std::string& option, const std::string& otherwise = {}) const;

 private:
  std::vector<std::string> positional_;
  std::map<std::string, std::string> options_;
};

struct Command {
  std::string name;
  std::string summary;    ///< one line
  std::string arguments;  ///< e.g. "RECIPE [key=value ...]"
  size_t least = 0;       ///< positional arguments it needs
  std::vector<OptionSpec> options;
  std::vector<std::string> examples;
  int (*run)(const Arguments& arguments) = nullptr;
};

/// Every command, in the order of the help.
[[nodiscard]] const std::vector<Command>& commands();
/// Throws ConfigError for an unknown name, naming the nearest.
[[nodiscard]] const Command& find_command(const std::string& name);
[[nodiscard]] std::string overview();
[[nodiscard]] std::string help(const Command& command);

/// Throws ConfigError for an unknown option, a missing value, too few positional arguments, or an
/// argument above 4 KiB.
[[nodiscard]] Arguments parse(const Command& command, int argc, const char* const* argv);

// The commands themselves.
int run_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int data_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);

}  // namespace tare::cli

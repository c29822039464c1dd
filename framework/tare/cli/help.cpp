// Prints the help of the commands.
#include "tare/cli/help.h"

#include <filesystem>
#include <iostream>
#include <string_view>

#include "tare/base/terminal.h"
#include "tare/cli/arguments.h"
#include "tare/cli/command.h"
#include "tare/runtime/exit_code.h"

namespace tare::cli {
namespace {

bool asks(std::string_view word) { return word == "--help" || word == "-h"; }

int print_help(const Command& command, const char* program) {
  std::cout << help(command, width_for(std::cout), called_by(program) + ' ' + command.name);
  return kSuccess;
}

}  // namespace

std::string called_by(const char* program) {
  return std::filesystem::path(program).filename().string();
}

std::optional<int> answer_help(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << overview(width_for(std::cout), argc > 0 ? called_by(argv[0]) : "tare");
    return kBadInput;
  }
  const std::string_view name = argv[1];
  const bool helps = asks(name) || name == "help";
  if (helps && argc > 2) return print_help(find_command(argv[2]), argv[0]);
  if (helps) {
    std::cout << overview(width_for(std::cout), called_by(argv[0]));
    return kSuccess;
  }
  if (name == "--version") {
    std::cout << "tare " TARE_VERSION "\n";
    return kSuccess;
  }
  bool may_ask = false;
  for (int i = 2; i < argc; ++i) may_ask = may_ask || asks(argv[i]);
  if (!may_ask) return std::nullopt;
  const Command& command = find_command(std::string(name));
  if (!parse(command, argc - 1, argv + 1).has("help")) return std::nullopt;
  return print_help(command, argv[0]);
}

}  // namespace tare::cli

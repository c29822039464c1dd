// Starts the command that the arguments of a program name.
#include "tare/cli/program.h"

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include "tare/base/signals.h"
#include "tare/cli/command.h"
#include "tare/cli/output.h"
#include "tare/cli/predict.h"
#include "tare/runtime/threads.h"

namespace tare {
namespace {

using namespace cli;

int dispatch(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const std::string program =
      argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "tare";
  const bool helps = name == "--help" || name == "-h" || name == "help";
  if (helps && argc > 2) {  // tare help run
    const Command& command = find_command(argv[2]);
    std::cout << help(command, width_for(std::cout), program + ' ' + command.name);
    return kSuccess;
  }
  if (name.empty() || helps) {
    (name.empty() ? std::cerr : std::cout) << overview(width_for(std::cout), program);
    return name.empty() ? kBadInput : kSuccess;
  }
  if (name == "--version") {
    std::cout << "tare " TARE_VERSION "\n";
    return kSuccess;
  }
  const Command& command = find_command(std::string(name));
  const std::string called = program + ' ' + command.name;
  if (command.run == nullptr) return predict_program(argc - 1, argv + 1, called);
  const Arguments arguments = parse(command, argc - 1, argv + 1);
  if (arguments.has("help")) {
    std::cout << help(command, width_for(std::cout), called);
    return kSuccess;
  }
  bound_spinning(argv);
  return command.run(arguments);
}

}  // namespace

int run_program(int argc, char** argv) {
  ignore_file_limit_signal();
  try {
    const int code = dispatch(argc, argv);
    if (code == kSuccess) check_output(argc > 1 ? argv[1] : "");
    return code;
  } catch (...) {
    return report_error(std::current_exception());
  }
}

}  // namespace tare

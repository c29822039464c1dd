// Starts the command that the arguments of a program name.
#include "tare/cli/program.h"

#include <exception>
#include <string>

#include "tare/base/signals.h"
#include "tare/cli/handlers.h"
#include "tare/cli/help.h"
#include "tare/cli/output.h"
#include "tare/cli/predict.h"
#include "tare/runtime/threads.h"

namespace tare {
namespace {

using namespace cli;

int dispatch(int argc, char** argv) {
  if (const auto code = answer_help(argc, argv)) return *code;
  const Command& command = find_command(argv[1]);
  if (command.name == predict_command().name)
    return predict_program(argc - 1, argv + 1, called_by(argv[0]) + ' ' + command.name);
  const Arguments arguments = parse(command, argc - 1, argv + 1);
  bound_spinning(argv);
  return run_handler(command.name, arguments);
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

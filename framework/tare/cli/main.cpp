// The program `tare`: starts the command that its arguments name.
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/signals.h"
#include "tare/cli/command.h"
#include "tare/cli/output.h"
#include "tare/runtime/threads.h"

namespace {

using namespace tare;
using namespace tare::cli;

// Prediction is a program of its own: it links, starts and holds far less.
int execute_predict(int argc, char** argv) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tare-predict";
  std::vector<char*> arguments(argv + 1, argv + argc);
  arguments[0] = const_cast<char*>(program.c_str());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  throw IoError("tare predict", program.string(), errno);
}

int dispatch(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name.empty() || name == "--help" || name == "-h" || name == "help") {
    (name.empty() ? std::cerr : std::cout) << overview(width_for(std::cout));
    return name.empty() ? kBadInput : kSuccess;
  }
  if (name == "--version") {
    std::cout << "tare " TARE_VERSION "\n";
    return kSuccess;
  }
  const Command& command = find_command(std::string(name));
  if (command.run == nullptr) {
    bound_spinning(argv);
    return execute_predict(argc, argv);
  }
  const Arguments arguments = parse(command, argc - 1, argv + 1);
  if (arguments.has("help")) {
    std::cout << help(command, width_for(std::cout));
    return kSuccess;
  }
  bound_spinning(argv);
  return command.run(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  ignore_file_limit_signal();
  try {
    const int code = dispatch(argc, argv);
    if (code == kSuccess) check_output(argc > 1 ? argv[1] : "");
    return code;
  } catch (...) {
    return report_error(std::current_exception());
  }
}

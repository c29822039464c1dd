// The program `tare`.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/cli/program.h"
#include "tare/config/field.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/threads.h"

namespace {

// Prediction is a program of its own: it links, starts and holds far less.
int execute_predict(int argc, char** argv) {
  tare::bound_spinning(argv);
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tare-predict";
  std::vector<char*> arguments(argv + 1, argv + argc);
  std::string called = "tare predict";  // what the help says
  arguments[0] = called.data();
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  throw tare::IoError("tare predict", program.string(), errno);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "predict") {
    try {
      return execute_predict(argc, argv);
    } catch (...) {
      return tare::report_error(std::current_exception());
    }
  }
  tare::config::hint_at_own_programs();
  return tare::run_program(argc, argv);
}

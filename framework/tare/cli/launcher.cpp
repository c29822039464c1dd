// The program `tare`: says what it can do, predicts, or executes the program that trains. It needs
// no LibTorch, whose set-up takes longer than most predictions.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/signals.h"
#include "tare/cli/early_status.h"
#include "tare/cli/help.h"
#include "tare/cli/output.h"
#include "tare/cli/predict_lite.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/threads.h"

namespace {

/// Executes a program that lies beside this one; returns the exit status where it cannot.
int execute(const char* name, std::vector<char*> arguments) {
  // The programs with LibTorch would execute themselves anew to set it, see bound_spinning().
  if (!std::getenv("GOMP_SPINCOUNT") && !std::getenv("OMP_WAIT_POLICY"))
    ::setenv("GOMP_SPINCOUNT", tare::kSpinCount, 1);
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto program = self.parent_path() / name;
  arguments.push_back(nullptr);
  if (!failed) ::execv(program.c_str(), arguments.data());
  tare::log::error("[tare] " + program.string() +
                   " cannot be started: " + (failed ? failed.message() : std::strerror(errno)) +
                   "; it belongs beside the program tare, install both");
  return tare::kIo;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  try {
    if (const auto code = tare::cli::answer_help(argc, argv)) {
      tare::cli::check_output(argc > 1 ? argv[1] : "");
      return *code;
    }
  } catch (const tare::Error&) {  // the program that is executed next reports it
  }
  if (const auto code = tare::cli::early_status(argc, argv)) return *code;
  if (argc < 2 || std::string_view(argv[1]) != "predict") return execute("tare-train", arguments);
  tare::ignore_file_limit_signal();
  if (const auto code = tare::cli::predict_lite(argc - 1, argv + 1)) return *code;
  std::string called = "tare predict";  // what the help says
  arguments.erase(arguments.begin());
  arguments.front() = called.data();
  return execute("tare-predict", arguments);
}

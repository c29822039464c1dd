#include <unistd.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/cli/command.h"
#include "tare/memory/init.h"
#include "tare/memory/oom.h"

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

bool wants_help(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help" || std::string_view(argv[i]) == "-h") return true;
  }
  return false;
}

int dispatch(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name.empty() || name == "--help" || name == "-h" || name == "help") {
    (name.empty() ? std::cerr : std::cout) << overview();
    return name.empty() ? kBadInput : kSuccess;
  }
  if (name == "--version") {
    std::cout << "tare " TARE_VERSION "\n";
    return kSuccess;
  }
  if (name == "predict") return execute_predict(argc, argv);
  const Command& command = find_command(std::string(name));
  if (wants_help(argc, argv)) {
    std::cout << help(command);
    return kSuccess;
  }
  return command.run(parse(command, argc - 1, argv + 1));
}

int exit_code(const std::exception_ptr& error) {
  if (const auto oom = memory::classify(error)) {
    log::error(oom->message);
    return kOutOfMemory;
  }
  try {
    std::rethrow_exception(error);
  } catch (const IoError& e) {
    log::error(e.what());
    return kIo;
  } catch (const Error& e) {
    log::error(e.what());
    return kBadInput;
  } catch (const c10::Error& e) {
    log::error(e.what_without_backtrace());
    return kFailed;
  } catch (const std::exception& e) {
    log::error(e.what());
    return kFailed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bound_spinning(argv);
  try {
    return dispatch(argc, argv);
  } catch (...) {
    return exit_code(std::current_exception());
  }
}

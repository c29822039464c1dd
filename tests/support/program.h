// Runs a program of the build by argument vector and takes what it prints.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace tare::testing {

struct ProgramResult {
  int status = -1;  ///< exit code, or 128 + signal
  std::string out, err;
};

/// The build's programs lie in TARE_BIN_DIR, which ctest sets.
inline std::string program_path(const std::string& name) {
  const char* folder = std::getenv("TARE_BIN_DIR");
  return (folder ? std::string(folder) + "/" : std::string()) + name;
}

class Program {
 public:
  /// Starts a program of the build, or one by its path; `folder` is its working directory.
  Program(const std::string& name, std::vector<std::string> arguments,
          const std::filesystem::path& folder = ".") {
    arguments.insert(arguments.begin(),
                     name.find('/') == std::string::npos ? program_path(name) : name);
    std::vector<char*> argv;
    for (auto& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    const auto absolute = std::filesystem::absolute(arguments[0]).string();
    pid_ = ::fork();
    if (pid_ != 0) return;
    redirect(1, "out");
    redirect(2, "err");
    if (::chdir(folder.c_str()) != 0) ::_exit(126);
    ::execv(absolute.c_str(), argv.data());
    ::_exit(127);
  }
  [[nodiscard]] int pid() const { return pid_; }

  ProgramResult wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read("out"),
            read("err")};
  }
  /// Returns the text that the program has printed so far to `stream`.
  [[nodiscard]] std::string read(const std::string& stream) const {
    std::ifstream file(place_ / stream);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  void redirect(int descriptor, const std::string& name) const {
    const int file = ::open((place_ / name).c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    ::dup2(file, descriptor);
    ::close(file);
  }

  TempDir place_;
  int pid_ = -1;
};

inline ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments,
                                 const std::filesystem::path& folder = ".") {
  return Program(name, arguments, folder).wait();
}

}  // namespace tare::testing

// A pseudo-terminal, for what programs print to a terminal only.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/program.h"

namespace tare::testing {

/// Lines end with a line feed only.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(int columns) : reader_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (reader_ < 0 || ::grantpt(reader_) != 0 || ::unlockpt(reader_) != 0 ||
        (terminal_ = ::open(::ptsname(reader_), O_RDWR | O_NOCTTY)) < 0)
      throw std::runtime_error("no pseudo-terminal");
    winsize size{};
    size.ws_row = 40;
    size.ws_col = static_cast<unsigned short>(columns);
    ::ioctl(terminal_, TIOCSWINSZ, &size);
  }
  ~PseudoTerminal() {
    close_terminal();
    ::close(reader_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  /// The end that a program prints to.
  [[nodiscard]] int descriptor() const { return terminal_; }
  void close_terminal() {
    if (terminal_ >= 0) ::close(terminal_);
    terminal_ = -1;
  }
  /// Returns the output: all of it once every program has closed the terminal, else what there is
  /// now.
  std::string read() {
    std::string text;
    char buffer[4096];
    while (true) {
      pollfd ready{.fd = reader_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, terminal_ < 0 ? -1 : 0) <= 0) break;
      const auto size = ::read(reader_, buffer, sizeof buffer);
      if (size <= 0) break;
      text.append(buffer, static_cast<size_t>(size));
    }
    std::erase(text, '\r');
    return text;
  }

 private:
  int reader_, terminal_ = -1;
};

/// Runs a program of the build on a terminal of so many columns; `out` is all that it prints.
inline ProgramResult run_on_terminal(int columns, const std::string& name,
                                     std::vector<std::string> arguments,
                                     const std::filesystem::path& folder = ".") {
  PseudoTerminal terminal(columns);
  const std::string path = std::filesystem::absolute(program_path(name)).string();
  arguments.insert(arguments.begin(), path);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t id = ::fork();
  if (id == 0) {
    ::setenv("TERM", "xterm", 1);
    for (const int descriptor : {0, 1, 2}) ::dup2(terminal.descriptor(), descriptor);
    if (::chdir(folder.c_str()) != 0) ::_exit(126);
    ::execv(path.c_str(), argv.data());
    ::_exit(127);
  }
  terminal.close_terminal();
  ProgramResult result{.out = terminal.read(), .err = {}};
  int status = 0;
  ::waitpid(id, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace tare::testing

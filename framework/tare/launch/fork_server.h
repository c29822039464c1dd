// ForkServer: starts runs by fork from a process that has everything loaded. Internal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tare/launch/process.h"

namespace tare::launch {

/// Performs a run in its own process, instead of executing the program again: gets the words of
/// ChildStart::command, and returns the exit code. Must not throw.
using ForkMain = std::function<int(const std::vector<std::string>& command)>;

/// Owns a process forked from this one, which forks once more for each run, always one ahead of
/// the next. A run starts with all libraries loaded and initialised, at once, and is a child of
/// this process like one that was executed: with a session of its own, killed when this process
/// ends. For the host only: a GPU's driver does not survive a fork. The server ends with its
/// object, or with this process.
class ForkServer {
 public:
  /// Forks now. `prepare` is called in the server, once: what it does every run inherits. This
  /// process must have one thread, and neither it nor `prepare` may have begun a parallel region.
  /// Throws StateError if there are more threads; IoError.
  ForkServer(const std::function<void()>& prepare, const ForkMain& main);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  /// Starts a command as Child(start) does, which it uses for commands above 64 KiB. `environment`
  /// is set before `main`; what libraries have read of it when they were loaded stays. If the
  /// server has been killed, a warning reports it once, and commands are executed from then on.
  /// Throws IoError.
  [[nodiscard]] Child start(const ChildStart& start);

 private:
  /// Asks the server; returns the run's process, or -errno; 0: nobody answers any more.
  [[nodiscard]] int64_t ask(const std::string& message) const;

  bool is_lost_ = false;  // the server
  int socket_ = -1;
  int64_t pid_ = 0;
};

}  // namespace tare::launch

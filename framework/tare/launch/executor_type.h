// ExecutorType: what is known of an executor before it is made, and what it is made from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tare/launch/executor.h"

namespace tare::launch {

/// Makes a process of this machine.
using StartProcess = std::function<Child(const ChildStart&)>;

/// Holds the arguments from which an executor is made.
struct ExecutorContext {
  std::filesystem::path folder{};    ///< of the sweep, for files of the executor's own
  std::vector<std::string> agent{};  ///< words of a program that serves as agent; a folder is added
  StartProcess start{};              ///< for processes of this machine; empty: they are executed
  int64_t ranks = 1;                 ///< of each run, which train together
};

/// Describes one type of executors with its options. A value.
struct ExecutorType {
  bool is_remote = false;  ///< runs may be on other machines, as many at a time as are asked for
  /// Touches nothing before the executor's methods are called.
  std::function<std::unique_ptr<Executor>(const ExecutorContext&)> make{};
  /// Does the work of ExecutorContext::agent; empty: the type has no agents. It does not
  /// depend on the options. Returns the exit code. Throws StateError where no executor of the type
  /// has started the program; IoError.
  std::function<int(const std::filesystem::path& folder)> serve{};
};

}  // namespace tare::launch

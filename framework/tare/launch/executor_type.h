// ExecutorType: what is known of an executor before it is made, and what it is made from.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tare/launch/executor.h"

namespace tare::launch {

/// Makes a process of this machine.
using StartProcess = std::function<Child(const ChildStart&)>;

struct ExecutorOptions {
  std::string type = "local";          ///< local: this machine; slurm: jobs of a cluster
  std::vector<std::string> options{};  ///< of each job, as the cluster takes them: "--gres=gpu:1"
  std::vector<std::string> setup{};    ///< lines of the shell in each job, before its runs
  int64_t save_before_s = 90;          ///< seconds before the end of a job's time its run saves

  bool operator==(const ExecutorOptions&) const = default;
};

/// What an executor is made from.
struct ExecutorContext {
  ExecutorOptions options{};
  std::filesystem::path folder{};    ///< of the sweep, for files of the executor's own
  std::vector<std::string> agent{};  ///< words of a program that serves as agent; a folder is added
  StartProcess start{};              ///< for processes of this machine; empty: they are executed
};

/// One type of executors. A value.
struct ExecutorType {
  std::string name{};
  bool is_remote = false;  ///< runs may be on other machines, as many at a time as are asked for
  /// Throws ConfigError for wrong options; null: the type takes none.
  void (*check)(const ExecutorOptions&) = nullptr;
  /// Touches nothing before the executor's methods are called.
  std::unique_ptr<Executor> (*make)(const ExecutorContext&) = nullptr;
  /// What a program of ExecutorContext::agent does; null: the type has no agents. Returns the exit
  /// code. Throws StateError where no executor of the type has started the program; IoError.
  int (*serve)(const std::filesystem::path& folder) = nullptr;
};

}  // namespace tare::launch

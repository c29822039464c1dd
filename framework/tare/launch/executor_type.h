// The types of executors by the names that a sweep's file has for them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tare/config/field.h"
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
void visit_fields(config::Visitor& visit, ExecutorOptions& o);

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
  std::string place{};     ///< where its runs are, in words
  bool is_remote = false;  ///< runs may be on other machines, as many at a time as are asked for
  bool takes_options = false;  ///< ExecutorOptions::options and setup have a meaning
  /// Throws ConfigError for options that contradict each other.
  void (*check)(const ExecutorOptions&) = nullptr;
  /// Touches nothing before the executor's methods are called.
  std::unique_ptr<Executor> (*make)(const ExecutorContext&) = nullptr;
  /// What a program of ExecutorContext::agent does; null: the type has no agents. Returns the exit
  /// code. Throws StateError where no executor of the type has started the program; IoError.
  int (*serve)(const std::filesystem::path& folder) = nullptr;
};

/// Every type; a new one is an entry here.
[[nodiscard]] const std::vector<ExecutorType>& executor_types();
/// Throws ConfigError for a name that is not known.
[[nodiscard]] const ExecutorType& executor_type(const std::string& name);

/// Throws ConfigError for options that the type does not take, or that the executor sets itself.
void check(const ExecutorOptions& options);

/// Serves as an agent of the executor that has started this program with the folder.
int serve_agent(const std::filesystem::path& folder);

}  // namespace tare::launch

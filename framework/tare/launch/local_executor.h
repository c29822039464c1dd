// LocalExecutor: runs are children of this process.
#pragma once

#include <functional>

#include "tare/launch/executor_type.h"

namespace tare::launch {

/// Runs processes of this machine, each as a child of this process. Not thread-safe.
class LocalExecutor : public Executor {
 public:
  /// Starts processes with `start`; empty: executes the command.
  explicit LocalExecutor(StartProcess start = {});

  /// Returns none: children end with the process that started them.
  std::map<std::string, std::unique_ptr<Process>> recover(
      const std::vector<ProcessId>& ids) override;
  bool has_capacity(int64_t) override { return true; }
  std::unique_ptr<Process> start(const ChildStart& how) override;

 private:
  StartProcess start_;
};

}  // namespace tare::launch

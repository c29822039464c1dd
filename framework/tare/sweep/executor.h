// Where the processes of a sweep's runs are.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tare/sweep/child.h"

namespace tare::sweep {

/// Starts runs. Not thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Called once, before start(), with what an earlier coordinator thought was on: the runs by
  /// their names that it has started and that can be followed. The others have ended then. Throws
  /// StateError for one that may still be on, and is out of reach.
  virtual std::map<std::string, std::unique_ptr<Process>> left_behind(
      const std::vector<ChildMark>& marks) = 0;
  /// Whether start() may be called now; called a few times a second, with how many runs are on or
  /// could be at a time. Throws StateError if there can never be room.
  virtual bool has_room(int64_t runs) = 0;
  /// Throws IoError.
  virtual std::unique_ptr<Process> start(const ChildStart& how) = 0;
};

/// Ends those processes that are still there, with their groups.
void end_processes(const std::vector<ChildMark>& marks);

/// Children of this process.
class LocalExecutor : public Executor {
 public:
  using Start = std::function<Child(const ChildStart&)>;

  /// `start` makes the process; empty: the command is executed.
  explicit LocalExecutor(Start start = {});

  /// None: they end with the coordinator that started them.
  std::map<std::string, std::unique_ptr<Process>> left_behind(
      const std::vector<ChildMark>& marks) override;
  bool has_room(int64_t) override { return true; }
  std::unique_ptr<Process> start(const ChildStart& how) override;

 private:
  Start start_;
};

}  // namespace tare::sweep

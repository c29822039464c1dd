// Runs as children of this process.
#include "tare/launch/local_executor.h"

#include <utility>

#include "tare/base/error.h"
#include "tare/launch/executors.h"

namespace tare::launch {

LocalExecutor::LocalExecutor(StartProcess start) : start_(std::move(start)) {
  if (!start_) start_ = [](const ChildStart& how) { return Child(how); };
}

std::map<std::string, std::unique_ptr<Process>> LocalExecutor::recover(
    const std::vector<ProcessId>& ids) {
  for (const auto& id : ids)
    if (const std::string type = id.executor(); !type.empty())
      throw StateError(
          "sweep", "runs of this sweep may still be on elsewhere",
          "run it with executor: " + type + " once more, which follows them or stops them");
  end_processes(ids);
  return {};
}

std::unique_ptr<Process> LocalExecutor::start(const ChildStart& how) {
  return std::make_unique<Child>(start_(how));
}

namespace executors {
void add_local_executor(Registry& all) {
  all.add("local", "starts runs as processes of this machine", [] {
    return ExecutorType{.make = [](const ExecutorContext& context) -> std::unique_ptr<Executor> {
      return std::make_unique<LocalExecutor>(context.start);
    }};
  });
}
}  // namespace executors

}  // namespace tare::launch

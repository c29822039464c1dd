#include "tare/sweep/executor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "tare/base/error.h"

namespace tare::sweep {

void end_processes(const std::vector<ChildMark>& marks) {
  for (const auto& mark : marks)
    while (is_alive(mark)) {
      kill(static_cast<pid_t>(-mark.pid), SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

LocalExecutor::LocalExecutor(Start start) : start_(std::move(start)) {
  if (!start_) start_ = [](const ChildStart& how) { return Child(how); };
}

std::map<std::string, std::unique_ptr<Process>> LocalExecutor::left_behind(
    const std::vector<ChildMark>& marks) {
  if (std::ranges::any_of(marks, &ChildMark::is_of_cluster))
    throw StateError("sweep", "runs of this sweep may still be on in jobs of Slurm",
                     "run it with executor: slurm once more, which follows them or stops them");
  end_processes(marks);
  return {};
}

std::unique_ptr<Process> LocalExecutor::start(const ChildStart& how) {
  return std::make_unique<Child>(start_(how));
}

}  // namespace tare::sweep

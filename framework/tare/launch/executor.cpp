// Implements the functions that executors have in common.
#include "tare/launch/executor.h"

#include <csignal>
#include <thread>

namespace tare::launch {

std::vector<DeviceSlot> Executor::slots(int64_t) const { return {}; }

std::chrono::milliseconds Executor::poll_interval() const { return std::chrono::milliseconds(50); }

void end_processes(const std::vector<ProcessId>& ids) {
  for (const auto& id : ids)
    while (is_alive(id)) {
      kill(static_cast<pid_t>(-id.pid), SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace tare::launch

// Keeps the waiting runs, and chooses the next one that fits.
#include "tare/sweep/queue.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tare/base/error.h"

namespace tare::sweep {

void Queue::replace(std::vector<Trial> waiting) {
  std::map<int64_t, Queued> old;
  for (auto& queued : waiting_) old.emplace(queued.trial.id, std::move(queued));
  waiting_.clear();
  for (auto& trial : waiting) {
    const auto known = old.find(trial.id);
    Queued queued = known == old.end() ? Queued{} : std::move(known->second);
    queued.trial = std::move(trial);
    waiting_.push_back(std::move(queued));
  }
}

std::optional<Queue::Start> Queue::next(const std::vector<launch::DeviceSlot>& devices,
                                        const std::vector<Placed>& running, size_t count,
                                        const Ask& unknown, const Ask& ask, const Refuse& refuse) {
  size_t far = static_cast<size_t>(kPatience);
  for (const auto& device : devices) far += static_cast<size_t>(device.jobs);
  std::vector<Waiting> asked;
  while (asked.size() < std::min(waiting_.size(), far)) {
    const size_t i = asked.size();
    Queued& queued = waiting_[i];
    const auto place = waiting_.begin() + static_cast<std::ptrdiff_t>(i);
    try {
      if (!queued.bytes) queued.bytes = ask(queued.trial);
    } catch (const Error& error) {
      const Trial trial = std::move(queued.trial);
      waiting_.erase(place);
      refuse(trial, error.what());
      continue;
    }
    asked.push_back(
        {*queued.bytes > 0 ? *queued.bytes : unknown(queued.trial), queued.passed_over});
    auto choice = next_start(devices, running, asked, count);
    if (!choice) continue;
    for (size_t before = 0; before < choice->waiting; ++before) ++waiting_[before].passed_over;
    const auto chosen = waiting_.begin() + static_cast<std::ptrdiff_t>(choice->waiting);
    Start start{std::move(chosen->trial), std::move(choice->devices), choice->bytes};
    waiting_.erase(chosen);
    return start;
  }
  return std::nullopt;
}

}  // namespace tare::sweep

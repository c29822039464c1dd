#include "tare/sweep/resources.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tare/memory/machine.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/threads.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/outcome.h"

namespace tare::sweep {
namespace {

int64_t cores() { return std::max(1, runtime::usable_processors()); }

}  // namespace

std::vector<std::string> settings_of(const SweepOptions& sweep, const Cell& cell,
                                     const std::string& run_name) {
  std::vector<std::string> all = override_texts(sweep, sweep.set);
  std::ranges::copy(override_texts(sweep, cell), std::back_inserter(all));
  all.push_back(override_text("folder", config::Node::string(sweep.log_dir.string())));
  all.push_back(override_text("name", config::Node::string(run_name)));
  return all;
}

DeviceRoom host_room(const Resources& resources) {
  const int64_t free = memory::machine_memory().available_bytes;
  return {.name = "host",
          .total_bytes = resources.total.bytes.value_or(free),
          .jobs = resources.jobs > 0 ? resources.jobs : cores()};
}

DeviceRoom slurm_room(const Resources& resources) {
  constexpr int64_t kAny = int64_t{1} << 60;
  return {.name = kSlurmRoom,
          .total_bytes = kAny,
          .jobs = resources.jobs > 0 ? resources.jobs : kMaxSlurmAgents};
}

int64_t jobs_in(const std::vector<DeviceRoom>& rooms, int64_t jobs) {
  int64_t all = 0;
  for (const auto& room : rooms) all += room.jobs;
  return jobs > 0 ? std::min(jobs, all) : all;
}

Rooms::Rooms(Find find, const Resources& resources)
    : find_(std::move(find)), all_(found(resources)), jobs_(jobs_in(all_, resources.jobs)) {}

std::vector<DeviceRoom> Rooms::found(const Resources& resources) const {
  auto rooms = find_ ? find_(resources) : std::vector<DeviceRoom>();
  return rooms.empty() ? std::vector{host_room(resources)} : rooms;
}

void Rooms::follow(const Resources& resources) {
  const auto now = found(resources);
  for (size_t i = 0; i < std::min(all_.size(), now.size()); ++i) {
    all_[i].jobs = now[i].jobs;
    if (!all_[i].is_gpu() && resources.total.bytes) all_[i].total_bytes = now[i].total_bytes;
  }
  jobs_ = jobs_in(all_, resources.jobs);
}

int64_t Rooms::largest_bytes() const {
  return std::ranges::max_element(all_, {}, &DeviceRoom::total_bytes)->total_bytes;
}

int64_t Rooms::with_context(int64_t bytes) const {
  return bytes > 0 ? bytes + all_.front().context_bytes : 0;
}

int64_t threads_of_run(int64_t jobs) { return std::max<int64_t>(1, cores() / jobs); }

int64_t reservation(const SweepOptions& sweep, std::optional<int64_t> predicted) {
  constexpr int64_t kLeast = int64_t{16} << 20;
  if (sweep.resources.memory.bytes) return *sweep.resources.memory.bytes;
  return predicted ? std::max(kLeast, *predicted + *predicted / 10) : 0;
}

std::optional<int64_t> asked_again(const OnFailure& limits, const Trial& trial,
                                   int64_t reserved_bytes, int64_t room_bytes,
                                   const Outcome& outcome) {
  const bool oom = outcome.exit_code == kOutOfMemory;
  const bool killed = outcome.reason.starts_with("signal");
  if (trial.attempt >= limits.max_retries || !(oom || killed)) return std::nullopt;
  if (killed) return trial.asked_bytes;
  if (reserved_bytes >= room_bytes) return std::nullopt;
  const int64_t more = std::max(reserved_bytes + reserved_bytes / 2, outcome.peak_bytes * 6 / 5);
  return std::min(more, room_bytes);
}

}  // namespace tare::sweep

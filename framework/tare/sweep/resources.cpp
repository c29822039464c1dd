// Divides cores and memory among runs.
#include "tare/sweep/resources.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "tare/base/error.h"
#include "tare/memory/machine.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/threads.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/outcome.h"

namespace tare::sweep {
namespace {

int64_t cores() { return std::max(1, runtime::usable_processors()); }

}  // namespace

std::vector<std::string> settings_of(const SweepOptions& sweep, const search::Cell& cell,
                                     const std::string& run_name) {
  std::vector<std::string> all = override_texts(sweep, sweep.set);
  std::ranges::copy(override_texts(sweep, cell), std::back_inserter(all));
  all.push_back(override_text("folder", config::Node::string(sweep.log_dir.string())));
  all.push_back(override_text("name", config::Node::string(run_name)));
  return all;
}

launch::DeviceSlot host_slot(const Resources& resources) {
  const int64_t free = memory::machine_memory().available_bytes;
  return {.name = "host",
          .total_bytes = resources.total.bytes.value_or(free),
          .jobs = resources.jobs > 0 ? resources.jobs : cores() / resources.ranks};
}

size_t slots_of_run(const std::vector<launch::DeviceSlot>& slots, const Resources& resources) {
  return slots.front().is_gpu() ? static_cast<size_t>(resources.ranks) : 1;
}

int64_t ranks_in_slot(const std::vector<launch::DeviceSlot>& slots, const Resources& resources) {
  return slots.front().is_gpu() ? 1 : resources.ranks;
}

int64_t jobs_in(const std::vector<launch::DeviceSlot>& slots, const Resources& resources) {
  const auto each = static_cast<int64_t>(slots_of_run(slots, resources));
  int64_t all = 0, there = 0;
  for (const auto& slot : slots) {
    all += slot.jobs;
    there += slot.jobs > 0 ? 1 : 0;
  }
  all = there < each ? 0 : all / each;
  return resources.jobs > 0 ? std::min(resources.jobs, all) : all;
}

void check_ranks_fit(const std::vector<launch::DeviceSlot>& slots, const Resources& resources) {
  const int64_t ranks = resources.ranks, cards = std::ssize(slots);
  const auto refuse = [&](const std::string& problem, const std::string& allowed) {
    throw ConfigError("tare sweep", "resources.ranks", problem, allowed, std::to_string(ranks));
  };
  if (slots.front().is_remote() || ranks == 1) return;
  if (slots.front().is_gpu()) {
    if (cards < ranks)
      refuse("is more than the cards that can be used, of which each rank takes one",
             "at most " + std::to_string(cards) + ", or device: cpu in the recipe or in `set`");
    return;
  }
  if (resources.jobs == 0 && cores() < ranks)
    refuse("is more than the processors that can be used, of which each rank takes one",
           "at most " + std::to_string(cores()) +
               ", or resources.jobs too, which sets the runs at a time whatever there is");
}

Slots::Slots(Find find, const Resources& resources)
    : find_(std::move(find)),
      all_(found(resources)),
      of_run_(slots_of_run(all_, resources)),
      ranks_(ranks_in_slot(all_, resources)),
      jobs_(jobs_in(all_, resources)) {}

std::vector<launch::DeviceSlot> Slots::found(const Resources& resources) const {
  auto slots = find_ ? find_(resources) : std::vector<launch::DeviceSlot>();
  return slots.empty() ? std::vector{host_slot(resources)} : slots;
}

void Slots::update(const Resources& resources) {
  const auto now = found(resources);
  for (size_t i = 0; i < all_.size(); ++i) {
    if (retired_.contains(i)) continue;
    // A card is known by its UUID, and is not found while its memory is taken.
    const auto same = all_[i].is_gpu()
                          ? std::ranges::find(now, all_[i].name, &launch::DeviceSlot::name)
                          : now.begin() + static_cast<std::ptrdiff_t>(std::min(i, now.size()));
    if (same == now.end()) continue;
    all_[i].jobs = same->jobs;
    if (!all_[i].is_gpu() && resources.total.bytes) all_[i].total_bytes = same->total_bytes;
  }
  jobs_ = jobs_in(all_, resources);
}

void Slots::retire(size_t slot, const Resources& resources) {
  retired_.insert(slot);
  all_[slot].jobs = all_[slot].total_bytes = 0;
  jobs_ = jobs_in(all_, resources);
}

int64_t Slots::with_context(int64_t bytes) const {
  if (bytes == 0) return 0;
  return bytes +
         std::ranges::max_element(all_, {}, &launch::DeviceSlot::context_bytes)->context_bytes;
}

int64_t threads_of_each(int64_t processes) {
  const int64_t share = std::max<int64_t>(1, cores() / std::max<int64_t>(1, processes));
  const char* set = std::getenv("OMP_NUM_THREADS");
  const int64_t most = set ? std::strtoll(set, nullptr, 10) : 0;  // of "4,2" the outer level
  return most > 0 ? std::min(share, most) : share;
}

int64_t reservation(const SweepOptions& sweep, std::optional<int64_t> predicted) {
  constexpr int64_t kLeast = int64_t{16} << 20;
  if (sweep.resources.memory.bytes) return *sweep.resources.memory.bytes;
  return predicted ? std::max(kLeast, *predicted + *predicted / 10) : 0;
}

int64_t MemoryEstimator::planned(const Trial& trial) const {
  if (trial.asked_bytes > 0) return trial.asked_bytes;
  const bool asks = !sweep_.resources.memory.bytes && predict_;
  const auto bytes =
      asks ? predict_(settings_of(sweep_, trial.cell, trial.run_name)) : std::nullopt;
  return slots_.with_context(reservation(sweep_, bytes)) * slots_.ranks();
}

int64_t MemoryEstimator::measured(const Trial& trial) {
  const int64_t peak = peak_of_kind(trial);
  return peak > 0 ? slots_.with_context(reservation(sweep_, peak)) * slots_.ranks()
                  : slots_.largest_bytes();
}

void MemoryEstimator::add(const Trial& trial) {
  if (trial.peak_bytes <= 0) return;
  highest_ = std::max(highest_, trial.peak_bytes);
  unread_.push_back(trial);
}

int64_t MemoryEstimator::peak_of_kind(const Trial& trial) {
  if (highest_ == 0) return 0;
  for (const Trial& ended : std::exchange(unread_, {})) {
    int64_t& peak = peaks_[signature_of(ended)];
    peak = std::max(peak, ended.peak_bytes);
  }
  const auto like = peaks_.find(signature_of(trial));
  return like == peaks_.end() ? highest_ : like->second;
}

const std::string& MemoryEstimator::signature_of(const Trial& trial) {
  const auto known = signatures_.find(trial.number);
  if (known != signatures_.end()) return known->second;
  std::string signature;
  try {
    if (signature_) signature = signature_(settings_of(sweep_, trial.cell, trial.run_name));
  } catch (const Error&) {  // the recipe no longer takes the settings of a run that has ended
  }
  return signatures_.emplace(trial.number, std::move(signature)).first->second;
}

std::optional<int64_t> asked_again(const OnFailure& limits, const Trial& trial,
                                   int64_t reserved_bytes, const Slots& slots,
                                   const Outcome& outcome) {
  const bool oom = outcome.exit_code == kOutOfMemory;
  const bool killed = outcome.reason.starts_with("signal");
  if (trial.attempt >= limits.max_retries || !(oom || killed)) return std::nullopt;
  if (killed) return trial.asked_bytes;
  const int64_t most = slots.largest_bytes();
  if (reserved_bytes >= most) return std::nullopt;
  const int64_t more =
      std::max(reserved_bytes + reserved_bytes / 2, outcome.peak_bytes * slots.ranks() * 6 / 5);
  return std::min(more, most);
}

}  // namespace tare::sweep

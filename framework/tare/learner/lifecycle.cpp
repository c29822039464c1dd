// Purges and destroys a Learner, and lists its tensors.
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/learner/learner.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_site.h"
#include "tare/memory/phase.h"
#include "tare/train/fit_loop.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

using Devices = std::vector<c10::Device>;

int64_t tracked(const Devices& devices) {
  int64_t bytes = 0;
  for (const c10::Device device : devices) bytes += memory::backend(device).usage().allocated_bytes;
  return bytes;
}

CategoryBytes bytes_on(const Ledger& ledger, const Devices& devices) {
  CategoryBytes sum;
  for (const c10::Device device : devices) {
    const CategoryBytes one = ledger.bytes(device);
    for (size_t i = 0; i < kCategories; ++i) sum.bytes[i] += one.bytes[i];
  }
  return sum;
}

void reclaim(const Devices& devices) {
  for (const c10::Device device : devices) memory::backend(device).reclaim();
}

// Returns the bytes that were freed, by category; bytes beside the ledger (caches, workspaces) are
// counted as workspace, so that the sum is what the allocator got.
CategoryBytes freed_between(const CategoryBytes& before, const CategoryBytes& after,
                            int64_t tracked_freed) {
  CategoryBytes freed;
  for (size_t i = 0; i < kCategories; ++i) freed.bytes[i] = before.bytes[i] - after.bytes[i];
  freed[Category::workspace] += std::max<int64_t>(0, tracked_freed - freed.total());
  return freed;
}

using Entries = std::vector<LedgerEntry>;

/// Whether blocks of this phase are made by a training or validation; predictions are the caller's.
bool is_training(uint32_t phase) {
  using memory::PhaseKind;
  constexpr std::array kKinds = {PhaseKind::data, PhaseKind::forward, PhaseKind::backward,
                                 PhaseKind::step, PhaseKind::validate};
  return std::ranges::any_of(
      kKinds, [phase](PhaseKind kind) { return phase == static_cast<uint32_t>(kind); });
}

struct DeviceBlock {
  c10::Device device = c10::kCPU;
  memory::LiveBlock block{};
};

/// Returns the blocks that a Learner's work has allocated and that no living object lists: tensors
/// kept by functions that it was given, or by somebody who got them from these.
/// `born_after` has the newest block of each device when the Learner was made.
std::vector<DeviceBlock> unlisted(const Devices& devices, const std::vector<uint64_t>& born_after) {
  const Ledger known = Accountable::living_ledger();
  std::vector<DeviceBlock> found;
  for (size_t i = 0; i < devices.size(); ++i)
    for (const auto& block : memory::backend(devices[i]).live_blocks(born_after[i]))
      if (!known.contains(block.data) && is_training(block.phase))
        found.push_back({devices[i], block});
  return found;
}

// Finds tensors that are alive although their owner is gone. Nothing is allocated in the meantime,
// so an address that is live still belongs to its block.
class Survivors {
 public:
  explicit Survivors(const Devices& devices) : devices_(devices) {
    for (const c10::Device device : devices)
      for (const auto& block : memory::backend(device).live_blocks()) live_.insert(block.data);
  }

  [[nodiscard]] Entries of(const Ledger& ledger) const {
    Entries held;
    for (const auto& entry : ledger.entries())
      if (std::ranges::find(devices_, entry.device) != devices_.end() && live_.contains(entry.data))
        held.push_back(entry);
    return held;
  }

  /// Returns one entry for each device, phase and call site.
  [[nodiscard]] Entries of(const std::vector<DeviceBlock>& blocks) const {
    std::map<std::pair<std::string, std::string>, LedgerEntry> by_origin;
    for (const auto& [device, block] : blocks) {
      if (!live_.contains(block.data)) continue;
      std::string name = "allocated in phase " + memory::phase_name(block.phase);
      if (block.stack != 0) name += " at " + memory::site_of(block.stack).str();
      auto& entry = by_origin[{device.str(), name}];
      if (entry.bytes == 0) entry = {Category::other, name, device, block.data, 0};
      entry.bytes += block.bytes;
    }
    Entries held;
    for (auto& [name, entry] : by_origin) held.push_back(std::move(entry));
    return held;
  }

 private:
  Devices devices_;
  std::unordered_set<const void*> live_;
};

CategoryBytes sum_of(const Entries& entries) {
  CategoryBytes sum;
  for (const auto& entry : entries) sum[entry.category] += entry.bytes;
  return sum;
}

constexpr double kFragmented = 0.25;  // share of reserved memory that no tensor uses

bool wants_compaction(const PurgeOptions& options, const Devices& devices) {
  if (options.compact) return *options.compact;
  return std::ranges::any_of(devices, [](c10::Device device) {
    if (device.is_cpu()) return false;
    const auto usage = memory::backend(device).usage();
    return static_cast<double>(usage.reserved_bytes - usage.allocated_bytes) >
           kFragmented * static_cast<double>(usage.reserved_bytes);
  });
}

void clear_caches(const Splits& data) {
  for (const DatasetPtr& set : {data.train, data.valid, data.test})
    if (set) set->clear_cache();
}

}  // namespace

PurgeReport Learner::purge(const PurgeOptions& options) {
  LearnerState& p = idle("learner.purge");
  const memory::Phase phase(memory::PhaseKind::purge);
  p.return_to_device();
  PurgeReport report;
  report.tracked_before = tracked(p.devices());
  const CategoryBytes before = bytes_on(ledger(), p.devices());

  const auto& callbacks = p.options.callbacks;
  for (auto it = callbacks.rbegin(); it != callbacks.rend(); ++it) (*it)->purge();
  if (p.pending)  // of callbacks of the call that began the fit
    for (CallbackState& saved : p.pending->callbacks) saved.tensors.clear();
  for (auto it = p.metrics.rbegin(); it != p.metrics.rend(); ++it) it->reset();
  if (options.clear_opt && p.optimizer) p.optimizer->clear();
  for (const auto& parameter : p.model.parameters()) parameter.tensor.mutable_grad().reset();
  if (options.clear_cache) clear_caches(p.data);
  at::autocast::clear_cache();
  reclaim(p.devices());
  if (wants_compaction(options, p.devices())) {
    p.compact();
    report.compacted = true;
  }

  report.tracked_after = tracked(p.devices());
  report.freed = freed_between(before, bytes_on(ledger(), p.devices()),
                               report.tracked_before - report.tracked_after);
  return report;
}

namespace {

/// Holds what a Learner's ledger has before it is destroyed, and the blocks that its fits made and
/// no ledger has.
struct Listed {
  Ledger owned{};
  std::vector<DeviceBlock> made{};
};

/// Lists nothing where a user's account() fails: what the Learner holds is released all the same.
Listed list(const LearnerState& state) {
  try {
    return {state.ledger(), unlisted(state.devices(), state.born_after)};
  } catch (const std::exception& error) {
    log::warning("the tensors of a destroyed Learner are not listed: " +
                 printable(error.what(), 400));
  }
  return {};
}

}  // namespace

PurgeReport Learner::destroy() {
  PurgeReport report;
  if (!state_) return report;
  LearnerState& p = idle("learner.destroy");
  const Devices devices = p.devices();
  report.tracked_before = tracked(devices);
  const auto [owned, made] = list(p);
  clear_caches(p.data);
  state_.reset();
  at::autocast::clear_cache();
  reclaim(devices);
  report.tracked_after = tracked(devices);
  const Survivors survivors(devices);
  report.holders = survivors.of(owned);
  report.freed = freed_between(bytes_on(owned, devices), sum_of(report.holders),
                               report.tracked_before - report.tracked_after);
  for (auto& entry : survivors.of(made)) report.holders.push_back(std::move(entry));
  report.held = sum_of(report.holders);
  std::ranges::stable_sort(report.holders, std::greater{}, &LedgerEntry::bytes);
  return report;
}

Ledger Learner::ledger() const { return state_ ? state_->ledger() : Ledger(); }

}  // namespace tare

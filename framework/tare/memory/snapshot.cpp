// Sorts the live blocks of a device by category and holder.
#include "tare/memory/snapshot.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>

#include "tare/base/bytes.h"
#include "tare/memory/backend.h"
#include "tare/memory/phase.h"
#include "tare/memory/saved_tensors.h"

namespace tare::memory {
namespace {

/// The work under way when a snapshot is taken.
struct Moment {
  uint32_t step = current_step();
  uint32_t phase = current_phase();
  bool in_step = step_under_way();
  bool knows_saved = SavedTensors::in_scope();
};

using MaybeCategory = std::optional<Category>;

MaybeCategory category_of_forward(const LiveBlock& block, const Moment& now) {
  const bool saved = SavedTensors::contains(block.data);
  if (saved) return Category::activations;
  if (!now.in_step) return {};
  return now.knows_saved ? Category::workspace : Category::activations;
}

/// Returns the category of a block that is in no ledger.
MaybeCategory category_of(const LiveBlock& block, const Moment& now) {
  if (block.step != now.step) return {};
  switch (static_cast<PhaseKind>(block.phase)) {
    case PhaseKind::none:
      return {};
    case PhaseKind::data:
      return Category::batch;
    case PhaseKind::forward:
      return category_of_forward(block, now);
    case PhaseKind::backward:
    case PhaseKind::step:
      if (now.in_step) return Category::workspace;
      break;
    default:
      break;
  }
  if (block.phase != now.phase) return {};
  return block.phase < kPhaseKinds ? Category::workspace : Category::other;
}

/// The blocks of a snapshot, sorted into holders as they are added.
class Sorter {
 public:
  explicit Sorter(const Ledger& ledger) {
    for (const auto& entry : ledger.entries()) owned_.emplace(entry.data, &entry);
  }

  void add(const LiveBlock& block) {
    const auto owned = owned_.find(block.data);
    Holder holder;
    if (owned != owned_.end()) {
      holder.category = owned->second->category;
      holder.name = owned->second->name;
    } else if (block.library_workspace) {
      holder.category = Category::workspace;
      holder.name = kLibraries;
      library_bytes_ += block.bytes;
    } else {
      holder.category = category_of(block, now_);
      holder.phase = phase_name(block.phase);
      if (block.stack != 0) holder.site = site_of(block.stack);
    }
    auto& place = holders_[{holder.category, holder.name, holder.phase, holder.site}];
    holder.bytes = place.bytes + block.bytes;
    holder.count = place.count + 1;
    place = std::move(holder);
  }

  void finish(Snapshot& snapshot) {
    for (auto& [key, holder] : holders_) {
      snapshot.allocated_bytes += holder.bytes;
      (holder.category ? snapshot.categories[*holder.category] : snapshot.unexplained_bytes) +=
          holder.bytes;
      snapshot.holders.push_back(std::move(holder));
    }
    snapshot.library_bytes = library_bytes_;
    std::ranges::stable_sort(snapshot.holders, std::greater{}, &Holder::bytes);
  }

 private:
  Moment now_;
  int64_t library_bytes_ = 0;
  std::unordered_map<const void*, const LedgerEntry*> owned_;
  std::map<std::tuple<MaybeCategory, std::string, std::string, CallSite>, Holder> holders_;
};

}  // namespace

std::string Holder::str() const {
  std::string text = format_bytes(bytes) + " in " + format_count(count) +
                     (count == 1 ? " block: " : " blocks: ") +
                     (category ? to_string(*category) : "unexplained");
  if (!name.empty()) return text + ", " + name;
  text += ", born in phase " + phase;
  return site == CallSite{} ? text : text + " at " + site.str();
}

std::string Snapshot::summary() const {
  const std::string known = categories.total() == 0 ? "" : categories.str() + ", ";
  return known + "unexplained " + format_bytes(unexplained_bytes);
}

std::string Snapshot::str(size_t top) const {
  std::string text =
      device.str() + ": " + format_bytes(allocated_bytes) + " allocated: " + summary() + '\n';
  for (size_t i = 0; i < std::min(top, holders.size()); ++i) text += "  " + holders[i].str() + '\n';
  return text;
}

Snapshot take_snapshot(c10::Device device) {
  return take_snapshot(device, Accountable::living_ledger());
}

Snapshot take_snapshot(c10::Device device, const Ledger& ledger) {
  const auto& its_backend = backend(device);
  Snapshot snapshot;
  snapshot.device = its_backend.device();
  Sorter sorter(ledger);
  for (const auto& block : its_backend.live_blocks()) sorter.add(block);
  sorter.finish(snapshot);
  return snapshot;
}

}  // namespace tare::memory

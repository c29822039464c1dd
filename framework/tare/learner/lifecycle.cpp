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
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/model/stored.h"
#include "tare/train/fit_loop.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

int64_t tracked(c10::Device device) { return memory::backend(device).usage().allocated_bytes; }

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

/// Returns the blocks that a Learner's work has allocated and that no living object lists: tensors
/// kept by functions that it was given, or by somebody who got them from these.
std::vector<memory::LiveBlock> unlisted(c10::Device device, uint64_t born_after) {
  const Ledger known = Accountable::living_ledger();
  auto blocks = memory::backend(device).live_blocks(born_after);
  std::erase_if(blocks, [&](const auto& block) {
    return known.contains(block.data) || !is_training(block.phase);
  });
  return blocks;
}

// Finds tensors that are alive although their owner is gone. Nothing is allocated in the meantime,
// so an address that is live still belongs to its block.
class Survivors {
 public:
  explicit Survivors(c10::Device device) : device_(device) {
    for (const auto& block : memory::backend(device).live_blocks()) live_.insert(block.data);
  }

  [[nodiscard]] Entries of(const Ledger& ledger) const {
    Entries held;
    for (const auto& entry : ledger.entries())
      if (entry.device == device_ && live_.contains(entry.data)) held.push_back(entry);
    return held;
  }

  /// Returns one entry for each phase and call site.
  [[nodiscard]] Entries of(const std::vector<memory::LiveBlock>& blocks) const {
    std::map<std::string, LedgerEntry> by_origin;
    for (const auto& block : blocks) {
      if (!live_.contains(block.data)) continue;
      std::string name = "allocated in phase " + memory::phase_name(block.phase);
      if (block.stack != 0) name += " at " + memory::site_of(block.stack).str();
      auto& entry = by_origin[name];
      if (entry.bytes == 0) entry = {Category::other, name, device_, block.data, 0};
      entry.bytes += block.bytes;
    }
    Entries held;
    for (auto& [name, entry] : by_origin) held.push_back(std::move(entry));
    return held;
  }

 private:
  c10::Device device_;
  std::unordered_set<const void*> live_;
};

CategoryBytes sum_of(const Entries& entries) {
  CategoryBytes sum;
  for (const auto& entry : entries) sum[entry.category] += entry.bytes;
  return sum;
}

int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

/// Returns the optimizer's state on a device; nothing of an optimizer whose state cannot be listed.
std::vector<at::Tensor> state_on(const Optimizer* optimizer, c10::Device device) {
  std::vector<at::Tensor> tensors;
  if (!optimizer) return tensors;
  try {
    for (const auto& [name, tensor] : optimizer->state())
      if (tensor.device() == device) tensors.push_back(tensor);
  } catch (const StateError&) {  // of a class of torch::optim that is not known: it stays
  }
  return tensors;
}

/// Copies tensors to a device. Those that lie in one block, as the weights of recurrent layers do
/// on a card, lie in one there too.
std::vector<at::Tensor> copies_on(const std::vector<at::Tensor>& tensors, c10::Device device) {
  const auto block_of = [](const at::Tensor& tensor) {
    return std::pair(tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type());
  };
  using Block = std::pair<const c10::StorageImpl*, c10::ScalarType>;
  std::map<Block, int> holders;
  for (const auto& tensor : tensors) ++holders[block_of(tensor)];
  std::map<Block, at::Tensor> blocks;
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    const at::Tensor values = tensor.detach();
    if (holders[block_of(tensor)] == 1) {
      copies.push_back(values.to(device, /*non_blocking=*/false, /*copy=*/true));
      continue;
    }
    at::Tensor& block = blocks[block_of(tensor)];
    if (!block.defined()) {
      const auto elements = static_cast<int64_t>(tensor.storage().nbytes() / tensor.element_size());
      block =
          values.as_strided({elements}, {1}, 0).to(device, /*non_blocking=*/false, /*copy=*/true);
    }
    copies.push_back(block.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset()));
  }
  return copies;
}

// A round trip of every weight, and of the optimizer's state if there is one, through the host, so
// that the allocator's segments end up dense. The host copies are whole before the first device
// tensor is let go.
void compact(LearnerState& p) {
  std::vector<at::Tensor> originals;
  for (const auto& [name, tensor] : stored_state(p.model)) originals.push_back(tensor);
  const std::vector<at::Tensor> state = state_on(p.optimizer.get(), p.device);
  originals.insert(originals.end(), state.begin(), state.end());
  const std::vector<at::Tensor> host = copies_on(originals, c10::kCPU);
  for (size_t i = 0; i < originals.size(); ++i) originals[i].set_data(host[i]);
  memory::backend(p.device).reclaim();
  if (p.device.is_cpu()) return;
  try {
    const std::vector<at::Tensor> back = copies_on(host, p.device);
    for (size_t i = 0; i < originals.size(); ++i) originals[i].set_data(back[i]);
  } catch (const c10::OutOfMemoryError&) {
    p.state_on_host = state;
    throw OutOfMemory(p.device, bytes_of(host), tracked(p.device),
                      memory::backend(p.device).budget(),
                      "weights and state are whole and lie on the host: free memory on the device, "
                      "then purge() or fit() moves them back");
  }
}

constexpr double kFragmented = 0.25;  // share of reserved memory that no tensor uses

bool wants_compaction(const PurgeOptions& options, c10::Device device) {
  if (options.compact) return *options.compact;
  if (device.is_cpu()) return false;
  const auto usage = memory::backend(device).usage();
  return static_cast<double>(usage.reserved_bytes - usage.allocated_bytes) >
         kFragmented * static_cast<double>(usage.reserved_bytes);
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
  report.tracked_before = tracked(p.device);
  const CategoryBytes before = ledger().bytes(p.device);

  const auto& callbacks = p.options.callbacks;
  for (auto it = callbacks.rbegin(); it != callbacks.rend(); ++it) (*it)->purge();
  if (p.pending)  // of callbacks of the call that began the fit
    for (CallbackState& saved : p.pending->callbacks) saved.tensors.clear();
  for (auto it = p.metrics.rbegin(); it != p.metrics.rend(); ++it) it->reset();
  if (options.clear_opt && p.optimizer) p.optimizer->clear();
  for (const auto& parameter : p.model.parameters()) parameter.tensor.mutable_grad().reset();
  if (options.clear_cache) clear_caches(p.data);
  at::autocast::clear_cache();
  memory::backend(p.device).reclaim();
  if (wants_compaction(options, p.device)) {
    compact(p);
    report.compacted = true;
  }

  report.tracked_after = tracked(p.device);
  report.freed =
      freed_between(before, ledger().bytes(p.device), report.tracked_before - report.tracked_after);
  return report;
}

namespace {

/// Holds what a Learner's ledger has before it is destroyed, and the blocks that its fits made and
/// no ledger has.
struct Listed {
  Ledger owned{};
  std::vector<memory::LiveBlock> made{};
};

/// Lists nothing where a user's account() fails: what the Learner holds is released all the same.
Listed list(const LearnerState& state) {
  try {
    return {state.ledger(), unlisted(state.device, state.born_after)};
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
  const c10::Device device = p.device;
  report.tracked_before = tracked(device);
  const auto [owned, made] = list(p);
  clear_caches(p.data);
  state_.reset();
  at::autocast::clear_cache();
  memory::backend(device).reclaim();
  report.tracked_after = tracked(device);
  const Survivors survivors(device);
  report.holders = survivors.of(owned);
  report.freed = freed_between(owned.bytes(device), sum_of(report.holders),
                               report.tracked_before - report.tracked_after);
  for (auto& entry : survivors.of(made)) report.holders.push_back(std::move(entry));
  report.held = sum_of(report.holders);
  std::ranges::stable_sort(report.holders, std::greater{}, &LedgerEntry::bytes);
  return report;
}

Ledger Learner::ledger() const { return state_ ? state_->ledger() : Ledger(); }

}  // namespace tare

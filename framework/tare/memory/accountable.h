// The ledger of an object that owns tensors, and what can be asked of it: the Learner and the
// Predictor are Accountable.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace tare {

/// What a block of memory is for. `mapped`: weights that lie in a memory-mapped file and cost no
/// allocation.
enum class Category {
  parameters,
  buffers,
  gradients,
  optimizer,
  activations,
  batch,
  workspace,
  other,
  mapped
};
inline constexpr size_t kCategories = 9;
[[nodiscard]] const char* to_string(Category category);

/// Bytes per category; a value.
struct CategoryBytes {
  std::array<int64_t, kCategories> bytes{};
  int64_t& operator[](Category c) { return bytes[static_cast<size_t>(c)]; }
  int64_t operator[](Category c) const { return bytes[static_cast<size_t>(c)]; }
  /// Sum over all categories but `mapped`.
  [[nodiscard]] int64_t total() const;
  /// "gradients 44.7 MiB, optimizer 89.4 MiB", empty categories left out; "nothing" when all are 0.
  [[nodiscard]] std::string str() const;
};

/// One storage that somebody answers for.
struct LedgerEntry {
  Category category = Category::other;
  std::string name;  ///< e.g. "layer1.0.conv1.weight"
  c10::Device device = c10::kCPU;
  const void* data =
      nullptr;        ///< start of the storage: the key by which it is matched with live blocks
  int64_t bytes = 0;  ///< size of the whole storage, also when the tensor is a view of part of it
};

/// The storages that an object answers for, each once: a second tensor on a storage already listed
/// adds nothing.
class Ledger {
 public:
  /// Undefined tensors and empty storages are ignored.
  void add(Category category, const std::string& name, const at::Tensor& tensor);
  void add(const Ledger& other);
  [[nodiscard]] const std::vector<LedgerEntry>& entries() const { return entries_; }
  [[nodiscard]] bool contains(const void* data) const { return storages_.contains(data); }
  [[nodiscard]] CategoryBytes bytes(c10::Device device) const;
  [[nodiscard]] CategoryBytes bytes() const;  ///< over all devices

 private:
  std::vector<LedgerEntry> entries_;
  std::unordered_set<const void*> storages_;
};

struct PurgeOptions {
  bool clear_opt = true;  ///< also free the optimizer's state
  std::optional<bool>
      compact{};  ///< move what stays through the host to defragment; unset: only above a threshold
};

/// What a purge or destroy freed, by category, in bytes that the allocator got back (exact, not
/// estimated).
struct PurgeReport {
  CategoryBytes freed;
  CategoryBytes held;  ///< destroy: what the object listed and somebody else still holds; it is the
                       ///< holder's now
  int64_t tracked_before = 0, tracked_after = 0;  ///< allocated bytes on the object's device
  bool compacted = false;
  [[nodiscard]] int64_t total() const { return freed.total(); }
  /// "reclaimed 134.1 MiB: gradients 44.7 MiB, optimizer 89.4 MiB".
  [[nodiscard]] std::string str() const;
};

/// Has a ledger and can be purged. Living Accountables are listed, so that a leak report can tell
/// what is answered for; not thread-safe, like the objects themselves.
class Accountable {
 public:
  Accountable();
  virtual ~Accountable();
  Accountable(const Accountable&) = delete;
  Accountable& operator=(const Accountable&) = delete;

  /// Never used twice in a process: tells an object from a later one at the same address.
  [[nodiscard]] uint64_t account_id() const { return id_; }
  [[nodiscard]] virtual std::string account_name() const = 0;
  [[nodiscard]] virtual Ledger ledger() const = 0;
  /// Frees all but the essentials (parameters and buffers), in place.
  virtual PurgeReport purge_account() = 0;

  /// Every Accountable alive now, in order of construction.
  [[nodiscard]] static std::vector<const Accountable*> living();

 private:
  uint64_t id_;
};

}  // namespace tare

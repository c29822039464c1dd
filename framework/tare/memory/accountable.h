// Accountable: an object that lists the tensors it owns and can be purged. The Learner and the
// Predictor are Accountable.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tare {

/// Classifies memory by its use.
enum class Category {
  parameters,
  buffers,
  gradients,
  optimizer,  ///< the optimizer's state
  activations,
  batch,
  workspace,
  other,
  mapped  ///< weights in a memory-mapped file: no allocation
};
inline constexpr size_t kCategories = 9;                 ///< how many categories there are
[[nodiscard]] const char* to_string(Category category);  ///< the enumerator's name; static

/// Counts bytes per category; a value.
struct CategoryBytes {
  std::array<int64_t, kCategories> bytes{};  ///< by the category's number
  /// Returns a reference to the bytes of a category, to change.
  int64_t& operator[](Category c) { return bytes[static_cast<size_t>(c)]; }
  /// Returns the bytes of a category.
  int64_t operator[](Category c) const { return bytes[static_cast<size_t>(c)]; }
  /// Returns the sum over all categories but `mapped`.
  [[nodiscard]] int64_t total() const;
  /// Returns "gradients 44.7 MiB, optimizer 89.4 MiB", without empty categories; "nothing" when all
  /// are 0.
  [[nodiscard]] std::string str() const;
};

/// Describes one storage that an object owns.
struct LedgerEntry {
  Category category = Category::other;  ///< what the storage is for
  std::string name{};                   ///< e.g. "layer1.0.conv1.weight"
  c10::Device device = c10::kCPU;       ///< where the storage is
  /// Start of the storage, by which live blocks are matched; on the meta device, whose storages
  /// have no address, the context that the allocator gave.
  const void* data = nullptr;
  int64_t bytes = 0;  ///< of the whole storage, even if the tensor is a view of part of it
};

/// Lists the storages that an object owns, each listed once, under the first tensor added on it.
class Ledger {
 public:
  /// Adds a tensor's storage. Undefined tensors and empty storages are ignored.
  void add(Category category, const std::string& name, const at::Tensor& tensor);
  /// Adds the entries of another ledger; a storage that is listed already is ignored.
  void add(const Ledger& other);
  /// Returns the entries in the order in which they were added.
  [[nodiscard]] const std::vector<LedgerEntry>& entries() const& { return entries_; }
  /// Returns the entries of a ledger that is destroyed at the end of the expression, for a loop
  /// over learner.ledger().entries().
  [[nodiscard]] std::vector<LedgerEntry> entries() && { return std::move(entries_); }
  /// Whether a storage that starts at `data` is listed.
  [[nodiscard]] bool contains(const void* data) const { return storages_.contains(data); }
  /// Returns the bytes of the storages on one device, by category.
  [[nodiscard]] CategoryBytes bytes(c10::Device device) const;
  [[nodiscard]] CategoryBytes bytes() const;  ///< sums over all devices

 private:
  std::vector<LedgerEntry> entries_;
  std::unordered_set<const void*> storages_;
};

/// Requires that a type lists the tensors that it holds by `void account(Ledger&) const`.
template <class T>
concept Accounting = requires(const T& object, Ledger& all) {
  object.account(all);
};

/// Sets what a purge frees, and whether it defragments the device.
struct PurgeOptions {
  bool clear_opt = true;  ///< also free the optimizer's state
  /// Whether to copy what stays to the host and back, to defragment the device; unset: only above a
  /// threshold.
  std::optional<bool> compact{};
  /// Whether to free the samples that data sets keep to be faster too; they are read again when
  /// they are asked for.
  bool clear_cache = true;
};

/// Reports what a purge or destroy freed, by category, in bytes that went back to the allocator:
/// exact, not estimated.
struct PurgeReport {
  CategoryBytes freed{};  ///< bytes that went back to the allocator
  CategoryBytes held{};   ///< destroy: tensors of the object that somebody else keeps alive
  /// The tensors of `held` one by one, largest first: what the object's ledger lists, by name;
  /// what was allocated in its work and is in no ledger, such as the tensors that a loss function
  /// keeps, as `other` by its phase and call site.
  std::vector<LedgerEntry> holders{};
  int64_t tracked_before = 0, tracked_after = 0;  ///< allocated bytes on the object's device
  bool compacted = false;                         ///< the device was defragmented
  [[nodiscard]] int64_t total() const { return freed.total(); }  ///< returns the sum of `freed`
  /// Returns "reclaimed 134.1 MiB: gradients 44.7 MiB, optimizer 89.4 MiB"; after a destroy that
  /// left some tensors alive also "; still held: 2 KiB allocated in phase forward".
  [[nodiscard]] std::string str() const;
};

/// Is the base of objects that list the tensors they own and can be purged. All living ones are
/// registered, so that a leak report can omit what they own. Not thread-safe.
class Accountable {
 public:
  Accountable();
  virtual ~Accountable();
  Accountable(const Accountable&) = delete;
  Accountable& operator=(const Accountable&) = delete;

  /// Returns a number that is unique in the process, so that a later object at the same address can
  /// be distinguished.
  [[nodiscard]] uint64_t account_id() const { return id_; }
  /// Returns the object's name in reports: "learner", "predictor".
  [[nodiscard]] virtual std::string account_name() const = 0;
  /// Returns the storages that the object owns now, by category and name.
  [[nodiscard]] virtual Ledger ledger() const = 0;
  /// Frees everything but parameters and buffers, and with `clear_opt` false the optimizer's state,
  /// in place.
  virtual PurgeReport purge_account(const PurgeOptions& options) = 0;

  /// Returns every Accountable alive now, in order of construction.
  [[nodiscard]] static std::vector<const Accountable*> living();
  /// Returns the ledgers of the living objects in one.
  [[nodiscard]] static Ledger living_ledger();

 private:
  uint64_t id_;
};

}  // namespace tare

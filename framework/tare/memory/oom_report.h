// The report of a refused allocation: what held the memory, made before the stack unwinds.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tare/memory/snapshot.h"

namespace tare::memory {

/// Describes the training under way by its batch and the setting that determines the batch.
struct Workload {
  int64_t batch = 0;      ///< samples per forward; 0: as the watch around says
  std::string setting{};  ///< key that sets the batch, "phases.1.batch"; empty: as the watch around
  bool in_parts = false;  ///< `batch` is the size of the parts of a batch that was cut
};

/// Records the state of a device's memory when an allocation was refused. A value.
struct OutOfMemoryReport {
  c10::Device device = c10::kCPU;         ///< on which the request was refused
  int64_t asked_bytes = 0;                ///< of the refused request
  std::optional<int64_t> budget_bytes{};  ///< unset: the system refused
  std::string phase{};                    ///< in force on the thread that asked
  Snapshot snapshot{};                    ///< without names on a thread beside the training
  Workload workload{};                    ///< what ran, as the innermost watch was given it
  /// Largest batch that would have fitted up to this allocation; 0: not even one sample; unset: the
  /// batch is unknown or the phase does not depend on it. An estimate: what is allocated for
  /// activations, batch and workspace (but not what libraries keep), and what was asked, are taken
  /// to grow with the batch.
  std::optional<int64_t> fitting_batch{};

  /// Returns "batch 12 instead of 32 would have fitted up to this allocation, by a linear
  /// estimate", of parts "micro-batches of 12 instead of 25"; empty without `fitting_batch`.
  [[nodiscard]] std::string advice() const;
  /// Returns several lines with the five largest holders, ending with a newline.
  [[nodiscard]] std::string str() const;
};

/// Reports, while in scope, every refused allocation of any device and thread: the report reads the
/// ledgers of all living objects, at a cost of about a snapshot. Outside, a refusal pays one
/// branch. Watches nest; open them on the thread that drives the training. The Learner opens one
/// for fit, validate and get_preds.
class OutOfMemoryWatch {
 public:
  /// Begins to watch; see Workload for what the report says of it.
  explicit OutOfMemoryWatch(Workload workload);
  ~OutOfMemoryWatch();
  OutOfMemoryWatch(const OutOfMemoryWatch&) = delete;
  OutOfMemoryWatch& operator=(const OutOfMemoryWatch&) = delete;

 private:
  friend struct Watches;
  Workload workload_;
  OutOfMemoryWatch* outer_;
};

/// Returns the newest report since the outermost watch was opened, also if the watch has ended;
/// nullptr: there was no refusal. An allocation refused while an exception is being handled does
/// not replace the report of the one before. Thread-safe.
[[nodiscard]] std::shared_ptr<const OutOfMemoryReport> last_out_of_memory();

/// Called by allocators when they refuse, before they throw and without a lock held. Returns the
/// report; nullptr outside a watch, or if there is no memory for it.
std::shared_ptr<const OutOfMemoryReport> report_out_of_memory(c10::Device device,
                                                              int64_t asked_bytes) noexcept;

}  // namespace tare::memory

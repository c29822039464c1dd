// Defines the reports of an Experiment: values, with their printed forms.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/memory/call_site.h"

namespace tare {

/// Holds figures of memory::Usage, or differences of them, in bytes. They are never added to one
/// another.
struct MemoryFigures {
  int64_t allocated_bytes = 0;  ///< tracked: live tensor storages, exact
  int64_t reserved_bytes = 0;   ///< held by the tensor allocator, live or cached
  int64_t process_bytes = 0;    ///< held by the process; host: resident set, with mapped files
  int64_t pinned_bytes = 0;     ///< page-locked memory of the host for copies to cards
};

/// Reports an experiment's figures for one device.
struct DeviceReport {
  c10::Device device = c10::kCPU;  ///< that was measured
  std::string name{};              ///< of the hardware
  /// Now, or when finish() began, minus the baseline; negative: more was freed than allocated.
  MemoryFigures consumed{};
  MemoryFigures reclaimed{};  ///< what finish() freed; 0 before it
  /// Highest allocated bytes so far, minus the baseline; without finish() itself.
  int64_t peak_bytes = 0;
  int64_t available_bytes = 0;  ///< still allocatable, now or after finish()
  /// Counts reserved bytes of a caching allocator, now or when finish() began, that are free but
  /// cannot be given back, because live blocks lie in their segments.
  int64_t fragmented_bytes = 0;
  /// Allocations since the baseline that needed the allocator's cache given back first. More than a
  /// few mean that the work hardly fits and is slow.
  int64_t retries = 0;

  /// Returns the allocated bytes that the experiment left behind: consumed minus reclaimed.
  [[nodiscard]] int64_t residual_bytes() const {
    return consumed.allocated_bytes - reclaimed.allocated_bytes;
  }
  /// Returns by how much the process's memory has grown after finish() beyond what tensors explain:
  /// memory of malloc, of containers or of libraries that was not given back. Negative: the process
  /// has less than before.
  [[nodiscard]] int64_t residual_beside_tensors_bytes() const {
    return consumed.process_bytes - reclaimed.process_bytes - residual_bytes();
  }
  /// Returns the reclaimed share of the consumed allocated bytes, in per cent; 100 if nothing was
  /// consumed.
  [[nodiscard]] double reclaimed_percent() const;
};

/// Reports leaked blocks: allocated inside the experiment, alive after finish(), not kept, and in
/// the ledger of no living Accountable. One entry per device, phase of allocation and, if the
/// experiment gathers them, call site; largest first.
struct LeakReport {
  c10::Device device = c10::kCPU;  ///< where the blocks are
  std::string phase{};             ///< in which they were allocated
  memory::CallSite site{};         ///< unknown without ExperimentOptions::call_sites
  int64_t bytes = 0;               ///< of all blocks of the entry
  int64_t count = 0;               ///< blocks of the entry
  int64_t youngest_steps = 0;      ///< training steps begun since the last block was allocated
  int64_t oldest_steps = 0;        ///< training steps begun since the first block was allocated
};

/// Reports an object that finish() purged, destroyed or kept.
struct ReleasedObject {
  std::string name{};     ///< account_name(), or the name given to emplace() or keep()
  CategoryBytes freed{};  ///< of an attended object's purge; empty for destroyed ones
  std::string problem{};  ///< why it could not be purged; empty when all went well
};

/// Reports the whole result of an experiment; a value.
struct ExperimentReport {
  std::string name{};                   ///< of the experiment
  bool enabled = true;                  ///< false: nothing was measured, all below is empty
  double seconds = 0;                   ///< from construction until finish() began
  std::vector<DeviceReport> devices{};  ///< the host first
  /// Attended objects in order, then owned ones in reverse.
  std::vector<ReleasedObject> released{};
  /// Names given to keep(), then the tensors given to it that are alive: "tensor [500] (2 KiB on
  /// cpu)".
  std::vector<std::string> kept{};
  std::vector<LeakReport> leaks{};  ///< largest first on each device
  /// Blocks that are leaks unless a kept object of `opaque` holds them.
  std::vector<LeakReport> unclear{};
  /// Names of the kept objects whose type does not list its tensors, if anything is unclear.
  std::vector<std::string> opaque{};

  /// Returns the figures of one device; zeros if it was not measured.
  [[nodiscard]] DeviceReport on(c10::Device device) const;
  [[nodiscard]] int64_t leaked_bytes() const;  ///< returns the sum over all leaks
  /// Returns several lines, ending with a newline.
  [[nodiscard]] std::string str() const;
};

/// Writes ExperimentReport::str().
std::ostream& operator<<(std::ostream& out, const ExperimentReport& report);

}  // namespace tare

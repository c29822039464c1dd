// What an Experiment found: values, with their printed forms.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tare/memory/accountable.h"

namespace tare {

/// The three figures of memory/backend.h, or differences of them, in bytes. Never added to one
/// another.
struct MemoryFigures {
  int64_t allocated_bytes = 0;  ///< tracked: live tensor storages, exact
  int64_t reserved_bytes = 0;   ///< held by the tensor allocator, live or cached
  int64_t process_bytes =
      0;  ///< held by the process; host: resident set, code and mapped files included
};

/// One device's side of an experiment.
struct DeviceReport {
  c10::Device device = c10::kCPU;
  std::string name{};        ///< of the hardware
  MemoryFigures consumed{};  ///< now, or when finish() began, less the baseline; negative: more was
                             ///< freed than taken
  MemoryFigures reclaimed{};  ///< what finish() gave back; 0 before it
  int64_t peak_bytes =
      0;  ///< highest allocated bytes so far, less the baseline; finish() itself not counted
  int64_t available_bytes = 0;  ///< what an allocation could still get, now or after finish()

  /// Allocated bytes that the experiment left behind: consumed less reclaimed.
  [[nodiscard]] int64_t residual_bytes() const {
    return consumed.allocated_bytes - reclaimed.allocated_bytes;
  }
  /// Allocated bytes reclaimed of those consumed, in per cent; 100 when nothing was consumed.
  [[nodiscard]] double reclaimed_percent() const;
};

/// Blocks nobody answers for: born inside, alive after finish(), not kept, in no living
/// Accountable's ledger. One entry per device and phase of birth.
struct LeakReport {
  c10::Device device = c10::kCPU;
  std::string phase{};
  int64_t bytes = 0;
  int64_t count = 0;
};

/// Something that finish() purged, destroyed or kept.
struct ReleasedObject {
  std::string name{};
  CategoryBytes freed{};  ///< of an attended object's purge; empty for destroyed ones
  std::string problem{};  ///< why it could not be purged; empty when all went well
};

/// The whole result of an experiment; a value.
struct ExperimentReport {
  std::string name{};
  bool enabled = true;                  ///< false: nothing was weighed, all below is empty
  double seconds = 0;                   ///< from construction until finish() began
  std::vector<DeviceReport> devices{};  ///< the host first
  std::vector<ReleasedObject>
      released;                     ///< attended objects in order, then owned ones, youngest first
  std::vector<std::string> kept{};  ///< names given to keep()
  std::vector<LeakReport> leaks{};

  /// The side of one device; a device of zeros where it was not weighed.
  [[nodiscard]] DeviceReport on(c10::Device device) const;
  [[nodiscard]] int64_t leaked_bytes() const;
  /// Several lines, ending with a newline.
  [[nodiscard]] std::string str() const;
};

std::ostream& operator<<(std::ostream& out, const ExperimentReport& report);

}  // namespace tare

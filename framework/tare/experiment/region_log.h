// RegionLog: memory and time of a region of code, with exact peaks. The figures are defined as in
// IPyExperiments' CellLogger.
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/backend.h"
#include "tare/memory/process_peak.h"

namespace tare {

/// Sets the devices that a RegionLog measures, and the form of its output.
struct RegionLogOptions {
  std::vector<c10::Device> devices;  ///< empty: all that have a backend
  bool compact = true;               ///< one line; false: a table
  std::ostream* out = &std::cout;    ///< for the line or table at the end; nullptr: none
};

/// Reports a region's allocated bytes on one device. The region needed consumed + peaked bytes
/// above its start.
struct RegionMemory {
  c10::Device device = c10::kCPU;  ///< that was measured
  int64_t consumed_bytes = 0;      ///< end minus start; negative: more was freed than allocated
  int64_t peaked_bytes = 0;        ///< needed for a while beyond what was consumed; never negative
};

/// Measures the host's memory of the whole process, tensors and everything else: its resident set,
/// as IPyExperiments gives general RAM. Pages that were freed may stay with the process.
struct RegionProcess {
  int64_t consumed_bytes = 0;  ///< end minus start
  int64_t peaked_bytes = 0;    ///< needed for a while beyond what was consumed; never negative
  /// The part of what was consumed that no tensor on the host explains: where it grows with every
  /// call of a region, something other than a tensor leaks there. Negative: tensors that were not
  /// written to yet, or memory that was given back.
  int64_t beside_tensors_bytes = 0;
};

/// Holds the memory and the time that a region of the program took. A value.
struct RegionReport {
  std::string name;    ///< of the region
  int depth = 0;       ///< regions around it on this thread
  double seconds = 0;  ///< does not wait for the device: work may still be queued there
  std::vector<RegionMemory> devices;  ///< the host first
  RegionProcess process;              ///< beside the tensors

  /// Returns "forward: cpu +12 MiB, peaked 3 MiB; process +13 MiB, peaked 2 MiB; 0.25 ms", indented
  /// by depth.
  [[nodiscard]] std::string compact() const;
  /// Returns the figures as a table, a line per device and one for the process.
  [[nodiscard]] std::string full() const;
};

/// Measures from construction to finish(), or to the end of the scope, and prints. Regions may
/// nest. Not thread-safe.
class RegionLog {
 public:
  /// Begins to measure. `name`: for the line or table at the end.
  explicit RegionLog(std::string name, RegionLogOptions options = {});
  ~RegionLog();
  RegionLog(const RegionLog&) = delete;
  RegionLog& operator=(const RegionLog&) = delete;

  /// Returns the figures so far, or what finish() returned; prints nothing.
  [[nodiscard]] RegionReport data() const;
  /// Ends the region and prints it. A second call returns the same report and does nothing.
  RegionReport finish();

 private:
  RegionReport report_;
  RegionLogOptions options_;
  std::vector<std::unique_ptr<memory::PeakScope>> scopes_;
  std::optional<memory::ProcessPeakScope> process_;
  int64_t start_tracked_ = 0;  // on the host
  std::chrono::steady_clock::time_point begin_;
  bool finished_ = false;
};

}  // namespace tare

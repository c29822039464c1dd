// RunRecorder: what the runs of a sweep leave beside the sweep's own files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tare/config/node.h"
#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Keeps records in a form of its own. A sweep calls it from one thread.
class RunRecorder {
 public:
  virtual ~RunRecorder() = default;
  /// Called before a run is started, whose output will be appended to `printed`.
  virtual void starts(const std::string& name, const std::filesystem::path& printed) = 0;
  /// Called a few times a second while runs are running.
  virtual void poll() = 0;
  /// Called when a run has ended, also one that a coordinator before has started. `how`:
  /// "complete", or the reason of its failure. `remaining`: runs that wait or are running; `jobs`:
  /// runs at a time.
  virtual void ended(const std::string& name, const std::filesystem::path& printed,
                     std::string_view how, int64_t remaining, int64_t jobs) = 0;
  /// Returns the configuration that a run's run_data.json holds. `gpu_id` as Trial::gpu_id.
  [[nodiscard]] virtual config::Node configuration(const SweepOptions& sweep, const Trial& trial,
                                                   std::optional<int64_t> gpu_id) const = 0;
  /// Returns run_data.csv of the finished runs.
  [[nodiscard]] virtual std::string table(const std::vector<Trial>& ended) = 0;
};

}  // namespace tare::sweep

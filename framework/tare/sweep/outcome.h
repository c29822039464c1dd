// How a run went. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/launch/process.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Returns "signal 9", "out of memory", "exit 2"; "" for exit code 0. A signal that has ended one
/// of several ranks is one that ended the run; one after which a run has saved is not.
[[nodiscard]] std::string how_it_ended(const launch::ChildEnd& end);

/// Returns the reason that a failed run has left in its folder, at most `limit` bytes; empty: there
/// is none.
[[nodiscard]] std::string failure_in(const std::filesystem::path& folder, size_t limit = 300);

/// Reads the outcome of a run from its folder, after its process has ended in this way.
[[nodiscard]] Outcome outcome_of(const std::filesystem::path& folder, const launch::ChildEnd& end,
                                 const std::string& metric);

/// Whether the first complete run that is there was trained on generated data, by its report.
[[nodiscard]] bool is_on_generated_data(const std::filesystem::path& log_dir,
                                        const std::vector<Trial>& trials);

/// Reads the metric of a run that is running, by epoch.
class Reports {
 public:
  /// Returns what the run's tables hold by now, which are read only if they have grown; nothing
  /// where they cannot be read yet.
  const std::vector<double>& read(const std::filesystem::path& folder, const std::string& metric);

  [[nodiscard]] const std::vector<double>& values() const { return values_; }  ///< as last read

 private:
  uintmax_t bytes_ = 0;
  std::vector<double> values_;
};

}  // namespace tare::sweep

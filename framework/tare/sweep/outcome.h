// How a run went. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/launch/process.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// "signal 9", "out of memory", "exit 2"; "" for exit code 0.
[[nodiscard]] std::string how_it_ended(const launch::ChildEnd& end);

/// What a run's folder says after its process has ended so.
[[nodiscard]] Outcome outcome_of(const std::filesystem::path& folder, const launch::ChildEnd& end,
                                 const std::string& metric);

/// Whether the first complete run that is there was trained on generated data, by its report.
[[nodiscard]] bool is_on_generated_data(const std::filesystem::path& log_dir,
                                        const std::vector<Trial>& trials);

/// The metric of a run that is running, by epoch.
class Reports {
 public:
  /// What the run's tables say by now; reads them only if they have grown. Nothing where they
  /// cannot be read yet.
  const std::vector<double>& read(const std::filesystem::path& folder, const std::string& metric);

  [[nodiscard]] const std::vector<double>& values() const { return values_; }  ///< as last read

 private:
  uintmax_t bytes_ = 0;
  std::vector<double> values_;
};

}  // namespace tare::sweep

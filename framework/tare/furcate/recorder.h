// Recorder: furcate.log, and run_data.json and run_data.csv as furcate has them, for the runs of a
// sweep. Internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tare/furcate/run_log.h"
#include "tare/furcate/run_table.h"
#include "tare/sweep/run_recorder.h"

namespace tare::furcate {

class Recorder final : public sweep::RunRecorder {
 public:
  /// Records a `sweep` that was read from a configuration of Furcate.
  explicit Recorder(const sweep::SweepOptions& sweep);

  void starts(const std::string& name, const std::filesystem::path& printed) override {
    log_.starts(name, printed);
  }
  void poll() override { log_.poll(); }
  void ended(const std::string& name, const std::filesystem::path& printed, std::string_view how,
             int64_t remaining, int64_t jobs) override {
    log_.ended(name, printed, how, remaining, jobs);
  }
  /// Returns the configuration with the values of the run, its folder as log_dir and its card as
  /// gpu_id.
  [[nodiscard]] config::Node configuration(const sweep::SweepOptions& sweep,
                                           const sweep::Trial& trial,
                                           std::optional<int64_t> gpu_id) const override;
  [[nodiscard]] std::string table(const std::vector<sweep::Trial>& ended) override {
    return table_.text(ended);
  }

 private:
  RunLog log_;
  RunTable table_;
};

/// Returns the recorder of a sweep; null for one that is not of a configuration of Furcate.
[[nodiscard]] std::unique_ptr<Recorder> recorder_of(const sweep::SweepOptions& sweep);

}  // namespace tare::furcate

// Trial: one run of a sweep as its store keeps it, and how it ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/launch/process.h"
#include "tare/search/trial.h"

namespace tare::sweep {

/// Holds one row: a run and how it went.
struct Trial {
  int64_t id = 0;      ///< of the row in the store
  int64_t number = 0;  ///< from 0, never used again; in the run's name
  search::TrialState state = search::TrialState::waiting;  ///< how it stands
  std::string identity{};                                  ///< see Identity
  std::string run_name{};                                  ///< of the folder
  search::Cell cell{};                                     ///< the settings of its run
  int64_t attempt = 0;                                     ///< earlier trials of the same run
  int64_t asked_bytes = 0;    ///< to reserve, after an out-of-memory; 0: by the plan
  std::string reason{};       ///< of a failure: "out of memory", "signal 9", "exit 2", ...
  launch::ProcessId child{};  ///< its process, as the next coordinator recognises it
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric; NaN without
  int64_t peak_bytes = 0;           ///< measured, of the rank with the most; 0: not known
  double seconds = 0;               ///< wall time of the run
  std::optional<int64_t> gpu_id{};  ///< of its card among the sweep's; -1: the host; unset: it was
                                    ///< started by another coordinator
  int64_t ranks = 1;                ///< of its run, when it was started last
  std::vector<std::string>
      devices{};            ///< where they were, as a user names them; empty for one rank
  bool is_earlier = false;  ///< of an earlier version of the recipe, and compared with no other;
                            ///< see mark_earlier()
  std::chrono::system_clock::time_point started{}, ended{};  ///< 1970: it has not; the last time

  /// Returns "2 ranks on cuda:0, cuda:1"; empty for one rank.
  [[nodiscard]] std::string placed() const {
    if (ranks == 1) return {};
    return std::to_string(ranks) + " ranks" + (devices.empty() ? "" : " on " + listed(devices));
  }
};

/// Holds the results of a run that has ended.
struct Outcome {
  search::TrialState state = search::TrialState::failed;  ///< how it ended
  std::string reason{};                                   ///< of a failure; empty: none
  std::vector<double> values{};                           ///< of the metric, by epoch
  /// The epoch, from 1, whose weights the run ended with, where it restored those of an earlier
  /// one; 0: the last.
  int64_t restored_epoch = 0;
  /// The metric of the validation inside an epoch whose weights the run ended with; unset: they are
  /// of an epoch's end.
  std::optional<double> restored_value{};
  int64_t peak_bytes = 0;  ///< highest tracked bytes, of the rank with the most; 0: not known
  int64_t exit_code = 0;   ///< of the process; 0 also where a signal ended it
  double seconds = 0;      ///< wall time of the run
  /// The time at which the end was noticed.
  std::chrono::system_clock::time_point ended = std::chrono::system_clock::now();

  /// Returns the trial's value, if it is complete or pruned: that of the weights which the run
  /// ended with. NaN without an epoch.
  [[nodiscard]] double value() const {
    if (restored_value) return *restored_value;
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    const bool earlier = restored_epoch > 0 && restored_epoch <= std::ssize(values);
    return earlier ? values[static_cast<size_t>(restored_epoch) - 1] : values.back();
  }
};

/// Stands as the reason of a trial that waited, and whose parameters the sweep no longer has.
inline constexpr const char* kDropped = "dropped";

}  // namespace tare::sweep

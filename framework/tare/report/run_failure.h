// RunFailure: why a run failed, in a small file of its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tare/report/presence.h"

namespace tare::report {

/// Names the file in the folder of a run. It is there once an error has ended the run, until the
/// run is continued or started anew. A process that was killed does not write it.
inline constexpr const char* kFailureFile = "failure.json";

/// Describes the error that ended a run; a value.
struct RunFailure {
  std::string reason{};  ///< the message of the error, in one line
  std::string phase{};   ///< name of the phase under way; empty: none was
  int64_t epoch = 0;     ///< of the phase, from 1; 0: nothing was being trained
  int64_t steps = 0;     ///< optimizer steps that the phase had taken
  double time_s = 0;     ///< of the error, in seconds since 1970
};
template <class Visit>
void visit_fields(Visit& visit, RunFailure& failure) {
  visit("reason", failure.reason);
  visit("phase", failure.phase);
  visit("epoch", failure.epoch);
  visit("steps", failure.steps);
  visit("time_s", failure.time_s);
}

/// Returns the failure as the text of the file.
[[nodiscard]] std::string to_json(const RunFailure& failure);
/// Reads the file in the folder of a run; unset: there is none, because no error has ended the run.
/// Control characters are escaped. Throws IoError, FormatError.
[[nodiscard]] std::optional<RunFailure> read_failure(const std::filesystem::path& folder);

/// Returns "phase head", and "phase 1" for a phase without a name of its own, which has that one.
[[nodiscard]] std::string phase_text(const std::string& phase);
/// Returns where and when a run failed, behind a verb: "in phase head, epoch 2, after 40 steps, at
/// 2026-11-22 09:30:00".
[[nodiscard]] std::string place_text(const RunFailure& failure);

}  // namespace tare::report

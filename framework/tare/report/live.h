// LiveFigures: what a run is doing now, in a small file of its folder while it trains.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/report/presence.h"
#include "tare/report/read_run.h"
#include "tare/report/run_files.h"

namespace tare::report {

/// Names the file in the folder of a run. It is there while the run trains.
inline constexpr const char* kLiveFile = "live.json";

/// Describes a run at one moment; a value.
struct LiveFigures {
  std::string phase{};                ///< name of the phase that trains
  int64_t epoch = 0, epochs = 0;      ///< of the phase, from 1; epochs 0: the clock ends it
  int64_t step = 0, steps = 0;        ///< of the phase; steps 0: the clock ends it
  double samples_per_s = 0;           ///< of training since the file was written last
  double lr = 0;                      ///< of the last parameter group
  int64_t allocated_bytes = 0;        ///< tracked on the run's device, behind a forward
  std::vector<MetricValue> memory{};  ///< of them, the bytes of each category that has some
  double time_s = 0;                  ///< of the writing, in seconds since 1970
};
template <class Visit>
void visit_fields(Visit& visit, LiveFigures& live) {
  visit("phase", live.phase);
  visit("epoch", live.epoch);
  visit("epochs", live.epochs);
  visit("step", live.step);
  visit("steps", live.steps);
  visit("samples_per_s", live.samples_per_s);
  visit("lr", live.lr);
  visit("allocated_bytes", live.allocated_bytes);
  visit.by_name("memory", live.memory);
  visit("time_s", live.time_s);
}

/// Returns the figures as the text of the file.
[[nodiscard]] std::string to_json(const LiveFigures& live);
/// Reads the file in the folder of a run; unset: there is none, because the run does not train.
/// Throws IoError, FormatError.
[[nodiscard]] std::optional<LiveFigures> read_live(const std::filesystem::path& folder);

/// Returns a run at one moment as one line of JSON: its name, `live` (null where it does not
/// train), its phases with their epochs so far, `report`, which is report.json (null until it has
/// ended), and `failure`, which is failure.json (null unless an error has ended it).
[[nodiscard]] std::string json_line(const RunFiles& run, const std::optional<LiveFigures>& live);

}  // namespace tare::report

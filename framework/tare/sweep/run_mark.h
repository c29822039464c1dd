// trial.json: which run a run's folder is of. Internal.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tare/sweep/sweep_options.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

/// Describes a run, as a mark in the run's folder. A value.
struct RunMark {
  std::string study{};     ///< the sweep's name
  std::string identity{};  ///< see Identity
  int64_t number = 0;      ///< of the trial that was started last
  int64_t attempt = 0;     ///< see Trial::attempt
  std::string settings{};  ///< its cell, as text

  /// Throws ConfigError for text that is not a cell.
  [[nodiscard]] search::Cell cell() const;
};

/// Reads a run's mark; unset where there is no such file, or one that no sweep has written.
[[nodiscard]] std::optional<RunMark> read_mark(const std::filesystem::path& folder);

/// Makes the folder of a trial, before its process starts, and writes the mark. What is in the
/// folder already stays, if the mark there has the trial's identity. Throws StateError for a folder
/// that holds something else; IoError.
void claim_folder(const std::filesystem::path& folder, const SweepOptions& sweep,
                  const Trial& trial);

/// Whether the folder is marked with that identity: a report in it is the report of that run.
[[nodiscard]] bool is_folder_of(const std::filesystem::path& folder, const std::string& identity);

}  // namespace tare::sweep

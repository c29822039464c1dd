// Reads the store of a sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tare/search/pruner.h"
#include "tare/search/trial.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

class Database;  // database.h

/// Maps the number of a trial to its metric by epochs done.
using Reported = std::map<int64_t, std::map<int64_t, double>>;

/// Holds the contents of a store.
struct StoreContents {
  std::vector<Trial> trials{};      ///< in order of number
  Reported reports{};               ///< by number of the trial
  launch::ProcessId coordinator{};  ///< the latest process that has written it
};

/// Writes nothing. Throws IoError if the file is not there; FormatError if it has no such study or
/// is of another schema version.
[[nodiscard]] StoreContents read_store(const std::filesystem::path& path, const std::string& study);

/// Throws FormatError if the tables are of another version than kSchema; a file without tables is
/// of none.
void check_schema(const Database& database);

/// Returns every trial of a study that a sweep has made, in order of number.
[[nodiscard]] std::vector<Trial> trials_of(const Database& database, int64_t study);

/// Reads the trials as samplers and pruners see them, without what was dropped.
[[nodiscard]] std::vector<search::SeenTrial> history_of(const Database& database, int64_t study,
                                                        const search::Space& space);

/// Names the attribute of a trial that has several ranks: how many there are.
inline constexpr const char* kRanks = "ranks";
/// Names the one with the list of their devices.
inline constexpr const char* kDevices = "devices";
/// Names the study's attribute that Store::keep() writes.
inline constexpr const char* kResolvedSteps = "tare:resolved_steps";
/// Returns what the attribute holds; unset fields without one.
[[nodiscard]] search::ResolvedSteps resolved_steps_of(const Database& database, int64_t study);

}  // namespace tare::sweep

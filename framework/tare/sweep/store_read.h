// Reading the store of a sweep. Internal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/search/pruner.h"
#include "tare/search/trial.h"
#include "tare/sweep/database.h"
#include "tare/sweep/store.h"

namespace tare::sweep {

/// Throws FormatError if the tables are of another version than kSchema; a file without tables is
/// of none.
void check_schema(const Database& database);

/// Every trial of a study that a sweep has made, in order of number.
[[nodiscard]] std::vector<Trial> trials_of(const Database& database, int64_t study);

/// The same for samplers and pruners, without what was dropped.
[[nodiscard]] std::vector<search::SeenTrial> history_of(const Database& database, int64_t study,
                                                        const search::Space& space);

/// The study's attribute that Store::keep() writes.
inline constexpr const char* kResolvedSteps = "tare:resolved_steps";
[[nodiscard]] search::ResolvedSteps resolved_steps_of(const Database& database, int64_t study);

}  // namespace tare::sweep

// What furcate's users read: run_data.csv of a sweep, made from the store.
#pragma once

#include <filesystem>

#include "tare/sweep/store.h"

namespace tare::sweep {

/// Writes `path` anew, atomically, from trials that have ended: trial, name, state, every setting,
/// the metric, peak and seconds; a header and one row per finished run, settings that a run does
/// not have empty.
void write_run_data(const std::filesystem::path& path, const std::string& metric,
                    const std::vector<Trial>& trials);

}  // namespace tare::sweep

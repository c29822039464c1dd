// run_data.csv of a sweep that is not one of furcate's, made from the store.
#pragma once

#include <string>

#include "tare/sweep/store.h"

namespace tare::sweep {

/// As CSV, trials that have ended: trial, name, state, every setting, the metric, peak and seconds;
/// a header and one row per finished run, settings that a run does not have empty.
[[nodiscard]] std::string run_data_text(const std::string& metric,
                                        const std::vector<Trial>& trials);

}  // namespace tare::sweep

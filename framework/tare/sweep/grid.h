// The runs of a sweep as values: combinations of settings, and their names.
#pragma once

#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// What one run sets in its recipe beside SweepOptions::set. A value.
using Cell = Settings;

/// Every combination of the parameters, the first one slowest, without those that are excluded, and
/// each once where a condition leaves a parameter out. Throws ConfigError for a range that cannot
/// be counted, a space above 1,000,000 combinations, and conditions on what is no parameter.
[[nodiscard]] std::vector<Cell> grid(const SweepOptions& sweep);

/// As Python's str() writes it: 1.0, 1e-05, 0.0001, True, None. Furcate's folders are named so.
[[nodiscard]] std::string python_text(const config::Node& value);

/// "lr=0.01 batch=32".
[[nodiscard]] std::string python_text(const Cell& cell);

/// "NAME7_lr0-01_bs32": for each setting the first letters of the key's words and the value with
/// '-' for '.' and for what a folder's name may not have. At most 128 bytes.
[[nodiscard]] std::string run_name(const std::string& name, int64_t id, const Cell& cell);

}  // namespace tare::sweep

// The runs of a sweep as values: combinations of settings, and their names.
#pragma once

#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// What one run sets in its recipe beside SweepOptions::set. A value.
using Cell = Settings;

inline constexpr size_t kMaxCells = 1'000'000;  ///< of a grid

/// Values of the parameter; infinity for a range without steps.
[[nodiscard]] double count_of(const Parameter& parameter);

/// A number of the range as its text: without a point where it is whole.
[[nodiscard]] config::Node number_node(const Range& range, double value);

/// `cell` without the parameters whose conditions do not hold.
[[nodiscard]] Cell reduced(Cell cell, const SweepOptions& sweep);

/// Whether SweepOptions::exclude names it.
[[nodiscard]] bool excluded(const Cell& cell, const SweepOptions& sweep);

/// Every combination of the parameters, the first one slowest, without those that are excluded, and
/// each once where a condition leaves a parameter out. Throws ConfigError for a range that cannot
/// be counted, a space above kMaxCells combinations, and conditions on what is no parameter.
[[nodiscard]] std::vector<Cell> grid(const SweepOptions& sweep);

/// As Python's str() writes it: 1.0, 1e-05, 0.0001, True, None. Furcate's folders are named so.
[[nodiscard]] std::string python_text(const config::Node& value);

/// "lr=0.01 batch=32".
[[nodiscard]] std::string python_text(const Cell& cell);

/// "NAME7_lr0-01_bs32", or with SweepOptions::run_word "NAME7_foo_lr0-01": for each setting the
/// first letters of the key's words and the value with '-' for '.' and for what a folder's name may
/// not have. At most 128 bytes.
[[nodiscard]] std::string run_name(const SweepOptions& sweep, int64_t id, const Cell& cell);

}  // namespace tare::sweep

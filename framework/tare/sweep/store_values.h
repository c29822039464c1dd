// Times and numbers as Optuna keeps them in a store. Internal.
#pragma once

#include <chrono>
#include <string>

#include "tare/sweep/database.h"

namespace tare::sweep {

/// Returns "2026-11-22 09:30:00.123456", in UTC.
[[nodiscard]] std::string text_of(std::chrono::system_clock::time_point time);
/// Returns the time that text_of() has written; 1970 for any other.
[[nodiscard]] std::chrono::system_clock::time_point time_of(const std::string& text);

/// Binds the value at a place, null unless it is finite, and returns its kind, which belongs in
/// another column: FINITE, INF_POS, INF_NEG or NAN.
const char* bind_value(Statement& statement, int place, double value);
/// Returns a number whose kind is in the next column.
[[nodiscard]] double value_of(const Statement& row, int column);

}  // namespace tare::sweep

// Writes and reads times and numbers as Optuna does.
#include "tare/sweep/store_values.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <limits>

namespace tare::sweep {

std::string text_of(std::chrono::system_clock::time_point time) {
  using std::chrono::microseconds;
  const auto now = std::chrono::floor<microseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = now / 1'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
  return std::string(text, size) + '.' + std::to_string(1'000'000 + now % 1'000'000).substr(1);
}

std::chrono::system_clock::time_point time_of(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (!end) return {};
  const std::string digits = (*end == '.' ? end + 1 : end) + std::string("000000");
  int64_t micros = 0;
  std::from_chars(digits.data(), digits.data() + 6, micros);
  return std::chrono::system_clock::from_time_t(timegm(&parts)) + std::chrono::microseconds(micros);
}

const char* bind_value(Statement& statement, int place, double value) {
  if (std::isfinite(value)) {
    statement.bind(place, value);
    return "FINITE";
  }
  statement.bind_null(place);
  if (std::isnan(value)) return "NAN";
  return value > 0 ? "INF_POS" : "INF_NEG";
}

double value_of(const Statement& row, int column) {
  const std::string kind = row.text(column + 1);
  if (kind == "FINITE") return row.number(column);
  if (kind == "NAN") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return kind == "INF_NEG" ? -infinity : infinity;
}

}  // namespace tare::sweep

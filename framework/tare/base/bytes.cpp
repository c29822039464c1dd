// Writes and reads byte counts, times and numbers.
#include "tare/base/bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace tare {

namespace {

std::string with_digits(const char* format, double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

/// 1.0 is written "1", as in "1 MiB".
std::string one_digit(double value) {
  std::string text = with_digits("%.1f", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Returns the factor of a unit such as "GiB", "gb", "m", ""; 0 for no unit.
double unit_factor(std::string_view unit) {
  if (unit.empty() || (unit.size() == 1 && lower(unit[0]) == 'b')) return 1;
  const size_t power = std::string_view("kmgt").find(lower(unit[0]));
  if (power == std::string_view::npos) return 0;
  std::string rest;
  for (char c : unit.substr(1)) rest += lower(c);
  if (rest == "b") return std::pow(1000.0, static_cast<double>(power + 1));
  if (rest.empty() || rest == "ib") return std::pow(1024.0, static_cast<double>(power + 1));
  return 0;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 7> kUnits{" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0: the next unit takes over where rounding does.
  while (std::abs(value) >= (unit == 0 ? 1024 : 1023.95) && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return one_digit(value) + kUnits[unit];
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  text = trim(text);
  if (text.empty() || ((text[0] < '0' || text[0] > '9') && text[0] != '.')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const auto used = static_cast<size_t>(end - text.data());
  const double factor = unit_factor(trim(text.substr(used)));
  const double bytes = std::round(number * factor);
  // Whole counts are read as such: above 2^53 a double would change them.
  int64_t exact = 0;
  const auto whole = std::from_chars(text.data(), end, exact);
  if (factor == 1 && whole.ec == std::errc() && whole.ptr == end) return exact;
  if (factor == 0 || !(bytes < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  const double size = std::abs(seconds);
  if (size < 0.9995e-3) return with_digits("%.3g us", seconds * 1e6);
  if (size < 0.9995) return with_digits("%.3g ms", seconds * 1e3);
  if (size < 59.95) return with_digits("%.3g s", seconds);
  const char* sign = seconds < 0 ? "-" : "";
  const auto whole = static_cast<int64_t>(std::min(std::round(size), 9e15));
  std::array<char, 64> buffer{};
  if (whole < 3600) {
    std::snprintf(buffer.data(), buffer.size(), "%s%d min %02d s", sign,
                  static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  } else {
    std::snprintf(buffer.data(), buffer.size(), "%s%lld h %02d min", sign,
                  static_cast<long long>(whole / 3600), static_cast<int>(whole / 60 % 60));
  }
  return buffer.data();
}

std::string format_count(int64_t count) {
  const std::string plain = std::to_string(count);
  std::string text;
  for (size_t i = 0; i < plain.size(); ++i) {
    const size_t left = plain.size() - i;
    if (left % 3 == 0 && !text.empty() && text != "-") text += ',';
    text += plain[i];
  }
  return text;
}

}  // namespace tare

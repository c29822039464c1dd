// Recognises bools, integers and numbers in the text of scalars.
#include "tare/config/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "tare/base/error.h"

namespace tare::config {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

/// Reads the whole text. from_chars takes no '+', and takes "inf" and "nan", which are text in
/// YAML.
template <class Number>
std::errc read_whole(std::string_view text, Number& value) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::errc::invalid_argument;
  }
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || !(is_digit(digits[0]) || digits[0] == '.'))
    return std::errc::invalid_argument;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

template <class Number>
std::optional<Number> whole_text(std::string_view text) {
  Number value{};
  return read_whole(text, value) == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<bool> as_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::optional<int64_t> as_integer(std::string_view text) { return whole_text<int64_t>(text); }

std::optional<uint64_t> as_count(std::string_view text) { return whole_text<uint64_t>(text); }

std::optional<double> as_number(std::string_view text) {
  const std::string name = lowered(text);
  if (name == ".nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == ".inf" || name == "+.inf") return std::numeric_limits<double>::infinity();
  if (name == "-.inf") return -std::numeric_limits<double>::infinity();
  return whole_text<double>(text);
}

bool is_out_of_range(std::string_view text, bool whole) {
  double number = 0;
  int64_t integer = 0;
  const std::errc error = whole ? read_whole(text, integer) : read_whole(text, number);
  return error == std::errc::result_out_of_range;
}

std::string number_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

bool reads_as_text(std::string_view text) {
  constexpr std::array<std::string_view, 14> kWords{
      "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "<<"};
  if (std::find(kWords.begin(), kWords.end(), lowered(text)) != kWords.end()) return false;
  if (printable(text, text.size()) != text) return false;
  const std::string_view rest = text.substr(1);
  if (is_digit(text[0])) return false;
  if (text[0] == '.') return rest.empty() || !is_digit(rest[0]);
  if (text[0] != '+' && text[0] != '-') return true;
  return !rest.empty() && !is_digit(rest[0]) && rest[0] != '.';
}

}  // namespace tare::config

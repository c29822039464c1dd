// Writes values of parameters as text.
#include "tare/search/value_text.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "tare/config/scalar.h"

namespace tare::search {
namespace {

using config::Kind;
using config::Node;

std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  const int exponent = std::stoi(std::string(text.substr(text.find('e') + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string digits(buffer, fixed.ptr);
  return digits.find('.') == std::string::npos ? digits + ".0" : digits;
}

bool is_text(const Node& value) {
  if (value.kind != Kind::scalar) return false;
  return value.quoted || !(config::as_bool(value.text) || config::as_number(value.text));
}

/// Formats a value as Python's repr() does: text has quotes.
std::string python_repr(const Node& value) {
  return is_text(value) ? '\'' + value.text + '\'' : python_text(value);
}

std::string python_list(const Node& node) {
  std::string text;
  for (const auto& item : node.items) text += (text.empty() ? "" : ", ") + python_repr(item);
  return '[' + text + ']';
}

std::string python_map(const Node& node) {
  std::string text;
  for (const auto& entry : node.entries)
    text += (text.empty() ? "'" : ", '") + entry.key + "': " + python_repr(entry.value);
  return '{' + text + '}';
}

}  // namespace

std::string python_text(const Node& value) {
  switch (value.kind) {
    case Kind::null:
      return "None";
    case Kind::sequence:
      return python_list(value);
    case Kind::map:
      return python_map(value);
    case Kind::scalar:
      break;
  }
  if (value.quoted) return value.text;
  if (const auto flag = config::as_bool(value.text)) return *flag ? "True" : "False";
  if (const auto whole = config::as_integer(value.text)) return std::to_string(*whole);
  if (const auto number = config::as_number(value.text)) return python_number(*number);
  return value.text;
}

std::string python_text(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings.values)
    text += (text.empty() ? "" : " ") + key + '=' + python_text(value);
  return text;
}

}  // namespace tare::search

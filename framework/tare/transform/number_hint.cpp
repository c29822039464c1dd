// Recognises dates and numbers with a comma.
#include "tare/transform/number_hint.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace tare {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the field with one letter for each run of digits, 'd' for one or two of them, 'y' for
/// four and 'n' for another number; other characters stay.
std::string shape_of(std::string_view field) {
  std::string shape;
  for (size_t i = 0; i < field.size();) {
    size_t end = i;
    while (end < field.size() && is_digit(field[end])) ++end;
    if (end == i) {
      shape += field[i++];
      continue;
    }
    shape += end - i <= 2 ? 'd' : end - i == 4 ? 'y' : 'n';
    i = end;
  }
  return shape;
}

bool is_date(std::string_view field) {
  // A time follows behind a blank or a T.
  const std::string shape = shape_of(field.substr(0, field.find_first_of(" T")));
  constexpr std::array<std::string_view, 9> kDates{"y-d-d", "y/d/d", "y.d.d", "d-d-y", "d/d/y",
                                                   "d.d.y", "d-d-d", "d/d/d", "d.d.d"};
  return std::ranges::find(kDates, shape) != kDates.end();
}

/// Whether the field is a number with one comma, before which points may group the digits.
bool has_comma(std::string_view field) {
  const size_t comma = field.find(',');
  if (comma == std::string_view::npos || comma == 0 || comma + 1 == field.size()) return false;
  std::string number;
  for (const char c : field.substr(0, comma))
    if (c != '.') number += c;
  number += '.';
  number += field.substr(comma + 1);
  double value = 0;
  const char* const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, value);
  return error == std::errc() && end == last;
}

}  // namespace

NumberLike number_like(std::string_view field) {
  if (has_comma(field)) return NumberLike::comma;
  return is_date(field) ? NumberLike::date : NumberLike::none;
}

std::string number_hint(std::string_view field) {
  switch (number_like(field)) {
    case NumberLike::comma:
      return "a number has a decimal point and no comma, such as 1234.5";
    case NumberLike::date:
      return "it looks like a date, and a number is needed, such as the days since a day of your "
             "choice";
    case NumberLike::none:
      break;
  }
  return "a number is written as 12, -1.5 or 3e4, and float32 must hold it";
}

}  // namespace tare

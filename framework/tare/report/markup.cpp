// Escapes text, and writes numbers and tables for pages.
#include "tare/report/markup.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "tare/base/bytes.h"
#include "tare/base/error.h"

namespace tare::report {
namespace {

std::string format(const char* pattern, double value) {
  char text[48];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string without_markup(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const std::string_view replaced = entity(c);
    if (replaced.empty())
      result += c;
    else
      result += replaced;
  }
  return result;
}

}  // namespace

std::string escaped(std::string_view text, size_t limit) {
  return without_markup(printable(text, limit));
}

std::string escaped_lines(std::string_view text, size_t limit) {
  std::string result;
  const bool whole = text.size() <= limit;
  for (text = text.substr(0, limit); !text.empty();) {
    const size_t end = std::min(text.find('\n'), text.size());
    result += escaped(text.substr(0, end), limit) + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return whole ? result : result + "... (cut here)\n";
}

std::string coordinate(double value) {
  std::string text = format("%.1f", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string percent(double share) { return coordinate(100 * share) + '%'; }

std::string figure(double value) { return std::isnan(value) ? "-" : format("%.4g", value); }

std::string tail(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  text.remove_prefix(text.size() - limit);
  const auto within = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  while (!text.empty() && within(text.front())) text.remove_prefix(1);  // not amid a letter
  if (const size_t dot = text.find('.'); dot < text.size() / 2) text.remove_prefix(dot + 1);
  return "..." + std::string(text);
}

std::string capitalized(std::string name) {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z' && std::ranges::none_of(name, upper))
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

std::string table(std::string_view name, const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows, size_t limit) {
  std::string text = "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"" +
                     escaped(name) + "\"><table><thead><tr>";
  for (const auto& cell : head) text += "<th scope=\"col\">" + escaped(cell) + "</th>";
  text += "</tr></thead><tbody>";
  for (size_t row = 0; row < std::min(rows.size(), limit); ++row) {
    text += "<tr>";
    for (size_t i = 0; i < rows[row].size(); ++i) {
      const std::string cell = escaped(rows[row][i], kNameBytes);
      text += i == 0 ? "<th scope=\"row\">" + cell + "</th>" : "<td>" + cell + "</td>";
    }
    text += "</tr>";
  }
  text += "</tbody></table></div>";
  if (rows.size() > limit) {
    text += "<p class=\"note\">and " + format_count(static_cast<int64_t>(rows.size() - limit)) +
            " more</p>";
  }
  return text;
}

}  // namespace tare::report

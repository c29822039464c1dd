// Checks of HTML and SVG that the report makes.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace tare::testing {

/// Every element is closed in order.
inline bool is_well_formed(std::string_view text) {
  constexpr std::array kVoid{"meta", "!DOCTYPE", "br", "img"};
  std::vector<std::string> open;
  for (size_t at = 0; (at = text.find('<', at)) != text.npos;) {
    const size_t end = text.find('>', at);
    if (end == text.npos) return false;
    std::string_view tag = text.substr(at + 1, end - at - 1);
    at = end + 1;
    if (std::ranges::count(tag, '"') % 2 != 0 || tag.find('<') != tag.npos) return false;
    if (tag.ends_with('/')) continue;
    const bool closes = tag.starts_with('/');
    if (closes) tag.remove_prefix(1);
    const std::string name(tag.substr(0, tag.find_first_of(" \n")));
    if (std::ranges::find(kVoid, name) != kVoid.end()) continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

/// How often `part` is in the text, without overlaps.
inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

}  // namespace tare::testing

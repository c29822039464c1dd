// Divides texts at a separator, replaces parts of them, and writes them in lower case.
#pragma once

#include <string>
#include <vector>

namespace tare {

/// Returns the parts of `text` between separators, without blanks at their start and without empty
/// ones.
[[nodiscard]] std::vector<std::string> parts_of(const std::string& text, char separator);

/// Returns `text` with `by` in place of each `old`, which must not be empty; found from the left,
/// never inside of what was put in.
[[nodiscard]] std::string replaced(std::string text, const std::string& old, const std::string& by);

/// Returns `text` with the letters A to Z in lower case.
[[nodiscard]] std::string lower_case(std::string text);

}  // namespace tare

// Divides texts at a separator, and replaces parts of them.
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

}  // namespace tare

// Divides texts at a separator.
#pragma once

#include <string>
#include <vector>

namespace tare {

/// Returns the parts of `text` between separators, without blanks at their start and without empty
/// ones.
[[nodiscard]] std::vector<std::string> parts_of(const std::string& text, char separator);

}  // namespace tare

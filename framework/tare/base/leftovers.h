// The names under which atomic writes keep what is not in place yet. Internal.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tare::io {

/// Lists what atomic writes append to a name: for the new file or folder until it is whole, and for
/// the folder that it replaces.
inline constexpr std::array<std::string_view, 2> kLeftoverSuffixes{".partial", ".old"};

/// Returns the one of kLeftoverSuffixes that `name` ends with; empty: none.
[[nodiscard]] constexpr std::string_view leftover_suffix(std::string_view name) {
  const auto found = std::ranges::find_if(
      kLeftoverSuffixes, [name](std::string_view suffix) { return name.ends_with(suffix); });
  return found == kLeftoverSuffixes.end() ? std::string_view() : *found;
}

}  // namespace tare::io

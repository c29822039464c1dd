// The settings in the example of a key, as a shell gives them to `tare run`.
#pragma once

#include <string>
#include <vector>

#include "tare/config/override.h"

namespace tare::testing {

/// Returns the settings of "a=1 'b={c: 2}'", which blanks outside of quotes separate.
inline std::vector<std::string> settings_in(const std::string& example) {
  std::vector<std::string> settings(1);
  bool quoted = false;
  for (const char c : example) {
    if (c == '\'')
      quoted = !quoted;
    else if (c == ' ' && !quoted)
      settings.emplace_back();
    else
      settings.back() += c;
  }
  return settings;
}

/// Returns the tree of a recipe with these settings.
inline config::Node with_settings(config::Node recipe, const std::string& example) {
  for (const std::string& setting : settings_in(example)) config::apply_override(recipe, setting);
  return recipe;
}

}  // namespace tare::testing

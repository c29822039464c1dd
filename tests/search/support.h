// Search options from text.
#pragma once

#include <string>
#include <vector>

#include "tare/search/search_options.h"
#include "tare/search/trial.h"
#include "tare/search/value_text.h"

namespace tare::testing {

/// "parameters: {a: [1, 2]}" and other keys of SearchOptions.
inline search::SearchOptions search_options(const std::string& text) {
  return config::read<search::SearchOptions>(
      config::parse_text(text.empty() ? "{}" : text, "search.yaml"));
}

/// "a=1 b=x" for each cell.
inline std::vector<std::string> texts(const std::vector<search::Cell>& cells) {
  std::vector<std::string> all;
  for (const auto& cell : cells) all.push_back(search::python_text(cell));
  return all;
}

}  // namespace tare::testing

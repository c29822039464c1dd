// Counts and combines the values of parameters.
#include "tare/search/grid.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/search/samplers.h"
#include "tare/search/value_text.h"

namespace tare::search {
namespace {

using config::Node;

bool matches(const Settings& pairs, const Cell& cell, const Settings& fixed) {
  return std::ranges::all_of(pairs.values, [&](const auto& pair) {
    const Node* value = cell.find(pair.first);
    if (!value) value = fixed.find(pair.first);
    return value && equal(*value, pair.second);
  });
}

std::vector<Node> values_of(const Parameter& parameter) {
  if (!parameter.range) {
    std::vector<Node> values;  // each once
    for (const Node& value : parameter.values)
      if (std::ranges::none_of(values, [&](const Node& seen) { return equal(seen, value); }))
        values.push_back(value);
    return values;
  }
  const Range& range = *parameter.range;
  if (!range.step && !range.integer)
    throw ConfigError("sweep", "parameters." + parameter.name, "cannot be counted for a grid",
                      "a list, a step, or whole numbers", "a range");
  const double count = count_of(parameter);
  if (count > static_cast<double>(kMaxCells))
    throw ConfigError("sweep", "parameters." + parameter.name, "has too many values",
                      "at most " + std::to_string(kMaxCells), config::number_text(count));
  std::vector<Node> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const double value = range.low + static_cast<double>(i) * range.step.value_or(1);
    values.push_back(number_node(range, std::min(value, range.high)));
  }
  return values;
}

}  // namespace

Cell reduced(Cell cell, const SearchOptions& options) {
  // A parameter may depend on one that is itself skipped.
  for (bool again = true; std::exchange(again, false);) {
    for (const When& when : options.when) {
      const auto found = std::ranges::find_if(
          cell.values, [&](const auto& value) { return value.first == when.param; });
      if (found == cell.values.end() || matches(when.condition, cell, options.set)) continue;
      cell.values.erase(found);
      again = true;
    }
  }
  return cell;
}

bool excluded(const Cell& cell, const SearchOptions& options) {
  return std::ranges::any_of(
      options.exclude, [&](const Settings& pairs) { return matches(pairs, cell, options.set); });
}

std::vector<Cell> grid(const SearchOptions& options) {
  std::vector<Cell> cells(1);
  for (const auto& parameter : options.parameters.parameters) {
    const auto values = values_of(parameter);
    if (cells.size() * values.size() > kMaxCells)
      throw ConfigError("sweep", "parameters", "has too many combinations",
                        "at most " + std::to_string(kMaxCells),
                        std::to_string(cells.size() * values.size()));
    std::vector<Cell> longer;
    longer.reserve(cells.size() * values.size());
    for (const Cell& cell : cells) {
      for (const Node& value : values) {
        longer.push_back(cell);
        longer.back().values.emplace_back(parameter.name, value);
      }
    }
    cells = std::move(longer);
  }
  std::vector<Cell> kept;
  std::unordered_set<std::string> seen;
  for (Cell& cell : cells) {
    Cell one = options.when.empty() ? std::move(cell) : reduced(std::move(cell), options);
    if (excluded(one, options)) continue;
    if (seen.insert(flow_text(to_node(one))).second) kept.push_back(std::move(one));
  }
  return kept;
}

namespace samplers {
void add_grid(Registry& all) {
  all.add("grid", "tries every combination of the values, the first parameter slowest",
          [] { return Sampler{}; });
}
}  // namespace samplers

}  // namespace tare::search

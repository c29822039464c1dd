// Draws the next cell by the sampler that a search names.
#include "tare/search/sampler.h"

#include "tare/search/samplers.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tare/base/error.h"
#include "tare/search/grid.h"
#include "tare/search/parzen.h"
#include "tare/search/random_sampler.h"

namespace tare::search {
namespace {

constexpr uint64_t kTries = 64;            // by the method
constexpr uint64_t kRandomTries = 10'000;  // then at random, where no grid can be counted

Cell cell_of(const SearchOptions& options, const Point& point) {
  Cell cell;
  for (const auto& parameter : options.parameters.parameters) {
    const double value = point.at(parameter.name);
    cell.values.emplace_back(parameter.name, parameter.range
                                                 ? number_node(*parameter.range, value)
                                                 : parameter.values[static_cast<size_t>(value)]);
  }
  return reduced(std::move(cell), options);
}

/// Checks a point that a sampler has drawn, which may be a sampler of the user's program.
Point checked(Point point, const SearchOptions& options) {
  for (const auto& parameter : options.parameters.parameters) {
    const auto found = point.find(parameter.name);
    if (found == point.end() || !domain_of(parameter).contains(found->second))
      throw StateError(
          "sweep.sample",
          "the sampler " + options.method.name + " draws no allowed value of " + parameter.name,
          "its draws need one for each parameter of the space");
  }
  return point;
}

bool is_discrete(const Space& space) {
  return std::ranges::all_of(
      space.parameters, [](const Parameter& parameter) { return domain_of(parameter).discrete(); });
}

bool is_countable(const Space& space) {
  double cells = 1;
  for (const auto& parameter : space.parameters) cells *= count_of(parameter);
  return cells <= static_cast<double>(kMaxCells);
}

/// Returns all trials but one.
std::vector<SeenTrial> without(std::vector<SeenTrial> history, int64_t number) {
  std::erase_if(history, [&](const SeenTrial& trial) { return trial.number == number; });
  return history;
}

/// Returns what is not to be drawn again: nothing where no two draws are equal.
std::set<Point> seen_points(const Space& space, const std::vector<SeenTrial>& history) {
  std::set<Point> seen;
  if (is_discrete(space))
    for (const auto& trial : history) seen.insert(trial.params);
  return seen;
}

}  // namespace

bool draws(const SearchOptions& options) {
  return static_cast<bool>(samplers::registry().make(options.method).look);
}

std::optional<Cell> sample(const SearchOptions& options, const std::vector<SeenTrial>& history,
                           int64_t number, uint64_t seed) {
  const Sampler sampler = samplers::registry().make(options.method);
  if (!sampler.look)
    throw ConfigError("sweep", "method", "draws nothing", "a method that draws, such as random",
                      options.method.name);
  const Space& space = options.parameters;
  const auto others = without(history, number);
  const auto seen = seen_points(space, others);
  const auto allowed = [&](const Cell& cell) {
    return !excluded(cell, options) && !seen.contains(point_of(space, cell));
  };

  const Draw draw = sampler.look(
      {.space = space, .history = others, .maximize = options.metric.goal == "maximize"});
  const bool countable = is_countable(space);
  for (uint64_t i = 0; i < (countable ? kTries : kTries + kRandomTries); ++i) {
    CounterRng rng(seed, {static_cast<uint64_t>(number), i});
    Cell cell =
        cell_of(options, i < kTries ? checked(draw(rng), options) : draw_at_random(space, rng));
    if (allowed(cell)) return cell;
  }
  if (!countable)
    throw ConfigError("sweep", "exclude", "leaves nothing that can be drawn",
                      "combinations, or ranges without them", {});
  for (Cell& cell : grid(options))
    if (allowed(cell)) return std::move(cell);
  return std::nullopt;
}

}  // namespace tare::search

// Draws the next cell at random or by TPE.
#include "tare/search/sampler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tare/base/error.h"
#include "tare/search/grid.h"
#include "tare/search/tpe.h"

namespace tare::search {
namespace {

constexpr uint64_t kTries = 64;            // by the method
constexpr uint64_t kRandomTries = 10'000;  // then at random, where no grid can be counted

/// Evenly over the values, or over their logarithm; numbers with steps as if rounded.
double draw_evenly(const Domain& domain, CounterRng& rng) {
  const double share = rng.uniform();
  if (domain.choices > 0) return std::floor(share * static_cast<double>(domain.choices));
  const double low = domain.low - domain.step / 2, high = domain.high + domain.step / 2;
  const double value = domain.log
                           ? std::exp(std::log(low) + share * (std::log(high) - std::log(low)))
                           : low + share * (high - low);
  return domain.nearest(value);
}

Point draw_at_random(const Space& space, CounterRng& rng) {
  Point point;
  for (const auto& parameter : space.parameters)
    point[parameter.name] = draw_evenly(domain_of(parameter), rng);
  return point;
}

/// What no part draws has a single value, whatever the draw.
Point draw_by_parts(const Space& space, const std::vector<TpePart>& parts, CounterRng& rng) {
  Point point = draw_at_random(space, rng);
  for (const auto& part : parts) {
    const Coordinates drawn = part.draw(rng);
    for (size_t i = 0; i < drawn.size(); ++i) point[part.parameters[i]->name] = drawn[i];
  }
  return point;
}

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

bool is_discrete(const Space& space) {
  return std::ranges::all_of(
      space.parameters, [](const Parameter& parameter) { return domain_of(parameter).discrete(); });
}

bool is_countable(const Space& space) {
  double cells = 1;
  for (const auto& parameter : space.parameters) cells *= count_of(parameter);
  return cells <= static_cast<double>(kMaxCells);
}

/// The trials but one.
std::vector<SeenTrial> without(std::vector<SeenTrial> history, int64_t number) {
  std::erase_if(history, [&](const SeenTrial& trial) { return trial.number == number; });
  return history;
}

/// What is not to be drawn again: nothing where no two draws are alike.
std::set<Point> seen_points(const Space& space, const std::vector<SeenTrial>& history) {
  std::set<Point> seen;
  if (is_discrete(space))
    for (const auto& trial : history) seen.insert(trial.params);
  return seen;
}

}  // namespace

std::optional<Cell> sample(const SearchOptions& options, const std::vector<SeenTrial>& history,
                           int64_t number, uint64_t seed) {
  if (options.method != "random" && options.method != "tpe")
    throw ConfigError("sweep", "method", "draws nothing", "random, tpe", options.method);
  const Space& space = options.parameters;
  const auto others = without(history, number);
  const auto seen = seen_points(space, others);
  const auto allowed = [&](const Cell& cell) {
    return !excluded(cell, options) && !seen.contains(point_of(space, cell));
  };

  const bool random = options.method == "random" || finished(others) < kStartTrials;
  const auto parts =
      random ? std::vector<TpePart>() : tpe_parts(space, others, options.metric.goal == "maximize");
  const bool countable = is_countable(space);
  for (uint64_t i = 0; i < (countable ? kTries : kTries + kRandomTries); ++i) {
    CounterRng rng(seed, {static_cast<uint64_t>(number), i});
    Cell cell = cell_of(options, random || i >= kTries ? draw_at_random(space, rng)
                                                       : draw_by_parts(space, parts, rng));
    if (allowed(cell)) return cell;
  }
  if (!countable)
    throw ConfigError("sweep", "exclude", "leaves nothing that can be drawn",
                      "combinations, or ranges that leave them out", {});
  for (Cell& cell : grid(options))
    if (allowed(cell)) return std::move(cell);
  return std::nullopt;
}

}  // namespace tare::search

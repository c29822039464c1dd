// Divides parameters and trials for TPE.
#include "tare/search/tpe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "tare/search/random_sampler.h"
#include "tare/search/samplers.h"

namespace tare::search {
namespace {

constexpr size_t kMostGood = 25;

using Trials = std::vector<const SeenTrial*>;

bool is_finished(const SeenTrial& trial) {
  return trial.state == TrialState::complete || trial.state == TrialState::pruned;
}

/// Returns the cost of a trial: smaller is better, and NaN is the worst.
double cost(double value, bool maximize) {
  if (std::isnan(value)) return std::numeric_limits<double>::infinity();
  return maximize ? -value : value;
}

/// The key by which finished trials are sorted, the best first.
struct Rank {
  bool pruned = false;
  int64_t left = 0;  // falls with the last step
  double cost = 0;
  bool operator<(const Rank& o) const {
    return std::tie(pruned, left, cost) < std::tie(o.pruned, o.left, o.cost);
  }
};

Rank rank_of(const SeenTrial& trial, bool maximize) {
  if (trial.state == TrialState::complete) return {.cost = cost(trial.value, maximize)};
  if (trial.reports.empty()) return {.pruned = true, .left = 1};  // after all others
  const double last = trial.reports.rbegin()->second;
  return {.pruned = true, .left = -trial.last_step(), .cost = cost(last, maximize)};
}

struct Split {
  Trials good{}, rest{};  // in order of number
};

Split split(const std::vector<SeenTrial>& history, bool maximize) {
  Trials sorted;
  Split parts;
  for (const auto& trial : history) {
    if (is_finished(trial)) sorted.push_back(&trial);
    if (trial.state == TrialState::running) parts.rest.push_back(&trial);
  }
  std::ranges::sort(sorted, {}, &SeenTrial::number);
  std::ranges::stable_sort(sorted, [&](const SeenTrial* a, const SeenTrial* b) {
    return rank_of(*a, maximize) < rank_of(*b, maximize);
  });
  const size_t good = std::min((sorted.size() + 9) / 10, kMostGood);
  for (size_t i = 0; i < sorted.size(); ++i)
    (i < good ? parts.good : parts.rest).push_back(sorted[i]);
  // A kernel's weight depends on its age.
  std::ranges::sort(parts.good, {}, &SeenTrial::number);
  std::ranges::sort(parts.rest, {}, &SeenTrial::number);
  return parts;
}

std::optional<double> value_of(const SeenTrial& trial, const Parameter& parameter) {
  const auto found = trial.params.find(parameter.name);
  if (found == trial.params.end() || !domain_of(parameter).contains(found->second))
    return std::nullopt;
  return found->second;
}

/// Returns the coordinates of the trials that have all of the parameters.
std::vector<Coordinates> observations(const Trials& trials,
                                      const std::vector<const Parameter*>& parameters) {
  std::vector<Coordinates> all;
  for (const SeenTrial* trial : trials) {
    Coordinates point;
    for (const Parameter* parameter : parameters)
      if (const auto value = value_of(*trial, *parameter)) point.push_back(*value);
    if (point.size() == parameters.size()) all.push_back(std::move(point));
  }
  return all;
}

TpePart part_of(std::vector<const Parameter*> parameters, const Split& trials) {
  std::vector<Domain> domains;
  domains.reserve(parameters.size());
  for (const Parameter* parameter : parameters) domains.push_back(domain_of(*parameter));
  Parzen good(domains, observations(trials.good, parameters));
  Parzen rest(std::move(domains), observations(trials.rest, parameters));
  return {std::move(parameters), std::move(good), std::move(rest)};
}

}  // namespace

void visit_fields(config::Visitor& visit, TpeOptions& o) {
  visit("start_trials", o.start_trials, config::at_least(0));
  visit("candidates", o.candidates, config::between(1, 10'000));
}

double TpePart::acquisition(const Coordinates& point) const {
  return good.log_density(point) - rest.log_density(point);
}

Coordinates TpePart::draw(CounterRng& rng, int64_t candidates) const {
  Coordinates best;
  double highest = 0;
  for (int64_t i = 0; i < candidates; ++i) {
    Coordinates point = good.draw(rng);
    const double value = acquisition(point);
    if (i > 0 && value <= highest) continue;
    best = std::move(point);
    highest = value;
  }
  return best;
}

size_t finished(const std::vector<SeenTrial>& history) {
  return static_cast<size_t>(std::ranges::count_if(history, is_finished));
}

std::vector<TpePart> tpe_parts(const Space& space, const std::vector<SeenTrial>& history,
                               bool maximize) {
  std::vector<const Parameter*> together, alone;
  const bool any = finished(history) > 0;
  for (const auto& parameter : space.parameters) {
    if (domain_of(parameter).fixed()) continue;
    const bool common = any && std::ranges::all_of(history, [&](const SeenTrial& trial) {
                          return !is_finished(trial) || value_of(trial, parameter).has_value();
                        });
    (common ? together : alone).push_back(&parameter);
  }
  const Split trials = split(history, maximize);
  std::vector<TpePart> parts;
  if (!together.empty()) parts.push_back(part_of(std::move(together), trials));
  for (const Parameter* parameter : alone) parts.push_back(part_of({parameter}, trials));
  return parts;
}

namespace {

Sampler tpe_sampler(const TpeOptions& options) {
  return {[options](const Seen& seen) -> Draw {
    const bool random = finished(seen.history) < static_cast<size_t>(options.start_trials);
    auto parts =
        random ? std::vector<TpePart>() : tpe_parts(seen.space, seen.history, seen.maximize);
    return [&space = seen.space, parts = std::move(parts), options](CounterRng& rng) {
      Point point = draw_at_random(space, rng);  // what no part draws has a single value
      for (const auto& part : parts) {
        const Coordinates drawn = part.draw(rng, options.candidates);
        for (size_t i = 0; i < drawn.size(); ++i) point[part.parameters[i]->name] = drawn[i];
      }
      return point;
    };
  }};
}

}  // namespace

namespace samplers {
void add_tpe(Registry& all) {
  all.add<TpeOptions>("tpe", "draws where the best runs are densest", tpe_sampler);
}
}  // namespace samplers

}  // namespace tare::search

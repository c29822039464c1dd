// Halves the trials from rung to rung.
#include "tare/search/halving.h"

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"
#include "tare/search/pruners.h"

namespace tare::search {
namespace {

/// Whether step >= first * factor^exponent, which may be beyond 64 bits.
bool has_reached(int64_t step, int64_t first, int64_t factor, int64_t exponent) {
  int64_t needed = first;
  for (int64_t i = 0; i < exponent; ++i) {
    if (needed > step / factor) return false;
    needed *= factor;
  }
  return step >= needed;
}

/// Returns the costs of all trials that came to the rung; smaller is better.
std::vector<double> costs_at(size_t rung, const std::vector<SeenTrial>& history, bool maximize) {
  std::vector<double> costs;
  for (const auto& trial : history)
    if (trial.rungs.size() > rung)
      costs.push_back(maximize ? -trial.rungs[rung] : trial.rungs[rung]);
  return costs;
}

bool is_among_the_best(double cost, std::vector<double> costs, int64_t factor) {
  const size_t best = std::max<size_t>(costs.size() / static_cast<size_t>(factor), 1);
  const auto last = costs.begin() + static_cast<std::ptrdiff_t>(best - 1);
  std::ranges::nth_element(costs, last);
  return cost <= *last;
}

/// Returns the best of the paused trials that are in the first share of the rung.
std::optional<Promotion> promotable(size_t rung, const AshaOptions& options, bool maximize,
                                    const std::vector<SeenTrial>& history) {
  std::vector<const SeenTrial*> trials;
  for (const auto& trial : history)
    if (trial.rungs.size() > rung) trials.push_back(&trial);
  if (static_cast<int64_t>(trials.size()) <= options.bootstrap_count) return std::nullopt;
  std::ranges::sort(trials, {}, &SeenTrial::number);
  std::ranges::stable_sort(trials, {}, [&](const SeenTrial* trial) {
    return maximize ? -trial->rungs[rung] : trial->rungs[rung];
  });
  trials.resize(trials.size() / static_cast<size_t>(options.reduction_factor));
  for (const SeenTrial* trial : trials)
    if (trial->state == TrialState::waiting && trial->rungs.size() == rung + 1)
      return Promotion{trial->number, static_cast<int64_t>(rung)};
  return std::nullopt;
}

}  // namespace

void visit_fields(config::Visitor& visit, AshaOptions& o) {
  visit("min_resource", o.min_resource);
  visit("reduction_factor", o.reduction_factor, config::at_least(2));
  visit("min_early_stopping_rate", o.min_early_stopping_rate, config::at_least(0));
  visit("bootstrap_count", o.bootstrap_count, config::at_least(0));
}

int64_t longest(const std::vector<SeenTrial>& history) {
  int64_t steps = -1;
  for (const auto& trial : history)
    if (trial.state == TrialState::complete) steps = std::max(steps, trial.last_step());
  return steps;
}

PruneResult halve(const Halving& rules, bool maximize, const std::vector<SeenTrial>& history,
                  const SeenTrial& trial) {
  const int64_t step = trial.last_step();
  const double value = trial.reports.at(step), cost = maximize ? -value : value;
  PruneResult result{.rungs = trial.rungs};
  for (auto& rungs = result.rungs; has_reached(step, rules.first, rules.factor,
                                               rules.rate + static_cast<int64_t>(rungs.size()));) {
    if (std::isnan(value)) return {.decision = PruneDecision::prune, .rungs = rungs};
    auto costs = costs_at(rungs.size(), history, maximize);
    costs.push_back(cost);
    rungs.push_back(value);
    if (rules.pauses) {
      result.decision = PruneDecision::pause;
    } else if (static_cast<int64_t>(costs.size()) <= rules.bootstrap ||
               !is_among_the_best(cost, std::move(costs), rules.factor)) {
      result.decision = PruneDecision::prune;
      return result;
    }
  }
  return result;
}

AshaPruner::AshaPruner(AshaOptions options, bool promotes)
    : options_(options), promotes_(promotes) {
  config::validate(options_, "sweep.pruner");
  if (options_.bootstrap_count > 0 && !options_.min_resource.steps)
    throw ConfigError("sweep", "bootstrap_count",
                      "needs min_resource as a number, because the first rung is not known",
                      "0, or another min_resource", "min_resource: auto");
}

PruneResult AshaPruner::decide(const Study& study, const std::vector<SeenTrial>& history,
                               const SeenTrial& trial) const {
  ResolvedSteps resolved = study.resolved;
  const int64_t steps = longest(history);
  if (options_.min_resource.steps) resolved.min_resource = options_.min_resource.steps;
  if (!resolved.min_resource && steps >= 0)
    resolved.min_resource = std::max<int64_t>(steps / 100, 1);
  if (!resolved.min_resource) return {.rungs = trial.rungs, .resolved = resolved};
  const Halving rules{.first = *resolved.min_resource,
                      .factor = options_.reduction_factor,
                      .rate = options_.min_early_stopping_rate,
                      .bootstrap = options_.bootstrap_count,
                      .pauses = promotes_};
  PruneResult result = halve(rules, study.maximize, history, trial);
  result.resolved = resolved;
  return result;
}

std::optional<Promotion> AshaPruner::next_promotion(bool maximize,
                                                    const std::vector<SeenTrial>& history) const {
  if (!promotes_) return std::nullopt;
  size_t rungs = 0;
  for (const auto& trial : history) rungs = std::max(rungs, trial.rungs.size());
  while (rungs > 0)
    if (const auto found = promotable(--rungs, options_, maximize, history)) return found;
  return std::nullopt;
}

namespace pruners {
void add_halving(Registry& all) {
  all.add<AshaOptions>("asha", "ends a run that is not among the best at a rung",
                       [](const auto& o) { return std::make_shared<AshaPruner>(o); });
  all.add<AshaOptions>(
      "asha_promotion", "pauses runs at each rung, and continues the best",
      [](const auto& o) { return std::make_shared<AshaPruner>(o, /*promotes=*/true); });
}
}  // namespace pruners

}  // namespace tare::search

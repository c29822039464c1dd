// Decides which trials end early, wait or are promoted.
#include "tare/search/pruner.h"

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"

namespace tare::search {
namespace {

/// Successive halving with its numbers resolved.
struct Halving {
  int64_t first = 1;  // steps to the lowest rung, before the rate
  int64_t factor = 4;
  int64_t rate = 0;
  int64_t bootstrap = 0;
  bool pauses = false;
};

int64_t factor_of(const PrunerOptions& options) {
  return options.reduction_factor.value_or(options.type == "hyperband" ? 3 : 4);
}

/// The last step of the longest complete trial; -1 without.
int64_t longest(const std::vector<SeenTrial>& history) {
  int64_t steps = -1;
  for (const auto& trial : history)
    if (trial.state == TrialState::complete) steps = std::max(steps, trial.last_step());
  return steps;
}

/// step >= first * factor^exponent, which may be beyond 64 bits.
bool has_reached(int64_t step, int64_t first, int64_t factor, int64_t exponent) {
  int64_t needed = first;
  for (int64_t i = 0; i < exponent; ++i) {
    if (needed > step / factor) return false;
    needed *= factor;
  }
  return step >= needed;
}

/// Of all trials that came to the rung; smaller is better.
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

/// Climbs as many rungs as the last report allows.
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

/// CRC-32 of ISO 3309, as zlib's.
uint32_t crc32(const std::string& text) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
  }
  return ~crc;
}

/// Shares of the trials by bracket; bracket b starts at rate b.
std::vector<int64_t> budgets(int64_t least, int64_t most, int64_t factor) {
  // In doubles, as Optuna: log 243 / log 3 is below 5.
  const double ratio = static_cast<double>(most) / static_cast<double>(least);
  const double count = std::floor(std::log(ratio) / std::log(static_cast<double>(factor))) + 1;
  std::vector<int64_t> shares;
  for (double left = count; left > 0; --left)
    shares.push_back(static_cast<int64_t>(
        std::ceil(count * std::pow(static_cast<double>(factor), left - 1) / left)));
  return shares;
}

size_t bracket_of(const std::string& study, int64_t number, const std::vector<int64_t>& shares) {
  int64_t total = 0;
  for (const int64_t share : shares) total += share;
  int64_t left = int64_t{crc32(study + '_' + std::to_string(number))} % total;
  size_t bracket = 0;
  while ((left -= shares[bracket]) >= 0) ++bracket;
  return bracket;
}

/// Of the brackets; empty while `auto` is not decided.
std::vector<int64_t> shares_of(const PrunerOptions& options, const ResolvedSteps& resolved) {
  if (options.type != "hyperband" || !resolved.min_resource || !resolved.max_resource) return {};
  return budgets(*resolved.min_resource, *resolved.max_resource, factor_of(options));
}

ResolvedSteps resolve(const PrunerOptions& options, ResolvedSteps known,
                      const std::vector<SeenTrial>& history) {
  const bool hyperband = options.type == "hyperband";
  const int64_t steps = longest(history);
  if (options.min_resource.steps) known.min_resource = options.min_resource.steps;
  if (options.max_resource.steps) known.max_resource = options.max_resource.steps;
  if (!known.min_resource && hyperband) known.min_resource = 1;
  if (!known.min_resource && steps >= 0) known.min_resource = std::max<int64_t>(steps / 100, 1);
  if (!known.max_resource && hyperband && steps >= 0) known.max_resource = steps + 1;
  return known;
}

/// The best of the paused trials that are in the first share of the rung.
std::optional<Promotion> promotable(size_t rung, const PrunerOptions& options, bool maximize,
                                    const std::vector<SeenTrial>& history) {
  std::vector<const SeenTrial*> trials;
  for (const auto& trial : history)
    if (trial.rungs.size() > rung) trials.push_back(&trial);
  if (static_cast<int64_t>(trials.size()) <= options.bootstrap_count) return std::nullopt;
  std::ranges::sort(trials, {}, &SeenTrial::number);
  std::ranges::stable_sort(trials, {}, [&](const SeenTrial* trial) {
    return maximize ? -trial->rungs[rung] : trial->rungs[rung];
  });
  trials.resize(trials.size() / static_cast<size_t>(factor_of(options)));
  for (const SeenTrial* trial : trials)
    if (trial->state == TrialState::waiting && trial->rungs.size() == rung + 1)
      return Promotion{trial->number, static_cast<int64_t>(rung)};
  return std::nullopt;
}

}  // namespace

PruneResult decide(const PrunerOptions& options, const Study& study,
                   const std::vector<SeenTrial>& history, int64_t number) {
  const auto found = std::ranges::find(history, number, &SeenTrial::number);
  if (found == history.end() || found->reports.empty())
    throw StateError("sweep.decide", "without a report of trial " + std::to_string(number));
  PruneResult result{.rungs = found->rungs, .resolved = study.resolved};
  if (options.type == "none") return result;
  const ResolvedSteps resolved = result.resolved = resolve(options, study.resolved, history);
  Halving rules{.first = resolved.min_resource.value_or(0),
                .factor = factor_of(options),
                .rate = options.min_early_stopping_rate,
                .bootstrap = options.bootstrap_count,
                .pauses = options.type == "asha_promotion"};
  if (rules.first == 0) return result;
  if (options.type == "hyperband") {
    const auto shares = shares_of(options, resolved);
    if (shares.empty()) return result;
    rules.rate = static_cast<int64_t>(bracket_of(study.name, number, shares));
  }
  const Study known{.name = study.name, .maximize = study.maximize, .resolved = resolved};
  result = halve(rules, study.maximize, competitors(options, known, history, number), *found);
  result.resolved = resolved;
  return result;
}

std::optional<Promotion> next_promotion(const PrunerOptions& options, bool maximize,
                                        const std::vector<SeenTrial>& history) {
  size_t rungs = 0;
  for (const auto& trial : history) rungs = std::max(rungs, trial.rungs.size());
  while (rungs > 0)
    if (const auto found = promotable(--rungs, options, maximize, history)) return found;
  return std::nullopt;
}

std::vector<SeenTrial> competitors(const PrunerOptions& options, const Study& study,
                                   const std::vector<SeenTrial>& history, int64_t number) {
  const auto shares = shares_of(options, resolve(options, study.resolved, history));
  if (shares.empty()) return history;
  std::vector<SeenTrial> same;
  const size_t bracket = bracket_of(study.name, number, shares);
  for (const auto& trial : history)
    if (bracket_of(study.name, trial.number, shares) == bracket) same.push_back(trial);
  return same;
}

}  // namespace tare::search

// Divides trials into brackets.
#include "tare/search/hyperband.h"

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"
#include "tare/search/halving.h"
#include "tare/search/pruners.h"

namespace tare::search {
namespace {

/// Computes CRC-32 of ISO 3309, as zlib's.
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

}  // namespace

void visit_fields(config::Visitor& visit, HyperbandOptions& o) {
  visit("min_resource", o.min_resource);
  visit("max_resource", o.max_resource);
  visit("reduction_factor", o.reduction_factor, config::at_least(2));
  visit("bootstrap_count", o.bootstrap_count, config::at_least(0));
}

HyperbandPruner::HyperbandPruner(HyperbandOptions options) : options_(options) {
  config::validate(options_, "sweep.pruner");
  if (options_.bootstrap_count > 0 && !options_.max_resource.steps)
    throw ConfigError("sweep", "bootstrap_count",
                      "needs max_resource as a number, because the first rung is not known",
                      "0, or another max_resource", "max_resource: auto");
  const int64_t least = options_.min_resource.steps.value_or(1);
  if (options_.max_resource.steps && *options_.max_resource.steps < least)
    throw ConfigError("sweep", "max_resource", "is below min_resource",
                      "at least " + std::to_string(least),
                      std::to_string(*options_.max_resource.steps));
}

ResolvedSteps HyperbandPruner::resolve(ResolvedSteps known,
                                       const std::vector<SeenTrial>& history) const {
  const int64_t steps = longest(history);
  if (options_.min_resource.steps) known.min_resource = options_.min_resource.steps;
  if (options_.max_resource.steps) known.max_resource = options_.max_resource.steps;
  if (!known.min_resource) known.min_resource = 1;
  if (!known.max_resource && steps >= 0) known.max_resource = steps + 1;
  return known;
}

std::vector<int64_t> HyperbandPruner::shares_of(const ResolvedSteps& resolved) const {
  if (!resolved.max_resource) return {};
  return budgets(*resolved.min_resource, *resolved.max_resource, options_.reduction_factor);
}

PruneResult HyperbandPruner::decide(const Study& study, const std::vector<SeenTrial>& history,
                                    const SeenTrial& trial) const {
  const ResolvedSteps resolved = resolve(study.resolved, history);
  const auto shares = shares_of(resolved);
  if (shares.empty()) return {.rungs = trial.rungs, .resolved = resolved};
  const Halving rules{.first = *resolved.min_resource,
                      .factor = options_.reduction_factor,
                      .rate = static_cast<int64_t>(bracket_of(study.name, trial.number, shares)),
                      .bootstrap = options_.bootstrap_count};
  const Study known{.name = study.name, .maximize = study.maximize, .resolved = resolved};
  PruneResult result =
      halve(rules, study.maximize, competitors(known, history, trial.number), trial);
  result.resolved = resolved;
  return result;
}

std::vector<SeenTrial> HyperbandPruner::competitors(const Study& study,
                                                    const std::vector<SeenTrial>& history,
                                                    int64_t number) const {
  const auto shares = shares_of(resolve(study.resolved, history));
  if (shares.empty()) return history;
  std::vector<SeenTrial> rivals;
  const size_t bracket = bracket_of(study.name, number, shares);
  for (const auto& trial : history)
    if (bracket_of(study.name, trial.number, shares) == bracket) rivals.push_back(trial);
  return rivals;
}

namespace pruners {
void add_hyperband(Registry& all) {
  all.add<HyperbandOptions>("hyperband", "applies asha in brackets that begin at different rungs",
                            [](const auto& o) { return std::make_shared<HyperbandPruner>(o); });
}
}  // namespace pruners

}  // namespace tare::search

// Lists the cells of a sweep, and counts the states of their runs.
#include "tare/sweep/wanted_runs.h"

#include <map>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/search/grid.h"
#include "tare/search/sampler.h"
#include "tare/sweep/identity.h"

namespace tare::sweep {

WantedRuns wanted_runs(const SweepOptions& sweep, const std::vector<Trial>& known) {
  const Identity identity(sweep);
  WantedRuns all{.recipe = identity.of({})};
  if (search::draws(sweep)) {
    for (const Trial& trial : known) {
      if (trial.reason == kDropped || identity.of(trial.cell) != trial.identity) continue;
      all.cells.push_back(trial.cell);
      all.identities.push_back(trial.identity);
    }
    return all;
  }
  all.cells = search::grid(sweep);
  if (sweep.trials > 0 && all.cells.size() > static_cast<size_t>(sweep.trials))
    all.cells.resize(static_cast<size_t>(sweep.trials));
  for (const search::Cell& cell : all.cells) all.identities.push_back(identity.of(cell));
  return all;
}

void mark_earlier(const SweepOptions& sweep, std::vector<Trial>& trials) {
  const Identity identity(sweep);
  std::vector<Trial*> others;
  for (Trial& trial : trials) {
    try {
      trial.is_earlier = identity.of(trial.cell) != trial.identity;
    } catch (const ConfigError& error) {  // the recipe has no place for a setting any more
      log::debug(trial.run_name + ": " + error.what());
      trial.is_earlier = true;
    }
    if (trial.is_earlier) others.push_back(&trial);
  }
  if (others.empty() || search::draws(sweep)) return;
  // A setting that has moved between `set`, `parameters` and the recipe names the same run.
  const WantedRuns wanted = wanted_runs(sweep, {});
  std::unordered_map<std::string, const search::Cell*> cells;
  for (size_t i = 0; i < wanted.cells.size(); ++i)
    cells.emplace(wanted.identities[i], &wanted.cells[i]);
  for (Trial* trial : others) {
    const auto found = cells.find(trial->identity);
    if (found == cells.end()) continue;
    trial->cell = *found->second;
    trial->is_earlier = false;
  }
}

RunCounts count_runs(const std::vector<Trial>& trials,
                     const std::unordered_set<std::string>& identities) {
  std::map<std::string, search::TrialState> latest;
  for (const Trial& trial : trials)
    if (identities.contains(trial.identity)) latest[trial.identity] = trial.state;
  RunCounts counts;
  for (const auto& [identity, state] : latest) {
    if (state == search::TrialState::complete) ++counts.complete;
    if (state == search::TrialState::pruned) ++counts.pruned;
    if (state == search::TrialState::failed) ++counts.failed;
    if (state == search::TrialState::waiting) ++counts.waiting;
  }
  return counts;
}

}  // namespace tare::sweep

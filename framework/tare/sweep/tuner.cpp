// Keeps the trials that samplers and pruners decide by.
#include "tare/sweep/tuner.h"

#include <algorithm>

#include "tare/search/sampler.h"

namespace tare::sweep {

Tuner::Tuner(const SweepOptions& sweep, Store& store)
    : sweep_(sweep),
      store_(store),
      history_(store.history()),
      resolved_(store.resolved_steps()),
      draws_(search::draws(sweep)) {
  apply_edit();
}

void Tuner::apply_edit() { pruner_ = search::pruners::registry().make(sweep_.pruner); }

search::SeenTrial* Tuner::find(int64_t number) {
  const auto found = std::ranges::lower_bound(history_, number, {}, &search::SeenTrial::number);
  return found != history_.end() && found->number == number ? &*found : nullptr;
}

void Tuner::add(const Trial& trial) {
  search::SeenTrial* seen = find(trial.number);
  if (!seen) {
    const auto place =
        std::ranges::lower_bound(history_, trial.number, {}, &search::SeenTrial::number);
    seen = &*history_.insert(place, {.number = trial.number});
  }
  seen->state = trial.state;
  seen->value = trial.value;
  seen->params = search::point_of(sweep_.parameters, trial.cell);
}

void Tuner::remove(int64_t number) {
  std::erase_if(history_, [&](const search::SeenTrial& trial) { return trial.number == number; });
}

search::Study Tuner::study() const {
  return {.name = sweep_.name, .maximize = sweep_.metric.goal == "maximize", .resolved = resolved_};
}

std::optional<search::Cell> Tuner::draw(int64_t number) const {
  const auto rivals = pruner_->competitors(study(), history_, number);
  auto cell = search::sample(sweep_, rivals, number, sweep_.seed);
  const auto is_drawn = [&] {
    const search::Point point = search::point_of(sweep_.parameters, *cell);
    return std::ranges::find(history_, point, &search::SeenTrial::params) != history_.end();
  };
  // The parameters of runs in other brackets are not repeated either.
  if (!cell || (rivals.size() < history_.size() && is_drawn()))
    cell = search::sample(sweep_, history_, number, sweep_.seed);
  return cell;
}

search::PruneDecision Tuner::report(const Trial& trial, const std::vector<double>& values) {
  search::SeenTrial* const seen = find(trial.number);
  for (size_t step = seen->reports.size() + 1; step <= values.size(); ++step) {
    const double value = values[step - 1];
    seen->reports[static_cast<int64_t>(step)] = value;
    store_.report(trial, static_cast<int64_t>(step), value);
    const search::PruneResult result = search::decide(*pruner_, study(), history_, trial.number);
    if (result.rungs.size() > seen->rungs.size()) store_.set_rungs(trial, result.rungs);
    seen->rungs = result.rungs;
    if (!(result.resolved == resolved_)) store_.keep(resolved_ = result.resolved);
    if (result.decision != search::PruneDecision::proceed) return result.decision;
  }
  return search::PruneDecision::proceed;
}

std::optional<int64_t> Tuner::promotion() const {
  const auto next = pruner_->next_promotion(study().maximize, history_);
  return next ? std::optional(next->number) : std::nullopt;
}

bool Tuner::is_paused(const Trial& trial) const {
  const auto seen =
      std::ranges::lower_bound(history_, trial.number, {}, &search::SeenTrial::number);
  return pruner_->pauses() && trial.state == search::TrialState::waiting &&
         seen != history_.end() && seen->number == trial.number && !seen->rungs.empty();
}

}  // namespace tare::sweep

// Ranks the runs of a sweep.
#include "tare/report/sweep_summary.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tare::report {
namespace {

int place_of(const SweepRun& run) {
  if (is_complete(run)) return is_drawable(run.value) ? 0 : 2;
  if (is_pruned(run)) return is_drawable(run.value) ? 1 : 2;
  return run.state == "RUNNING" || run.state == "WAITING" ? 3 : 4;
}

}  // namespace

bool is_complete(const SweepRun& run) { return run.state == "COMPLETE"; }
bool is_pruned(const SweepRun& run) { return run.state == "PRUNED"; }

bool is_drawable(double value) {
  return value == 0 || (std::abs(value) >= 1e-100 && std::abs(value) <= 1e100);
}

double value_of(const SweepSummary& sweep, const SweepRun& run, size_t parameter) {
  const double value = parameter < run.values.size() ? run.values[parameter] : NAN;
  const auto choices = static_cast<double>(sweep.parameters[parameter].choices.size());
  if (choices > 0) return value >= 0 && value < choices ? std::floor(value) : NAN;
  const bool too_low = sweep.parameters[parameter].logarithmic && !(value > 0);
  return is_drawable(value) && !too_low ? value : NAN;
}

std::vector<const SweepRun*> best_first(const SweepSummary& sweep) {
  std::vector<const SweepRun*> runs;
  for (const auto& run : sweep.runs) runs.push_back(&run);
  std::ranges::stable_sort(runs, {}, [&](const SweepRun* run) {
    const double value = is_drawable(run->value) ? run->value : 0;
    return std::tuple(place_of(*run), sweep.maximize ? -value : value, run->number);
  });
  return runs;
}

std::vector<const SweepRun*> ranked(const SweepSummary& sweep) {
  auto runs = best_first(sweep);
  std::erase_if(runs, [](const SweepRun* run) { return place_of(*run) != 0; });
  return runs;
}

std::vector<const SweepRun*> spread(const std::vector<const SweepRun*>& ranked, size_t limit) {
  if (ranked.size() <= limit) return ranked;
  std::vector<const SweepRun*> kept;
  for (size_t i = 0; i < limit; ++i) kept.push_back(ranked[i * (ranked.size() - 1) / (limit - 1)]);
  return kept;
}

}  // namespace tare::report

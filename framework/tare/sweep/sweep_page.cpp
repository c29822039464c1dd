// Collects a sweep's runs from the store for its page.
#include "tare/sweep/sweep_page.h"

#include <cmath>

#include "tare/search/trial.h"
#include "tare/search/value_text.h"
#include "tare/sweep/outcome.h"

namespace tare::sweep {
namespace {

report::SweepParameter parameter_of(const search::Parameter& parameter) {
  report::SweepParameter all{.name = parameter.name};
  for (const auto& value : parameter.values) all.choices.push_back(search::python_text(value));
  if (!parameter.range) return all;
  const search::Range& range = *parameter.range;
  all.low = range.low;
  all.high = range.high;
  all.step = range.step.value_or(range.integer ? 1 : 0);
  all.logarithmic = range.log;
  all.integer = range.integer;
  return all;
}

report::SweepRun run_of(const SweepOptions& sweep, const Trial& trial,
                        const std::map<int64_t, double>& reports) {
  report::SweepRun run{.name = trial.run_name,
                       .number = trial.number,
                       .state = trial.is_earlier ? report::kEarlierRun : to_string(trial.state),
                       .reason = trial.reason,
                       .value = trial.value,
                       .placed = trial.placed(),
                       .peak_bytes = trial.peak_bytes,
                       .seconds = trial.seconds};
  const search::Point point = search::point_of(sweep.parameters, trial.cell);
  for (const auto& parameter : sweep.parameters.parameters) {
    const auto value = point.find(parameter.name);
    run.values.push_back(value == point.end() ? std::nan("") : value->second);
  }
  for (const auto& [epoch, value] : reports) run.metric.push_back(value);
  return run;
}

}  // namespace

report::SweepSummary summary_of(const SweepOptions& sweep, const StoreContents& contents) {
  report::SweepSummary summary{
      .name = sweep.name, .metric = sweep.metric.name, .maximize = sweep.metric.goal == "maximize"};
  for (const auto& parameter : sweep.parameters.parameters)
    summary.parameters.push_back(parameter_of(parameter));
  for (const Trial& trial : contents.trials) {
    if (trial.reason == kDropped) continue;
    const auto reports = contents.reports.find(trial.number);
    summary.runs.push_back(
        run_of(sweep, trial,
               reports == contents.reports.end() ? std::map<int64_t, double>() : reports->second));
  }
  summary.generated = is_on_generated_data(sweep.log_dir, contents.trials);
  return summary;
}

}  // namespace tare::sweep

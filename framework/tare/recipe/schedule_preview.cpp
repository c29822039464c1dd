// Asks the schedules of a phase for some of its steps.
#include "tare/recipe/schedule_preview.h"

#include <algorithm>

#include "tare/base/bytes.h"
#include "tare/base/table.h"
#include "tare/base/text_plot.h"
#include "tare/recipe/phase_data.h"

namespace tare {
namespace {

constexpr int64_t kRows = 11, kPlotted = 100;

/// Returns at most `count` of the steps, at equal distances, with both ends.
std::vector<int64_t> some_steps(int64_t steps, int64_t count) {
  std::vector<int64_t> some;
  const int64_t last = steps - 1, parts = std::min(count - 1, last);
  for (int64_t i = 0; i <= parts; ++i) some.push_back(parts == 0 ? 0 : last * i / parts);
  return some;
}

/// Returns the rates of the layer groups that train; of a search shares of its rate.
std::vector<double> peak_rates(const RecipeOptions& recipe, const PhaseOptions& phase,
                               int64_t groups) {
  const LearningRate rate = rate_of(recipe, phase);
  if (rate.search()) return {1};
  auto rates = rate.per_group(groups);
  const int64_t first = phase.freeze_to < 0 ? groups + phase.freeze_to : phase.freeze_to;
  rates.erase(rates.begin(), rates.begin() + std::clamp<int64_t>(first, 0, groups - 1));
  return rates;
}

ScheduledStep values_at(const FitSchedules& schedules, int64_t step, int64_t steps,
                        const std::vector<double>& rates, const GroupBase& base) {
  ParameterGroup group{
      .momentum = base.momentum, .beta2 = base.beta2, .weight_decay = base.weight_decay};
  const FitSchedules::Step now = schedules.at(step, steps);
  set_values(group, rates.front(), now, base);
  ScheduledStep values{.step = step, .first_lr = group.lr, .last_lr = rates.back() * now.rate};
  if (group.momentum > 0) values.momentum = group.momentum;
  if (schedules.sets_beta2()) values.beta2 = group.beta2;
  if (schedules.sets_weight_decay()) values.weight_decay = group.weight_decay;
  return values;
}

}  // namespace

SchedulePreview preview_schedule(const RecipeOptions& recipe, size_t phase, const DataFacts& data,
                                 int64_t groups) {
  const PhaseOptions& own = recipe.phases[phase];
  SchedulePreview preview{.phase = name_of(recipe, phase), .kind = own.schedule.kind};
  const int64_t steps = preview.table.steps = all_batches(recipe, own, data);
  preview.table.relative = rate_of(recipe, own).search() != nullptr;
  const auto rates = peak_rates(recipe, own, groups);
  const FitSchedules schedules(own.schedule, own.schedules);
  const GroupBase base{momentum_of(recipe.learner.optimizer),
                       group_beta2_of(recipe.learner.optimizer),
                       recipe.learner.optimizer.weight_decay};
  for (const int64_t step : some_steps(steps, kRows))
    preview.table.points.push_back(values_at(schedules, step, steps, rates, base));
  for (const int64_t step : some_steps(steps, kPlotted)) {
    preview.steps.push_back(static_cast<double>(step));
    preview.rates.push_back(values_at(schedules, step, steps, rates, base).last_lr);
  }
  return preview;
}

std::string SchedulePreview::str(size_t width) const {
  const bool has_momentum = table.points.front().momentum.has_value();
  const bool has_beta2 = table.points.front().beta2.has_value();
  const bool has_decay = table.points.front().weight_decay.has_value();
  const std::string rate = table.relative ? "share of the peak, " : "rate, ";
  std::vector<TableColumn> columns{{.head = "step", .figure = true},
                                   {.head = rate + "first group", .figure = true},
                                   {.head = "last group", .figure = true}};
  if (has_momentum) columns.push_back({.head = "momentum", .figure = true});
  if (has_beta2) columns.push_back({.head = "beta2", .figure = true});
  if (has_decay) columns.push_back({.head = "weight decay", .figure = true});
  std::vector<TableRow> rows;
  for (const ScheduledStep& point : table.points) {
    rows.push_back(
        {std::to_string(point.step), short_number(point.first_lr), short_number(point.last_lr)});
    if (has_momentum) rows.back().push_back(short_number(point.momentum.value_or(0)));
    if (has_beta2) rows.back().push_back(short_number(point.beta2.value_or(0)));
    if (has_decay) rows.back().push_back(short_number(point.weight_decay.value_or(0)));
  }
  return "schedule of " + phase + ": " + kind + " over " + format_count(table.steps) + " steps\n" +
         text_table(columns, rows, width) +
         text_plot({.x_title = "step", .curves = {{.x = steps, .y = rates}}}, width);
}

}  // namespace tare

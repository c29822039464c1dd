// Writes the page of a run.
#include "tare/report/run_report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/report/chart.h"
#include "tare/report/markup.h"
#include "tare/report/memory_section.h"
#include "tare/report/page.h"
#include "tare/report/read_run.h"
#include "tare/report/test_section.h"

namespace tare::report {
namespace {

constexpr size_t kCharts = 12;  // of metrics

// ---- curves

/// Points and spans of curves that continue from phase to phase.
struct Curves {
  std::vector<Series> series;
  std::vector<Span> spans;

  void add(size_t line, double x, double y) { series[line].points.push_back({x, y}); }
  /// Ends a phase at `end`.
  void close(const std::string& name, double start, double end) {
    if (end > start) spans.push_back({start, end, name});
  }
};

bool has_points(const Series& line) {
  return std::ranges::any_of(line.points, [](const Point& p) { return std::isfinite(p.y); });
}

struct Titles {
  std::string caption{}, x{}, y{};
};

std::string draw(const Titles& titles, Curves curves, const std::string& description) {
  std::erase_if(curves.series, [](const Series& line) { return !has_points(line); });
  std::vector<LegendItem> items;
  for (const auto& line : curves.series)
    items.push_back({line.name, line.colour, true, line.dashed});
  if (curves.spans.size() < 2) curves.spans.clear();
  const std::string chart = line_chart({.title = titles.caption,
                                        .description = description,
                                        .x_title = titles.x,
                                        .y_title = titles.y,
                                        .series = std::move(curves.series),
                                        .spans = std::move(curves.spans)});
  return chart_with(titles.caption, chart, items.size() > 1 ? legend(items) : "");
}

/// Calls `add(line, x)` for every epoch of every phase; x counts the run's epochs from 1.
template <class Add>
void each_epoch(const RunFiles& run, Curves& curves, const Add& add) {
  double x = 0;
  for (const auto& phase : run.phases) {
    const double start = x;
    for (const auto& line : phase.epochs) add(line, ++x);
    curves.close(phase.name, start == 0 ? 1 : start + 0.5, x + 0.5);
  }
  if (!curves.spans.empty()) curves.spans.back().end = std::max(x, curves.spans.back().start);
}

std::string from_to(double first, double last) {
  return "from " + figure(first) + " to " + figure(last);
}

std::string epoch_losses(const RunFiles& run) {
  Curves curves{.series = {{.name = "training"},
                           {.name = "validation", .points = {}, .colour = 2, .dashed = true}},
                .spans = {}};
  double first = NAN, last = NAN;
  each_epoch(run, curves, [&](const EpochRow& line, double x) {
    curves.add(0, x, line.train_loss);
    curves.add(1, x, line.valid_loss);
    if (std::isnan(first)) first = line.train_loss;
    last = line.train_loss;
  });
  return draw({"Loss by epoch", "epoch", "loss"}, std::move(curves),
              "Training loss " + from_to(first, last) + '.');
}

/// Whether a column is a figure of the validation, and not one that a callback added.
bool is_metric(const RunFiles& run, const std::string& column) {
  if (!run.figures) {  // a run that has not ended has a recipe alone
    const auto names = recipe_metrics(run);
    return names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
             return column == name || column.starts_with(name + '.');  // of one of several targets
           });
  }
  const auto values = figures_of(run.figures->test ? run.figures->test : run.figures->valid);
  return values.empty() || find_metric(values, column) != nullptr;
}

/// Returns the value that a column of a callback has in each of several epochs; unset: it has
/// others, or the column is a figure of the validation.
std::optional<double> constant_of(const RunFiles& run, const std::string& column) {
  if (is_metric(run, column)) return std::nullopt;
  std::vector<double> values;
  for (const auto& phase : run.phases)
    for (const auto& line : phase.epochs)
      if (const MetricValue* metric = find_metric(line.metrics, column))
        values.push_back(metric->value);
  const bool changes = std::ranges::adjacent_find(values, std::not_equal_to()) != values.end();
  return values.size() < 2 || changes ? std::nullopt : std::optional(values.front());
}

std::string metric_curve(const RunFiles& run, const std::string& name) {
  Curves curves{.series = {{.name = name, .points = {}, .colour = 4}}, .spans = {}};
  double first = NAN, last = NAN;
  each_epoch(run, curves, [&](const EpochRow& line, double x) {
    const MetricValue* metric = find_metric(line.metrics, name);
    if (metric == nullptr) return curves.add(0, x, std::nan(""));
    last = metric->value;
    curves.add(0, x, last);
    if (std::isnan(first)) first = last;
  });
  const Titles titles = is_metric(run, name) ? Titles{capitalized(name) + " by epoch", "epoch",
                                                      name + " of the validation"}
                                             : Titles{name + " by epoch", "epoch", name};
  return draw(titles, std::move(curves), name + ' ' + from_to(first, last) + '.');
}

std::string metric_curves(const RunFiles& run) {
  const auto names = metric_names(run);
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kCharts); ++i)
    if (!constant_of(run, names[i])) text += metric_curve(run, names[i]);
  return text;
}

// A curve that is a straight line would say no more.
std::string constant_columns(const RunFiles& run) {
  std::string text;
  for (const auto& name : metric_names(run))
    if (const auto value = constant_of(run, name))
      text += (text.empty() ? "" : ", ") + name + ' ' + figure(*value);
  return text.empty() ? "" : note("Equal in every epoch: " + text + '.');
}

/// Draws `value` of each step; x counts the run's steps from 1.
std::string step_curve(const RunFiles& run, const Titles& titles, size_t colour,
                       double StepRow::*value) {
  Curves curves{.series = {{.name = titles.caption, .points = {}, .colour = colour}}, .spans = {}};
  double start = 0, first = NAN, last = NAN;
  for (const auto& phase : run.phases) {
    if (phase.steps.empty()) continue;
    for (const auto& line : phase.steps) {
      curves.add(0, start + static_cast<double>(line.step), line.*value);
      if (std::isnan(first)) first = line.*value;
      last = line.*value;
    }
    const double end = start + static_cast<double>(phase.steps.back().step);
    curves.close(phase.name, start, end);
    start = end;
  }
  return draw(titles, std::move(curves), titles.caption + ' ' + from_to(first, last) + '.');
}

/// Returns the suggestions of the search for a phase's rate as names on the axis of the rates.
std::vector<Span> suggestions(const PhaseFiles& phase) {
  std::vector<Span> spans;
  if (!phase.figures || !phase.figures->lr_find) return spans;
  const RateSearch& search = *phase.figures->lr_find;
  if (search.steepest) spans.push_back({*search.steepest, 0, "steepest"});
  if (search.valley) spans.push_back({*search.valley, 0, "valley"});
  if (search.minimum) spans.push_back({*search.minimum, 0, "minimum"});
  return spans;
}

/// Describes the search for a phase's rate in sentences.
std::string search_text(const PhaseFiles& phase) {
  std::string text =
      "Loss at rates " + from_to(phase.rates.front().lr, phase.rates.back().lr) + '.';
  for (const Span& one : suggestions(phase))
    text += " Suggestion " + one.name + ": " + figure(one.start) + '.';
  if (!phase.figures || !phase.figures->lr_find) return text;
  const RateSearch& search = *phase.figures->lr_find;
  return text + " The phase took " + figure(search.lr) + ", " + search.suggestion + '.';
}

/// Draws the losses of the search for a phase's rate. The loss of a batch may rise without bound at
/// its end: what is far above the smoothed losses is a gap.
std::string rate_curve(const PhaseFiles& phase) {
  constexpr double kAboveSmoothed = 1.2;
  if (phase.rates.empty()) return {};
  Range smooth;
  for (const RateRow& row : phase.rates)
    if (std::isfinite(row.smoothed)) smooth.add(row.smoothed);
  Series loss{.name = "loss of the batch", .points = {}, .colour = 1};
  Series smoothed{.name = "smoothed", .points = {}, .colour = 0, .mark = Mark::line};
  for (const RateRow& row : phase.rates) {
    const bool far = row.loss > kAboveSmoothed * smooth.high;
    loss.points.push_back({row.lr, far ? std::nan("") : row.loss});
    smoothed.points.push_back({row.lr, row.smoothed});
  }
  std::vector<Span> spans = suggestions(phase);
  std::ranges::stable_sort(spans, {}, &Span::start);
  for (size_t i = 0; i < spans.size(); ++i)
    spans[i].end = i + 1 < spans.size() ? spans[i + 1].start : phase.rates.back().lr;
  const std::vector<LegendItem> items{{loss.name, loss.colour, true},
                                      {smoothed.name, smoothed.colour, true}};
  const std::string caption = "Search for the rate of " + phase.name;
  return chart_with(caption,
                    line_chart({.title = caption,
                                .description = search_text(phase),
                                .x_title = "learning rate",
                                .y_title = "loss",
                                .x_unit = Unit::number,
                                .x_logarithmic = true,
                                .series = {std::move(loss), std::move(smoothed)},
                                .spans = std::move(spans)}),
                    legend(items));
}

std::string curves_of(const RunFiles& run) {
  std::string searches;
  std::string found;
  for (const PhaseFiles& phase : run.phases) {
    searches += rate_curve(phase);
    if (!phase.rates.empty()) found += note(phase.name + ": " + search_text(phase));
  }
  const std::string charts =
      epoch_losses(run) +
      step_curve(run, {"Loss of the batch by step", "step", "loss"}, 0, &StepRow::loss) +
      metric_curves(run) +
      step_curve(run, {"Learning rate by step", "step", "learning rate"}, 3, &StepRow::lr) +
      searches;
  if (charts.empty()) return {};
  return "<div class=\"pair\">" + charts + "</div>" + constant_columns(run) + found;
}

// ---- phases

/// Describes what a phase did that its figures do not show.
std::string remarks(const RunFiles& run) {
  std::string all;
  for (const auto& phase : run.phases) {
    if (!phase.figures) continue;
    const std::string title = capitalized(phase_text(phase.name));
    if (const int64_t samples = phase.figures->micro_batch; samples > 0)
      all += note(title + " worked on batches in parts; its micro-batches were of " +
                  format_count(samples) + " samples where these were the most.");
    const int64_t epoch = phase.figures->restored_epoch, step = phase.figures->restored_step;
    if (step > 0)
      all += note(title + " ended with the weights of step " + format_count(step) +
                  ", inside epoch " + format_count(epoch) + ".");
    else if (epoch > 0)
      all += note(title + " ended with the weights of epoch " + format_count(epoch) + ".");
    if (const std::string& name = phase.figures->stopped_by; !name.empty())
      all += note(title + " was stopped early by " + name + ".");
    if (const int64_t steps = phase.figures->overflows; steps > 0)
      all += note(title + " skipped " + format_count(steps) + " steps whose gradients overflowed.");
  }
  return all;
}

std::string phase_table(const RunFiles& run) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& phase : run.phases) {
    auto& row = rows.emplace_back();
    row = {phase.name, std::to_string(phase.epochs.size())};
    if (!phase.figures) {
      row.resize(9, "-");
      continue;
    }
    const PhaseReport& f = *phase.figures;
    for (auto& cell : {format_seconds(f.seconds),
                       format_count(static_cast<int64_t>(std::clamp(f.samples_per_s, 0.0, 9e15))),
                       format_bytes(f.consumed_bytes), format_bytes(f.peak_bytes),
                       f.planned_peak_bytes ? (f.not_planned.empty() ? "" : "at least ") +
                                                  format_bytes(*f.planned_peak_bytes)
                                            : "-",
                       format_bytes(f.reclaimed_bytes), format_bytes(f.residual_bytes)})
      row.push_back(cell);
  }
  if (rows.empty()) return {};
  return table("phases",
               {"phase", "epochs", "time", "samples/s", "consumed", "peak", "planned", "reclaimed",
                "residual"},
               rows) +
         note(
             "Consumed: tracked when the phase's work ended, above its start. Peak: the highest, "
             "above its start. Planned: what that peak was to be, by the plan before the run. "
             "Residual: what its purge left above its start.") +
         remarks(run);
}

std::string phase_peaks(const RunFiles& run) {
  BarChart chart{.title = "Peak memory by phase",
                 .description = "Highest tracked bytes of each phase above its start."};
  for (const auto& phase : run.phases) {
    if (!phase.figures) continue;
    const auto peak = static_cast<double>(std::max<int64_t>(0, phase.figures->peak_bytes));
    chart.bars.push_back({phase.name, format_bytes(phase.figures->peak_bytes), peak, 0});
  }
  return chart_with("Peak above the phase's start", bar_chart(chart));
}

std::string age(const PhaseLeak& leak) {
  const std::string oldest = format_count(leak.oldest_steps);
  return leak.youngest_steps == leak.oldest_steps
             ? oldest
             : format_count(leak.youngest_steps) + " to " + oldest;
}

std::string leak_table(const RunFiles& run) {
  std::vector<std::vector<std::string>> rows;
  bool ended = false;
  for (const auto& phase : run.phases) {
    if (!phase.figures) continue;
    ended = true;
    for (const auto& leak : phase.figures->leaks)
      rows.push_back({phase.name, format_count(leak.blocks), format_bytes(leak.bytes), age(leak),
                      leak.phase, leak.site.empty() ? "unknown" : leak.site});
  }
  if (!ended) return {};
  if (rows.empty())
    return note("No phase left a block behind that no object answers for: no leak.");
  return table("leaks", {"left by", "blocks", "bytes", "age in steps", "allocated in", "line"},
               rows) +
         note("The lines are known if the run was made with --call-sites.");
}

// ---- the page

/// Returns the memory of each rank in each phase; empty where one process has trained.
std::string rank_table(const RunFiles& run) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& phase : run.phases) {
    if (!phase.figures) continue;
    for (const RankFigures& rank : phase.figures->ranks)
      rows.push_back({phase.name, std::to_string(rank.rank), format_bytes(rank.peak_bytes),
                      format_bytes(rank.reclaimed_bytes), format_bytes(rank.residual_bytes)});
  }
  if (rows.empty()) return {};
  return table("ranks", {"phase", "rank", "peak", "reclaimed", "left"}, rows);
}

/// Returns the memory of each device in each phase; empty where the run has had one.
std::string device_table(const RunFiles& run) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& phase : run.phases) {
    if (!phase.figures) continue;
    for (const DeviceFigures& one : phase.figures->devices)
      rows.push_back({phase.name, one.device, format_bytes(one.peak_bytes),
                      format_bytes(one.reclaimed_bytes), format_bytes(one.residual_bytes)});
  }
  if (rows.empty()) return {};
  return table("devices", {"phase", "device", "peak", "reclaimed", "left"}, rows);
}

int64_t highest_peak(const RunFiles& run) {
  int64_t peak = 0;
  for (const auto& phase : run.phases)
    if (phase.figures) peak = std::max(peak, phase.figures->peak_bytes);
  return peak;
}

std::string summary(const RunFiles& run) {
  if (!run.figures) return {};
  const RunFigures& f = *run.figures;
  std::vector<Tile> all;
  const auto add = [&all](const std::string& split, const std::vector<MetricValue>& figures) {
    for (size_t i = 0; i < std::min(figures.size(), kCharts); ++i)
      all.push_back({split + figures[i].name, figure(figures[i].value)});
  };
  add("test ", figures_of(f.test));
  add("valid ", figures_of(f.valid));
  all.push_back({"time", format_seconds(f.seconds)});
  all.push_back({"highest peak of a phase", format_bytes(highest_peak(run))});
  all.push_back({"left after destroy", format_bytes(f.residual_bytes)});
  all.push_back({"process at the end", format_bytes(f.process_bytes)});
  if (f.exported) all.push_back({"bundle", format_bytes(f.exported->bytes)});
  return tiles(all);
}

std::string resumed_text(const RunFigures& figures) {
  if (figures.resumed_from.empty()) return {};
  if (figures.resumes == 0) return ", resumed";
  return ", resumed " + (figures.resumes == 1 ? "once" : format_count(figures.resumes) + " times");
}

std::string subtitle(const RunFiles& run) {
  const std::string failed = run.failure ? "failed: " + run.failure->reason : "";
  if (!run.figures) return failed.empty() ? "not ended" : failed;
  const RunFigures& f = *run.figures;
  if (!failed.empty()) return failed;
  return std::string(to_string(f.reason)) + " on " + f.device + resumed_text(f) + "; " + f.data +
         (f.generated ? "; figures on generated data" : "");
}

std::string machine_table(const RunFiles& run) {
  if (!run.figures || run.figures->machine.tare.empty()) return {};
  const Machine& m = run.figures->machine;
  std::vector<std::vector<std::string>> rows{
      {"Tare", m.tare},
      {"LibTorch", m.libtorch},
      {"device", run.figures->device + ", " + m.device},
      {"processor", m.processor + ", " + format_count(m.threads) +
                        (m.threads == 1 ? " thread" : " threads") + " an operator"},
      {"memory", format_bytes(m.memory_bytes)}};
  return "<div class=\"plain\">" + table("machine", {"part", "what"}, rows) + "</div>";
}

std::string missing_of(const RunFiles& run) {
  std::string text;
  for (size_t i = 0; i < std::min(run.missing.size(), kCharts); ++i) text += note(run.missing[i]);
  if (run.missing.size() > kCharts)
    text += note("And " + std::to_string(run.missing.size() - kCharts) + " more.");
  return text.empty() ? "" : "<section class=\"missing\">" + text + "</section>\n";
}

}  // namespace

std::string html_report(const std::filesystem::path& folder, const std::filesystem::path& trace) {
  constexpr size_t kRoom = kMaxPageBytes - (size_t{32} << 10);  // for head, style and summary
  const RunFiles run = read_run(folder, trace.empty() ? folder : trace);
  std::string content = summary(run) + missing_of(run);
  const auto add = [&content](const char* heading, const std::string& part) {
    const bool fits = content.size() + part.size() < kRoom;
    content += section(heading, fits ? part : note("Too large to show."));
  };
  add("Training", curves_of(run));
  if (run.figures && run.figures->classification)
    add(run.figures->valid ? "Validation" : "Test", test_section(*run.figures->classification));
  if (run.figures && !run.worst_rows.empty())
    add(run.figures->valid ? "Validation" : "Test",
        worst_rows_section(run.figures->worst_rows.empty() ? run.worst_rows
                                                           : run.figures->worst_rows));
  add("Phases", phase_table(run) + phase_peaks(run));
  add("Ranks", rank_table(run));
  add("Devices", device_table(run));
  add("Leaks", leak_table(run));
  add("Memory over time", memory_of(run));
  if (run.memory) add("Never freed", left_table(*run.memory));
  add("Machine", machine_table(run));
  if (!run.recipe.empty()) add("Settings", folded("recipe.yaml, with every default", run.recipe));
  return page(run.name, subtitle(run), content);
}

}  // namespace tare::report

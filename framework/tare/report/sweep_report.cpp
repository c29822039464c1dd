// Writes the page of a sweep.
#include "tare/report/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/report/chart.h"
#include "tare/report/frame.h"
#include "tare/report/importance.h"
#include "tare/report/learning_curves.h"
#include "tare/report/markup.h"
#include "tare/report/page.h"
#include "tare/report/parallel.h"
#include "tare/report/run_report.h"

namespace tare::report {
namespace {

using Runs = std::vector<const SweepRun*>;

constexpr size_t kDots = 4 * kSweepLines;
constexpr size_t kParallelBytes = size_t{200} << 10, kTableBytes = size_t{360} << 10;

std::string counted(size_t count, const std::string& what) {
  return format_count(static_cast<int64_t>(count)) + ' ' + what + (count == 1 ? "" : "s");
}

std::string metric_name(const SweepSummary& sweep) { return tail(sweep.metric, kNameBytes); }

std::string some_of(size_t drawn, size_t all) {
  if (drawn == all) return {};
  return note("Drawn are " + format_count(static_cast<int64_t>(drawn)) + " of " +
              counted(all, "run") + ": the best, the worst, and others evenly by rank.");
}

bool has_value(const SweepRun& run) {
  return is_drawable(run.value) && (is_complete(run) || is_pruned(run));
}

/// Runs that have a value: the best complete one, then all by value.
Runs with_value(const SweepSummary& sweep) {
  Runs runs = best_first(sweep);
  std::erase_if(runs, [](const SweepRun* run) { return !has_value(*run); });
  const auto value = [&](const SweepRun* run) { return sweep.maximize ? -run->value : run->value; };
  if (!runs.empty())
    std::stable_sort(runs.begin() + 1, runs.end(),
                     [&](const auto* a, const auto* b) { return value(a) < value(b); });
  return runs;
}

// ---- tiles

std::string count_of(const SweepSummary& sweep, const char* state) {
  return format_count(std::ranges::count(sweep.runs, state, &SweepRun::state));
}

std::string summary(const SweepSummary& sweep, const Runs& best) {
  int64_t peak = 0;
  double seconds = 0;
  for (const auto& run : sweep.runs) {
    peak = std::max(peak, run.peak_bytes);
    if (std::isfinite(run.seconds)) seconds += run.seconds;
  }
  std::vector<Tile> all{{"complete", count_of(sweep, "COMPLETE")},
                        {"failed", count_of(sweep, "FAIL")},
                        {"pruned", count_of(sweep, "PRUNED")},
                        {"waiting", count_of(sweep, "WAITING")}};
  if (const std::string running = count_of(sweep, "RUNNING"); running != "0")
    all.back().value += " and " + running + " running";
  all.push_back({"best " + metric_name(sweep), best.empty() ? "-" : figure(best[0]->value)});
  all.push_back({"best run", best.empty() ? "-" : printable(best[0]->name, kNameBytes)});
  all.push_back({"time of all runs", format_seconds(seconds)});
  all.push_back({"highest peak of a run", peak > 0 ? format_bytes(peak) : "-"});
  return tiles(all);
}

std::string nothing_yet(const SweepSummary& sweep) {
  if (sweep.runs.empty()) return note("The sweep has no run yet.");
  return note("No run has completed with a value of " + metric_name(sweep) + '.');
}

// ---- the best value so far

Series dots(const char* name, size_t colour) {
  return {.name = name, .points = {}, .colour = colour, .mark = Mark::dots};
}

double x_of(const SweepRun& run) {
  return std::clamp(static_cast<double>(run.number), -kMostCounted, kMostCounted);
}

/// Returns the line of the best value, which is level between runs that improved it and continues
/// to the last run.
Series best_so_far(const SweepSummary& sweep, const Runs& by_number) {
  Series line{.name = "best so far", .points = {}, .colour = 0, .mark = Mark::line};
  double best = NAN;
  for (const auto* run : by_number) {
    if (!is_complete(*run)) continue;
    const bool better = sweep.maximize ? run->value > best : run->value < best;
    if (!better && !std::isnan(best)) continue;
    const double number = x_of(*run);
    if (!std::isnan(best)) line.points.push_back({number, best});
    line.points.push_back({number, best = run->value});
  }
  if (!line.points.empty()) line.points.push_back({x_of(*by_number.back()), best});
  return line;
}

/// Returns the series; the best run's dot comes last, so that it lies on top.
std::vector<Series> history_series(const SweepSummary& sweep, const Runs& runs) {
  Series complete = dots("complete run", 1), pruned = dots("pruned run", 3),
         best = dots("best run", 2);
  for (const auto* run : spread(runs, kDots)) {
    const Point point{x_of(*run), run->value};
    (is_complete(*run) ? complete : pruned).points.push_back(point);
  }
  Runs by_number = runs;
  std::ranges::stable_sort(by_number, {}, &SweepRun::number);
  Series line = best_so_far(sweep, by_number);
  if (!line.points.empty()) best.points.push_back(*(line.points.end() - 2));
  std::vector<Series> all{std::move(complete), std::move(pruned), std::move(line), std::move(best)};
  std::erase_if(all, [](const Series& series) { return series.points.empty(); });
  return all;
}

std::string history(const SweepSummary& sweep, const Runs& runs) {
  if (runs.empty()) return {};
  const std::vector<Series> series = history_series(sweep, runs);
  std::vector<LegendItem> items;
  for (const auto& one : series) items.push_back({one.name, one.colour, one.mark == Mark::line});
  const std::string caption = capitalized(metric_name(sweep)) + " by number of the run";
  const std::string chart =
      line_chart({.title = caption,
                  .description = "A dot for each of " + counted(runs.size(), "run") +
                                 ", and a line for the best value so far.",
                  .x_title = "number of the run",
                  .y_title = tail(sweep.metric, kAxisNameBytes),
                  .series = series});
  return chart_with(caption, chart, legend(items)) +
         some_of(std::min(runs.size(), kDots), runs.size());
}

std::string left_out(const SweepSummary& sweep, size_t drawn) {
  const auto ended = static_cast<size_t>(std::ranges::count_if(
      sweep.runs, [](const SweepRun& run) { return is_complete(run) || is_pruned(run); }));
  if (ended == drawn) return {};
  return note(counted(ended - drawn, "run") +
              " ended without a value that can be drawn: only in the table.");
}

// ---- parameters

std::string parallel(const SweepSummary& sweep, const Runs& runs, const Shading& shading) {
  const size_t line_bytes = 14 * sweep.parameters.size() + 40;
  const Runs some = spread(runs, std::clamp<size_t>(kParallelBytes / line_bytes, 2, kSweepLines));
  return chart_with("Values of each run", parallel_chart(sweep, some, shading)) +
         some_of(some.size(), runs.size());
}

std::string importance_note(const Importance& importance) {
  const std::string best = "the best " + counted(importance.best, "run") + " of " +
                           format_count(static_cast<int64_t>(importance.runs));
  std::string text = "How much a parameter's values in " + best +
                     " differ from those in all, in shares of the sum (PED-ANOVA).";
  if (importance.best < kFewBest)
    text += " From so few this is a hint at most: " + std::to_string(kFewBest) +
            " of the best, a tenth of all, are advised.";
  return note(text);
}

std::string importances(const SweepSummary& sweep) {
  const Importance importance = importance_of(sweep);
  if (importance.best < kTooFewBest)
    return note("There are too few runs: the best tenth of " +
                counted(importance.runs, "complete run") + " is compared with all, and must be " +
                std::to_string(kTooFewBest) + " runs at least.");
  if (!importance.differs) return note("No parameter distinguishes the best runs from the others.");
  BarChart chart{.title = "Importance of the parameters",
                 .description = "Shares of the parameters, the most important first."};
  for (size_t i = 0; i < sweep.parameters.size(); ++i) {
    constexpr size_t kBarName = 24;
    const double share = importance.shares[i];
    chart.bars.push_back({tail(sweep.parameters[i].name, kBarName), percent(share), share, 0});
  }
  std::ranges::stable_sort(chart.bars, std::ranges::greater{}, &Bar::value);
  return bar_chart(chart) + importance_note(importance);
}

std::string parameters(const SweepSummary& sweep, const Runs& runs, const Shading& shading) {
  if (runs.empty()) return {};
  if (sweep.parameters.empty()) return note("The sweep varies no parameter.");
  return "<div class=\"parameters\"><div>" + parallel(sweep, runs, shading) + "</div><div>" +
         chart_with("Importance", importances(sweep)) + "</div></div>";
}

// ---- runs

std::string state_of(const SweepRun& run) {
  static const std::map<std::string, std::string> words{
      {"COMPLETE", "complete"}, {"PRUNED", "pruned"},   {"FAIL", "failed"},
      {"RUNNING", "running"},   {"WAITING", "waiting"}, {kEarlierRun, "of an earlier recipe"}};
  const auto word = words.find(run.state);
  const std::string text = word == words.end() ? run.state : word->second;
  return run.reason.empty() ? text : text + ": " + run.reason;
}

std::string cell_of(const SweepSummary& sweep, const SweepRun& run, size_t parameter) {
  const SweepParameter& p = sweep.parameters[parameter];
  const double value = value_of(sweep, run, parameter);
  if (std::isnan(value)) return "-";
  if (!p.choices.empty()) return p.choices[static_cast<size_t>(value)];
  return p.integer ? format_count(std::llround(std::clamp(value, -kMostCounted, kMostCounted)))
                   : figure(value);
}

/// Returns a name with blanks of no width after its dots and underscores, where a narrow column can
/// break it.
std::string breakable(const std::string& name) {
  std::string text;
  for (const char c : name) {
    text += c;
    if (c == '.' || c == '_') text += "\u200b";
  }
  return text;
}

/// Whether the table says where the ranks of runs were.
bool has_ranks(const SweepSummary& sweep) {
  return std::ranges::any_of(sweep.runs, [](const SweepRun& run) { return !run.placed.empty(); });
}

std::vector<std::string> row_of(const SweepSummary& sweep, const SweepRun& run, bool with_ranks) {
  std::vector<std::string> row{breakable(printable(run.name, kNameBytes / 2)), figure(run.value),
                               state_of(run)};
  for (size_t i = 0; i < sweep.parameters.size(); ++i) row.push_back(cell_of(sweep, run, i));
  if (with_ranks) row.push_back(run.placed.empty() ? "-" : printable(run.placed, kNameBytes));
  row.push_back(run.peak_bytes > 0 ? format_bytes(run.peak_bytes) : "-");
  row.push_back(run.seconds > 0 ? format_seconds(run.seconds) : "-");
  return row;
}

/// Returns "Failed: 9 out of memory, 3 signal 9."
std::string reasons(const SweepSummary& sweep) {
  constexpr size_t kReasons = 10;
  std::map<std::string, int64_t> counts;
  for (const auto& run : sweep.runs)
    if (run.state == "FAIL") ++counts[run.reason.empty() ? "unknown" : run.reason];
  std::string text;
  size_t shown = 0;
  for (const auto& [reason, count] : counts) {
    if (shown++ == kReasons) break;
    text += (text.empty() ? "" : ", ") + format_count(count) + ' ' + tail(reason, kNameBytes);
  }
  if (counts.size() > kReasons) text += " ...";
  return text.empty() ? "" : note("Failed: " + text + '.');
}

std::string run_table(const SweepSummary& sweep) {
  if (sweep.runs.empty()) return {};
  const bool with_ranks = has_ranks(sweep);
  std::vector<std::string> head{"run", metric_name(sweep), "state"};
  for (const auto& parameter : sweep.parameters)
    head.push_back(breakable(tail(parameter.name, kNameBytes)));
  if (with_ranks) head.emplace_back("placed");
  for (const char* name : {"peak", "time"}) head.emplace_back(name);
  std::vector<std::vector<std::string>> rows;
  for (const auto* run : best_first(sweep)) rows.push_back(row_of(sweep, *run, with_ranks));
  const auto cut = [&](size_t limit) { return table("runs, the best first", head, rows, limit); };
  size_t limit = rows.size();
  std::string text = cut(limit);
  while (text.size() > kTableBytes && limit > 1) {
    limit = std::max<size_t>(1, limit * kTableBytes / text.size() * 9 / 10);
    text = cut(limit);
  }
  return reasons(sweep) + "<div class=\"runs\">" + text + "</div>";
}

// ---- the page

constexpr const char* kStyle =
    ".tiles{grid-template-columns:repeat(4,1fr)}"
    "@media(max-width:520px){.tiles{grid-template-columns:1fr 1fr}}"
    ".dot{stroke-width:7}.dot.s2{stroke-width:12}"
    ".tiles div:nth-child(6) dd{font-size:14px}"
    ".parameters{display:grid;grid-template-columns:minmax(0,2fr) minmax(0,1fr);gap:24px 36px}"
    "@media(max-width:800px){.parameters{grid-template-columns:minmax(0,1fr)}}"
    ".tiles dt,figcaption,.note{overflow-wrap:anywhere}"
    ".rail{stroke:var(--soft)}"
    ".band{fill:var(--card);opacity:.84;x:-4px;width:calc(100% + 8px)}"
    ".bands{pointer-events:none}.chart .bands .name{fill:var(--ink)}"
    ".runs .wide{max-height:36em;overflow:auto}"
    ".runs thead th{position:sticky;top:0;background:var(--card);z-index:1;white-space:normal;"
    "vertical-align:bottom}"
    ".runs thead th:first-child{z-index:2}"
    ".runs tbody th,.runs td{max-width:min(40vw,260px);overflow:hidden;text-overflow:ellipsis}"
    ".runs tbody th{white-space:normal;min-width:min(40vw,220px);overflow-wrap:break-word}"
    "@media print{.runs .wide{max-height:none}}";

std::string subtitle(const SweepSummary& sweep) {
  return counted(sweep.runs.size(), "run") + " of " +
         counted(sweep.parameters.size(), "parameter") + "; " +
         (sweep.maximize ? "highest " : "lowest ") + metric_name(sweep) + " is best" +
         (sweep.generated ? "; on generated data" : "");
}

/// Runs of which a learning curve can be drawn; `valued` ones first and last, as they are there.
Runs with_curve(const SweepSummary& sweep, const Runs& valued) {
  Runs runs = valued;
  const auto second = runs.begin() + (runs.empty() ? 0 : 1);
  Runs others = best_first(sweep);
  std::erase_if(others, [](const SweepRun* run) { return has_value(*run); });
  runs.insert(second, others.begin(), others.end());
  std::erase_if(runs,
                [](const SweepRun* run) { return std::ranges::none_of(run->metric, is_drawable); });
  return runs;
}

std::string curves(const SweepSummary& sweep, const Runs& valued, const Shading& shading,
                   size_t used) {
  constexpr size_t kRoom = kMaxPageBytes - (size_t{24} << 10);  // without head, style and legends
  const Runs all = with_curve(sweep, valued), some = spread(all, kSweepLines);
  if (all.empty()) return {};
  return chart_with(capitalized(metric_name(sweep)) + " by epoch",
                    learning_curves(sweep, some, shading, used < kRoom ? kRoom - used : 0)) +
         some_of(some.size(), all.size());
}

std::string page_of(const SweepSummary& sweep, const std::string& remark) {
  const Runs best = ranked(sweep), valued = with_value(sweep);
  const Shading shading(valued, sweep.maximize);
  const std::string missing = (best.empty() ? nothing_yet(sweep) : "") + remark;
  const std::string top =
      summary(sweep, best) +
      (missing.empty() ? "" : "<section class=\"missing\">" + missing + "</section>\n") +
      section("Progress", history(sweep, valued) + left_out(sweep, valued.size())) +
      section("Parameters", parameters(sweep, valued, shading));
  const std::string bottom = section("Runs", run_table(sweep));
  const std::string middle =
      section("Learning curves", curves(sweep, valued, shading, top.size() + bottom.size()));
  return page(sweep.name, subtitle(sweep), top + middle + bottom, strand_style() + kStyle);
}

}  // namespace

std::string sweep_page(const SweepSummary& sweep) {
  if (sweep.parameters.size() <= kSweepParameters) return page_of(sweep, {});
  SweepSummary first = sweep;
  first.parameters.resize(kSweepParameters);
  return page_of(first, note("Shown are the first " + counted(kSweepParameters, "parameter") +
                             " of " + std::to_string(sweep.parameters.size()) + '.'));
}

}  // namespace tare::report

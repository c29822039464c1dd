// Compares the files of several runs.
#include "tare/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/table.h"
#include "tare/report/chart.h"
#include "tare/report/compared_settings.h"
#include "tare/report/markup.h"
#include "tare/report/page.h"
#include "tare/report/read_run.h"
#include "tare/report/run_data.h"
#include "tare/report/test_section.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;

// ---- figures

/// Collects rows, one call for each figure of each run in the order of the runs.
class Figures {
 public:
  explicit Figures(size_t runs) : runs_(runs) {}

  void add(size_t run, const std::string& name, double value, const std::string& text) {
    auto found = std::ranges::find(rows_, name, &ComparedRow::name);
    if (found == rows_.end()) {
      rows_.push_back({name, std::vector<std::string>(runs_, kNoSetting),
                       std::vector<double>(runs_, std::nan(""))});
      found = rows_.end() - 1;
    }
    found->texts[run] = text;
    found->values[run] = value;
  }
  [[nodiscard]] std::vector<ComparedRow> take() { return std::move(rows_); }

 private:
  size_t runs_;
  std::vector<ComparedRow> rows_;
};

void add_bytes(Figures& to, size_t run, const std::string& name, int64_t bytes) {
  to.add(run, name, static_cast<double>(bytes), format_bytes(bytes));
}

void add_figures(Figures& to, size_t run, const RunFiles& files) {
  size_t epochs = 0;
  for (const auto& phase : files.phases) epochs += phase.epochs.size();
  if (files.figures) {
    const RunFigures& f = *files.figures;
    for (const auto& value : figures_of(f.test))
      to.add(run, "test " + value.name, value.value, figure(value.value));
    for (const auto& value : figures_of(f.valid))
      to.add(run, "valid " + value.name, value.value, figure(value.value));
  }
  to.add(run, "epochs", static_cast<double>(epochs), format_count(static_cast<int64_t>(epochs)));
  if (!files.figures) return;
  const RunFigures& f = *files.figures;
  to.add(run, "time", f.seconds, format_seconds(f.seconds));
  int64_t peak = 0;
  size_t ranks = 0;
  for (const auto& phase : f.phases) {
    peak = std::max(peak, phase.peak_bytes);
    ranks = std::max(ranks, phase.ranks.size());
    to.add(run, "samples/s of " + phase.name, phase.samples_per_s, figure(phase.samples_per_s));
  }
  if (ranks > 0)
    to.add(run, "ranks", static_cast<double>(ranks), format_count(static_cast<int64_t>(ranks)));
  add_bytes(to, run, "highest peak of a phase", peak);
  add_bytes(to, run, "process at the end", f.process_bytes);
  if (f.exported) add_bytes(to, run, "bundle", f.exported->bytes);
}

// ---- curves

bool any_finite(const std::vector<double>& line) {
  return std::ranges::any_of(line, [](double v) { return std::isfinite(v); });
}

/// Collects the curves of the runs.
class Curves {
 public:
  explicit Curves(const std::vector<RunFiles>& runs) : runs_(runs) {}

  /// Adds what `read(run, point)` hands to `point(place, value)`; nothing, where no run has any.
  template <class Read>
  void add(const std::string& name, CurveAxis axis, const Read& read) {
    ComparedCurve curve{.name = name, .axis = axis};
    for (const RunFiles& run : runs_) {
      auto &line = curve.lines.emplace_back(), &places = curve.places.emplace_back();
      read(run, [&](double place, double value) {
        places.push_back(place);
        line.push_back(value);
      });
      if (any_finite(line)) continue;
      line.clear();
      places.clear();
    }
    const bool any = std::ranges::any_of(curve.lines, [](const auto& l) { return !l.empty(); });
    if (any) all_.push_back(std::move(curve));
  }
  void add_epochs(const std::string& name, const std::function<double(const EpochRow&)>& value) {
    add(name, CurveAxis::epoch, [&](const RunFiles& run, const auto& point) {
      double epoch = 0;
      for (const auto& phase : run.phases)
        for (const auto& row : phase.epochs) point(++epoch, value(row));
    });
  }
  void add_steps(const std::string& name, double StepRow::*value) {
    add(name, CurveAxis::step, [&](const RunFiles& run, const auto& point) {
      double before = 0;
      for (const auto& phase : run.phases) {
        for (const auto& row : phase.steps)
          point(before + static_cast<double>(row.step), row.*value);
        if (!phase.steps.empty()) before += static_cast<double>(phase.steps.back().step);
      }
    });
  }
  [[nodiscard]] std::vector<ComparedCurve> take() { return std::move(all_); }

 private:
  const std::vector<RunFiles>& runs_;
  std::vector<ComparedCurve> all_;
};

std::vector<ComparedCurve> curves_of(const std::vector<RunFiles>& runs) {
  Curves curves(runs);
  curves.add_epochs("train_loss", [](const EpochRow& row) { return row.train_loss; });
  curves.add_epochs("valid_loss", [](const EpochRow& row) { return row.valid_loss; });
  std::vector<std::string> names;
  for (const auto& run : runs)
    for (const auto& name : metric_names(run))
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (const auto& name : names)
    curves.add_epochs(name, [&name](const EpochRow& row) {
      const MetricValue* metric = find_metric(row.metrics, name);
      return metric ? metric->value : std::nan("");
    });
  curves.add_steps("learning_rate", &StepRow::lr);
  curves.add("bytes", CurveAxis::seconds, [](const RunFiles& run, const auto& point) {
    if (!run.memory) return;
    for (size_t i = 0; i + 1 < run.memory->stretch_s.size(); ++i) {
      double bytes = 0;
      for (const auto& group : run.memory->bytes) bytes += group[i];
      point(run.memory->stretch_s[i], bytes);
    }
  });
  return curves.take();
}

// ---- single samples

ComparedTest test_of(const RunFiles& run) {
  if (!run.figures) return {};
  const RunFigures& figures = *run.figures;
  return {.of_validation = figures.valid.has_value(),
          .classification = figures.classification,
          .worst_rows = figures.worst_rows.empty() ? run.worst_rows : figures.worst_rows};
}

std::vector<std::string> names_of(const std::vector<RunFiles>& runs,
                                  const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const auto& run : runs) {
    names.push_back(run.name);
    seen.insert(run.name);
  }
  if (seen.size() == names.size()) return names;
  names.clear();
  for (const auto& folder : folders) names.push_back(folder.string());
  return names;
}

// ---- output

std::string text_of(const std::vector<ComparedRow>& rows, const std::string& head,
                    const std::vector<std::string>& runs, size_t width) {
  std::vector<TableColumn> columns{{head}};
  for (const auto& run : runs) columns.push_back({printable(run)});
  std::vector<TableRow> cells;
  for (const auto& row : rows) {
    TableRow& line = cells.emplace_back(TableRow{printable(row.name)});
    for (const auto& text : row.texts) line.push_back(printable(text));
  }
  return text_table(columns, cells, width);
}

std::string html_of(const std::vector<ComparedRow>& rows, const std::string& head,
                    const std::vector<std::string>& runs) {
  if (rows.empty()) return {};
  std::vector<std::string> heads{head};
  heads.insert(heads.end(), runs.begin(), runs.end());
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows) {
    auto& line = cells.emplace_back(std::vector<std::string>{row.name});
    line.insert(line.end(), row.texts.begin(), row.texts.end());
  }
  return table(head, heads, cells);
}

const char* unit_of(CurveAxis axis) {
  return axis == CurveAxis::epoch ? "epoch" : axis == CurveAxis::step ? "step" : "seconds";
}

std::string chart_of(const ComparedCurve& curve, const std::vector<std::string>& runs) {
  std::vector<Series> series;
  std::vector<LegendItem> items;
  for (size_t run = 0; run < runs.size(); ++run) {
    if (curve.lines[run].empty()) continue;
    Series line{.name = runs[run], .colour = run};
    for (size_t i = 0; i < curve.lines[run].size(); ++i)
      line.points.push_back({curve.places[run][i], curve.lines[run][i]});
    items.push_back({runs[run], run, true});
    series.push_back(std::move(line));
  }
  const std::string unit = unit_of(curve.axis);
  const std::string caption = curve.axis == CurveAxis::seconds
                                  ? "Memory over time"
                                  : capitalized(curve.name) + " by " + unit;
  const std::string chart =
      line_chart({.title = caption,
                  .description = "A line for each run.",
                  .x_title = unit,
                  .y_title = curve.name,
                  .x_unit = curve.axis == CurveAxis::seconds ? Unit::seconds : Unit::count,
                  .y_unit = curve.axis == CurveAxis::seconds ? Unit::bytes : Unit::number,
                  .series = std::move(series)});
  return chart_with(caption, chart, legend(items));
}

/// Returns the confusion matrix and the worst samples of each run, side by side.
std::string tests_of(const Comparison& comparison) {
  std::string all;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedTest& test = comparison.tests[i];
    const std::string part = test.classification        ? test_section(*test.classification)
                             : !test.worst_rows.empty() ? worst_rows_section(test.worst_rows)
                                                        : "";
    if (!part.empty())
      all += "<div>" +
             note(comparison.runs[i] + ", " + (test.of_validation ? "validation" : "test") + ":") +
             part + "</div>";
  }
  return all.empty() ? "" : "<div class=\"pair\">" + all + "</div>";
}

}  // namespace

Comparison compare_runs(const std::vector<fs::path>& folders, const std::string& defaults,
                        const OwnDefaults& own_defaults) {
  if (folders.size() < 2 || folders.size() > kMostCompared)
    throw ConfigError("compare", "compares 2 to " + std::to_string(kMostCompared) + " runs, got " +
                                     std::to_string(folders.size()));
  std::vector<RunFiles> runs;
  for (const auto& folder : folders) runs.push_back(read_run(folder, folder));
  std::vector<std::string> recipes;
  for (const RunFiles& run : runs) recipes.push_back(run.recipe);
  Comparison result{.runs = names_of(runs, folders),
                    .settings = compared_settings(recipes, defaults, own_defaults),
                    .curves = curves_of(runs)};
  for (const auto& run : runs) result.tests.push_back(test_of(run));
  Figures figures(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    add_figures(figures, i, runs[i]);
    if (runs[i].failure)
      result.failed.push_back({result.runs[i], runs[i].failure->reason});
    else if (!runs[i].figures)
      result.unfinished.push_back(result.runs[i]);
  }
  result.figures = figures.take();
  return result;
}

std::string to_text(const Comparison& comparison, size_t width) {
  std::string text = comparison.settings.empty()
                         ? "the settings are equal\n"
                         : text_of(comparison.settings, "setting", comparison.runs, width);
  text += '\n' + text_of(comparison.figures, "figure", comparison.runs, width);
  for (const auto& run : comparison.unfinished)
    text += printable(run) + " has not ended: only its epochs are known\n";
  for (const auto& [run, reason] : comparison.failed)
    text += printable(run) + " failed: " + reason + '\n';
  return text;
}

std::string to_csv(const Comparison& comparison) {
  std::string text = "kind,name,epoch";
  for (const auto& run : comparison.runs) text += ',' + csv_field(run);
  text += '\n';
  for (const auto& row : comparison.settings) {
    text += "setting," + csv_field(row.name) + ',';
    for (const auto& value : row.texts) text += ',' + (value == kNoSetting ? "" : csv_field(value));
    text += '\n';
  }
  for (const auto& row : comparison.figures) {
    text += "figure," + csv_field(row.name) + ',';
    for (const double value : row.values) text += ',' + csv_number(value);
    text += '\n';
  }
  for (const auto& curve : comparison.curves) {
    std::map<double, std::vector<std::string>> rows;  // by their place on the axis
    for (size_t run = 0; run < curve.lines.size(); ++run)
      for (size_t i = 0; i < curve.lines[run].size(); ++i) {
        auto& row = rows[curve.places[run][i]];
        row.resize(curve.lines.size());
        row[run] = csv_number(curve.lines[run][i]);
      }
    const std::string kind =
        curve.axis == CurveAxis::epoch ? "curve" : std::string(unit_of(curve.axis)) + "_curve";
    for (const auto& [place, values] : rows) {
      text += kind + ',' + csv_field(curve.name) + ',' + csv_number(place);
      for (const std::string& value : values) text += ',' + value;
      text += '\n';
    }
  }
  return text;
}

std::string to_json(const Comparison& comparison) {
  using nlohmann::ordered_json;
  const auto number = [](double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json();
  };
  const auto numbers = [&](const std::vector<double>& line) {
    ordered_json values = ordered_json::array();
    for (const double value : line) values.push_back(number(value));
    return values;
  };
  ordered_json settings = ordered_json::object(), figures = settings, curves = settings,
               step_curves = settings, seconds_curves = settings, failed = settings,
               worst = ordered_json::array();
  for (const auto& row : comparison.settings) settings[row.name] = row.texts;
  for (const auto& row : comparison.figures)
    for (const double value : row.values) figures[row.name].push_back(number(value));
  for (const auto& curve : comparison.curves) {
    if (curve.axis == CurveAxis::epoch) {
      for (const auto& line : curve.lines) curves[curve.name].push_back(numbers(line));
      continue;
    }
    auto& by_run = (curve.axis == CurveAxis::step ? step_curves : seconds_curves)[curve.name];
    for (size_t run = 0; run < curve.lines.size(); ++run)
      by_run.push_back({{"at", numbers(curve.places[run])}, {"values", numbers(curve.lines[run])}});
  }
  for (const auto& test : comparison.tests) {
    ordered_json of_run = ordered_json::array();
    if (test.classification)
      for (const WorstSample& one : test.classification->worst)
        of_run.push_back({{"name", one.name.empty() ? std::to_string(one.index) : one.name},
                          {"label", one.label},
                          {"predicted", one.predicted},
                          {"loss", number(one.loss)}});
    for (const WorstRow& row : test.worst_rows)
      of_run.push_back({{"name", row.name},
                        {"label", number(row.target)},
                        {"predicted", number(row.predicted)},
                        {"loss", number(row.loss)}});
    worst.push_back(std::move(of_run));
  }
  for (const auto& [run, reason] : comparison.failed) failed[run] = reason;
  const ordered_json all{{"runs", comparison.runs},
                         {"settings", settings},
                         {"figures", figures},
                         {"curves", curves},
                         {"step_curves", step_curves},
                         {"seconds_curves", seconds_curves},
                         {"worst", worst},
                         {"unfinished", comparison.unfinished},
                         {"failed", failed}};
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string to_html(const Comparison& comparison) {
  std::string charts, memory, unfinished;
  for (const auto& curve : comparison.curves)
    (curve.axis == CurveAxis::seconds ? memory : charts) += chart_of(curve, comparison.runs);
  if (!charts.empty()) charts = "<div class=\"pair\">" + charts + "</div>";
  for (const auto& run : comparison.unfinished)
    unfinished += note(run + " has not ended: only its epochs are known.");
  for (const auto& [run, reason] : comparison.failed)
    unfinished += note(run + " failed: " + reason);
  const std::string settings = comparison.settings.empty()
                                   ? note("The settings are equal.")
                                   : html_of(comparison.settings, "setting", comparison.runs);
  return page("Comparison of " + std::to_string(comparison.runs.size()) + " runs",
              "the settings in which they differ, their figures, curves, memory and worst samples",
              unfinished + section("Settings", settings) +
                  section("Figures", html_of(comparison.figures, "figure", comparison.runs)) +
                  section("Training", charts) + section("Memory", memory) +
                  section("Predictions", tests_of(comparison)));
}

}  // namespace tare::report

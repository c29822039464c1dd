// Draws the allocations of a run over time.
#include "tare/report/memory_section.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/report/chart.h"
#include "tare/report/markup.h"
#include "tare/report/page.h"

namespace tare::report {
namespace {

/// The order of layers from the bottom, and their colours; other names follow in grey.
struct Known {
  const char* name;
  size_t colour;
};
constexpr std::array kKnown{Known{"before the trace", kGrey},
                            Known{"parameters", 0},
                            Known{"mapped", 8},
                            Known{"buffers", 1},
                            Known{"optimizer", 3},
                            Known{"gradients", 2},
                            Known{"activations", 4},
                            Known{"batch", 5},
                            Known{"workspace", 6},
                            Known{"other", 7},
                            Known{"none", kGrey},
                            Known{"load", 8},
                            Known{"step", 3},
                            Known{"data", 5},
                            Known{"validate", 1},
                            Known{"predict", 7},
                            Known{"plan", kInk},
                            Known{"save", 6},
                            Known{"purge", 0},
                            Known{"forward", 4},
                            Known{"backward", 2}};

size_t rank_of(const std::string& name) {
  const auto known = std::ranges::find(kKnown, name, [](const Known& k) { return k.name; });
  return static_cast<size_t>(known - kKnown.begin());
}

size_t colour_of(const std::string& name) {
  const size_t rank = rank_of(name);
  return rank < kKnown.size() ? kKnown[rank].colour : kGrey;
}

/// Indices of names in the order of their layers.
std::vector<size_t> in_order(const std::vector<std::string>& names) {
  std::vector<size_t> order(names.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return rank_of(names[i]); });
  return order;
}

/// Returns a stacked chart of the lines that are not zero everywhere, and its legend.
std::string stacked(const std::string& caption, AreaChart chart,
                    const std::vector<std::string>& names,
                    const std::vector<std::vector<double>>& lines) {
  std::vector<LegendItem> items;
  for (const size_t i : in_order(names)) {
    if (std::ranges::all_of(lines[i], [](double y) { return y == 0; })) continue;
    chart.layers.push_back({names[i], lines[i], colour_of(names[i])});
    items.push_back({names[i], colour_of(names[i])});
  }
  if (!chart.line.points.empty()) items.push_back({chart.line.name, chart.line.colour, true});
  chart.title = caption;
  return chart_with(caption, area_chart(chart), legend(items));
}

/// Steps rather than a curve: each is as long as a few stretches, or it would hide the areas.
Series lowest_sum(const Timeline& t) {
  constexpr size_t kSteps = 50;
  Series line{.name = "lowest sum of each stretch of time", .points = {}, .colour = kInk};
  const size_t length = t.stretch_s.size() / kSteps + 1;
  for (size_t i = 0; i < t.stretch_s.size(); i += length) {
    const size_t end = std::min(i + length, t.stretch_s.size());
    double lowest = t.lowest_bytes[i];
    for (size_t j = i; j < end; ++j) lowest = std::min(lowest, t.lowest_bytes[j]);
    line.points.push_back({t.stretch_s[i], lowest});
    line.points.push_back({t.stretch_s[std::min(end, t.stretch_s.size() - 1)], lowest});
  }
  return line;
}

std::string memory_curve(const Timeline& t) {
  return stacked(
      t.by_category ? "Allocated bytes by category"
                    : "Allocated bytes by the phase that allocated them",
      {.description = "Stacked areas: the highest moment of each stretch of time. In all, "
                      "the highest sum is " +
                      format_bytes(t.peak_bytes) + ", after " + format_seconds(t.peak_s) + '.',
       .x_title = "time since the start",
       .y_title = "allocated bytes",
       .x = t.stretch_s,
       .line = lowest_sum(t)},
      t.groups, t.bytes);
}

std::string phase_shares(const Timeline& t) {
  return stacked(
      "Share of the time by phase",
      {.description = "For each stretch of time, the share that each phase was in force.",
       .x_title = "time since the start",
       .x = t.stretch_s,
       .height = 70,
       .y_axis = false},
      t.phases, t.shares);
}

std::string peak_bars(const Timeline& t) {
  BarChart chart{.title = "What was alive at the peak",
                 .description = "Bytes at the highest moment, " + format_bytes(t.peak_bytes) + '.'};
  for (size_t i = 0; i < t.groups.size(); ++i) {
    if (t.at_peak[i] == 0) continue;
    const auto bytes = static_cast<double>(t.at_peak[i]);
    chart.bars.push_back(
        {t.groups[i],
         format_bytes(t.at_peak[i]) + ", " + percent(bytes / static_cast<double>(t.peak_bytes)),
         bytes, colour_of(t.groups[i])});
  }
  std::ranges::stable_sort(chart.bars, std::ranges::greater{}, &Bar::value);
  return chart_with("At the peak: " + format_bytes(t.peak_bytes) + " in phase " + t.peak_phase +
                        ", " + format_seconds(t.peak_s) + " after the start",
                    bar_chart(chart));
}

}  // namespace

std::string left_table(const Timeline& t) {
  if (t.left.empty())
    return note("Every block that was allocated in the run was freed by its end: no leak.");
  std::vector<std::vector<std::string>> rows;
  for (const auto& group : t.left)
    rows.push_back(
        {group.group, group.phase, format_count(group.blocks), format_bytes(group.bytes)});
  return table("never freed",
               {t.by_category ? "category" : "group", "allocated in", "blocks", "bytes"}, rows) +
         note(
             "Allocated in the run and alive when its record ended: leaks, and what libraries keep "
             "for later.");
}

std::string memory_of(const RunFiles& run) {
  if (!run.memory) {
    return note(
        "There is no record of the run's allocations: run it with --record-memory DIR, then "
        "tare report RUN --recording DIR.");
  }
  return memory_curve(*run.memory) + phase_shares(*run.memory) + peak_bars(*run.memory) +
         note(format_count(run.memory->events) + " allocations and frees in " +
              format_seconds(run.memory->end_s) + '.');
}

}  // namespace tare::report

// Writes the model of a phase on many devices as text and as JSON.
#include "tare/recipe/scale_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/base/table.h"

namespace tare {
namespace {

using nlohmann::ordered_json;
using plan::ScaleRow;
using plan::Strategy;

const std::vector<TableColumn>& columns() {
  static const std::vector<TableColumn> all{
      {.head = "strategy", .whole = true},   {.head = "bytes of a rank", .figure = true},
      {.head = "fits", .figure = true},      {.head = "step", .figure = true},
      {.head = "computes", .figure = true},  {.head = "exchanges", .figure = true},
      {.head = "samples/s", .figure = true}, {.head = "efficiency", .figure = true}};
  return all;
}

std::string name_of(const ScaleRow& row, int64_t ranks) {
  std::string name = plan::to_string(row.strategy);
  if (row.strategy != Strategy::pipeline) return name;
  name += " of " + std::to_string(row.stages) + " stages";
  const int64_t pipelines = ranks / row.stages;
  return pipelines > 1 ? name + ", " + std::to_string(pipelines) + " of them" : name;
}

std::string rate_text(double rate) {
  if (rate >= 100) return format_count(std::llround(rate));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", rate);
  return text.data();
}

TableRow row_of(const ScaleRow& row, int64_t ranks) {
  const bool timed = row.step_s > 0;
  const auto seconds = [&](double s) { return timed ? format_seconds(s) : std::string("?"); };
  return {name_of(row, ranks),
          format_bytes(row.bytes),
          row.fits ? "yes" : "no",
          seconds(row.step_s),
          seconds(row.compute_s),
          seconds(row.exchange_s),
          timed ? rate_text(row.samples_per_s) : "?",
          timed ? std::to_string(std::llround(100 * row.efficiency)) + " %" : "?"};
}

std::string head_of(const plan::ScalePlan& scale) {
  std::string text = scale.name + " on " + std::to_string(scale.ranks) + " ranks, " +
                     std::to_string(std::min(scale.ranks, scale.cluster.per_machine)) +
                     " on a machine: a batch of " + format_count(scale.batch) +
                     ", of which a rank has " + format_count(scale.own);
  if (scale.parts > 1) text += " in " + format_count(scale.parts) + " micro-batches";
  return text + '\n';
}

std::string notes_of(const plan::ScalePlan& scale) {
  std::string text;
  if (const ScaleRow* best = plan::fastest(scale.rows))
    text += "fastest that fits: " + name_of(*best, scale.ranks) + '\n';
  else if (scale.sample_s)
    text += "none of them fits\n";
  for (const std::string& why : scale.refused) text += why + '\n';
  if (scale.batch < scale.ranks)
    text += "the batch has fewer samples than there are ranks: " +
            format_count(scale.ranks - scale.batch) + " ranks compute what does not count\n";
  text += scale.sample_s ? "computation: " + scale.computation + '\n'
                         : "the time is unknown, because the operations or the rate of the device "
                           "are: give --rate or --batch-time\n";
  return text;
}

/// Returns what holds for all phases.
std::string legend_of(const plan::ScalePlan& scale) {
  std::string planned, computed;
  for (const ScaleRow& row : scale.rows)
    (row.is_planned ? planned : computed) +=
        ((row.is_planned ? planned : computed).empty() ? "" : ", ") +
        std::string(plan::to_string(row.strategy));
  std::string text = "bytes: planned for " + planned;
  if (!computed.empty()) text += "; computed from the sizes of the parameters for " + computed;
  text += '\n';
  if (!scale.not_counted.empty()) text += "  at least: without " + listed(scale.not_counted) + '\n';
  text +=
      "times: estimates by a model of the network, " + scale.cluster.inside.str() + " in a machine";
  if (scale.ranks > scale.cluster.per_machine)
    text += " and " + scale.cluster.between.str() + " between machines";
  return text + " (docs/scale.md)\n";
}

ordered_json to_json(const plan::Link& link) {
  return {{"bytes_per_s", link.bytes_per_s}, {"latency_s", link.latency_s}};
}

}  // namespace

void print(std::ostream& out, const std::vector<plan::ScalePlan>& scales) {
  for (const plan::ScalePlan& scale : scales) {
    out << '\n';
    if (!scale.reason.empty()) {
      out << fitted_lines(scale.name + " on " + std::to_string(scale.ranks) +
                              " ranks: ways to divide it cannot be compared: " + scale.reason +
                              '\n',
                          out);
      continue;
    }
    std::vector<TableRow> rows;
    for (const ScaleRow& row : scale.rows) rows.push_back(row_of(row, scale.ranks));
    out << fitted_lines(head_of(scale), out) << '\n'
        << text_table(columns(), rows, width_for(out)) << '\n'
        << fitted_lines(notes_of(scale), out);
  }
  const auto known =
      std::ranges::find_if(scales, [](const auto& one) { return one.reason.empty(); });
  if (known != scales.end()) out << '\n' << fitted_lines(legend_of(*known), out);
}

ordered_json to_json(const plan::ScalePlan& scale) {
  ordered_json value{
      {"ranks", scale.ranks},
      {"per_machine", scale.cluster.per_machine},
      {"link_inside", to_json(scale.cluster.inside)},
      {"link_between", to_json(scale.cluster.between)},
      {"batch", scale.batch},
      {"own", scale.own},
      {"parts", scale.parts},
      {"sample_s", scale.sample_s ? ordered_json(*scale.sample_s) : nullptr},
      {"sample_flops", scale.sample_flops > 0 ? ordered_json(scale.sample_flops) : nullptr},
      {"computation", scale.computation}};
  if (!scale.reason.empty()) value["reason"] = scale.reason;
  if (!scale.refused.empty()) value["refused"] = scale.refused;
  ordered_json rows = ordered_json::array();
  for (const ScaleRow& row : scale.rows) {
    const auto timed = [&](double figure) {
      return row.step_s > 0 ? ordered_json(figure) : ordered_json();
    };
    rows.push_back({{"strategy", plan::to_string(row.strategy)},
                    {"stages", row.stages},
                    {"micro_batches", row.micro_batches},
                    {"bytes", row.bytes},
                    {"planned", row.is_planned},
                    {"fits", row.fits},
                    {"compute_s", timed(row.compute_s)},
                    {"exchange_s", timed(row.exchange_s)},
                    {"step_s", timed(row.step_s)},
                    {"samples_per_s", timed(row.samples_per_s)},
                    {"efficiency", timed(row.efficiency)}});
  }
  value["strategies"] = rows;
  const ScaleRow* best = plan::fastest(scale.rows);
  value["fastest"] = best ? ordered_json(plan::to_string(best->strategy)) : nullptr;
  return value;
}

}  // namespace tare

// Writes what was measured as text and as JSON.
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tare/base/bytes.h"
#include "tare/base/table.h"
#include "tare/bench/bench.h"

namespace tare::bench {
namespace {

using nlohmann::ordered_json;

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

/// Returns "1,234" or, of a small rate, "0.217".
std::string samples_text(double rate) {
  if (rate >= 100) return format_count(static_cast<int64_t>(rate));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", rate);
  return text.data();
}

std::string limit_text(const std::optional<double>& seconds) {
  return seconds ? format_seconds(*seconds) : "";
}

std::string share_text(const std::optional<double>& limit, double seconds) {
  return limit && *limit > 0 && seconds > 0 ? percent(*limit / seconds) : "";
}

std::string parts_table(const StepLimits& limits, double step_s, size_t width) {
  std::vector<TableRow> rows;
  for (const StepPart& part : limits.parts)
    rows.push_back({part.name, format_seconds(part.seconds), percent(part.seconds / step_s),
                    limit_text(part.limit_s), share_text(part.limit_s, part.seconds)});
  return text_table({{"part of a step"},
                     {.head = "time", .figure = true},
                     {.head = "share", .figure = true},
                     {.head = "limit", .figure = true},
                     {.head = "of limit", .figure = true}},
                    rows, width);
}

std::string gaps_table(const StepLimits& limits, double steps, size_t width) {
  std::vector<TableRow> rows;
  for (const Gap& gap : limits.gaps) {
    std::array<char, 32> calls{};
    std::snprintf(calls.data(), calls.size(), "%.4g",
                  static_cast<double>(gap.figures.calls) / steps);
    rows.push_back({gap.figures.name, gap.figures.operands, calls.data(),
                    format_seconds(gap.seconds), limit_text(gap.limit_s)});
  }
  return text_table({{"largest gaps"},
                     {"operands"},
                     {.head = "calls", .figure = true},
                     {.head = "time", .figure = true},
                     {.head = "limit", .figure = true}},
                    rows, width);
}

ordered_json rates_json(const PeakRates& rates) {
  const auto rate = [](double value) { return value > 0 ? ordered_json(value * 1e12) : nullptr; };
  return {{"fp32", rate(rates.fp32)},
          {"tf32", rate(rates.tf32)},
          {"bf16", rate(rates.bf16)},
          {"fp16", rate(rates.fp16)}};
}

ordered_json machine_json(const MachineLimits& machine) {
  const auto known = [](double value) { return value > 0 ? ordered_json(value) : nullptr; };
  ordered_json copies = ordered_json::array();
  for (const CopyRate& one : machine.copies)
    copies.push_back({{"bytes", one.bytes}, {"bytes_per_s", one.bytes_per_s}});
  return {{"device", machine.device.str()},
          {"hardware", machine.name},
          {"threads", machine.threads},
          {"products_per_s", rates_json(machine.products)},
          {"products_of_one_thread_per_s", rates_json(machine.products_of_one)},
          {"copies", copies},
          {"read_bytes_per_s", machine.read_bytes_per_s},
          {"to_device_bytes_per_s", known(machine.to_device_bytes_per_s)},
          {"from_device_bytes_per_s", known(machine.from_device_bytes_per_s)},
          {"disk_write_bytes_per_s", known(machine.disk_write_bytes_per_s)},
          {"disk_read_bytes_per_s", known(machine.disk_read_bytes_per_s)}};
}

ordered_json limit_json(const std::optional<double>& limit) {
  return limit ? ordered_json(*limit) : nullptr;
}

}  // namespace

std::string to_text(const BenchResult& result, size_t width) {
  const StepFigures& step = result.step;
  const StepLimits limits = limits_of(step, result.machine);
  std::string text = to_text(result.machine, width) + "\n";
  text += result.name + (result.phase.empty() ? "" : ", " + result.phase) + " (" + result.model +
          ", " + result.precision + "), batch " + std::to_string(step.batch) + '\n';
  text += "  " + format_seconds(step.step_s) + " a step (quartiles " + format_seconds(step.low_s) +
          " and " + format_seconds(step.high_s) + ", " + std::to_string(step.steps) + " steps), " +
          samples_text(static_cast<double>(step.batch) / step.step_s) + " samples/s\n";
  text += "  its operators need " + format_seconds(limits.limit_s) +
          " at the rates of the machine: " + percent(limits.limit_s / step.step_s) +
          " of the step\n\n";
  text += parts_table(limits, step.step_s, width) + "\n";
  text += gaps_table(limits, static_cast<double>(step.watched_steps), width);
  return text;
}

std::string to_json(const BenchResult& result) {
  const StepFigures& step = result.step;
  const StepLimits limits = limits_of(step, result.machine);
  ordered_json parts = ordered_json::array(), gaps = ordered_json::array();
  for (const StepPart& part : limits.parts)
    parts.push_back(
        {{"name", part.name}, {"seconds", part.seconds}, {"limit_s", limit_json(part.limit_s)}});
  for (const Gap& gap : limits.gaps)
    gaps.push_back({{"operator", gap.figures.name},
                    {"operands", gap.figures.operands},
                    {"calls", static_cast<double>(gap.figures.calls) /
                                  static_cast<double>(step.watched_steps)},
                    {"seconds", gap.seconds},
                    {"limit_s", limit_json(gap.limit_s)}});
  return ordered_json{{"name", result.name},
                      {"phase", result.phase.empty() ? ordered_json() : ordered_json(result.phase)},
                      {"model", result.model},
                      {"precision", result.precision},
                      {"machine", machine_json(result.machine)},
                      {"step",
                       {{"batch", step.batch},
                        {"steps", step.steps},
                        {"seconds", step.step_s},
                        {"low_s", step.low_s},
                        {"high_s", step.high_s},
                        {"feed_s", step.feed_s},
                        {"limit_s", limits.limit_s}}},
                      {"parts", parts},
                      {"gaps", gaps}}
      .dump(2);
}

}  // namespace tare::bench

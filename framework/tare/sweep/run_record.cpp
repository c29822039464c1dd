// Makes the files of a finished run from its logs.
#include "tare/sweep/run_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/time_text.h"
#include "tare/report/plot.h"
#include "tare/sweep/store_json.h"

namespace tare::sweep {
namespace {

using config::Kind;
using config::Node;
using nlohmann::ordered_json;
using std::chrono::microseconds;
using std::chrono::system_clock;

bool is_nan(double value) { return std::isnan(value); }

/// Returns the values; none where there is no value at all.
std::vector<double> measured(std::vector<double> values) {
  if (std::ranges::all_of(values, is_nan)) values.clear();
  return values;
}

MetricHistory losses(const report::RunFiles& run) {
  MetricHistory loss{.name = "loss"};
  for (const auto& phase : run.phases) {
    for (const auto& epoch : phase.epochs) {
      loss.train.push_back(epoch.train_loss);
      loss.valid.push_back(epoch.valid_loss);
    }
  }
  loss.valid = measured(std::move(loss.valid));
  return loss;
}

MetricHistory metric_history(const report::RunFiles& run, const std::string& name) {
  std::vector<double> values;
  for (const auto& phase : run.phases) {
    for (const auto& epoch : phase.epochs) {
      const MetricValue* metric = report::find_metric(epoch.metrics, name);
      values.push_back(metric != nullptr ? metric->value : std::nan(""));
    }
  }
  return {.name = name, .train = {}, .valid = measured(std::move(values))};
}

ordered_json json_of(const Node& node) {
  if (node.kind == Kind::sequence) {
    ordered_json list = ordered_json::array();
    for (const Node& item : node.items) list.push_back(json_of(item));
    return list;
  }
  if (node.kind == Kind::map) {
    ordered_json map = ordered_json::object();
    for (const auto& entry : node.entries) map[entry.key] = json_of(entry.value);
    return map;
  }
  return scalar_json(node);
}

microseconds since_1970(system_clock::time_point time) {
  return std::chrono::floor<microseconds>(time.time_since_epoch());
}

double seconds(microseconds duration) { return static_cast<double>(duration.count()) / 1e6; }

microseconds total_of(const RunRecord& record) {
  return std::max(since_1970(record.end) - since_1970(record.start), microseconds{0});
}

/// Returns {"loss": 0.4, ...}.
ordered_json results_json(const RunRecord& record) {
  ordered_json results = ordered_json::object();
  for (const MetricValue& figure : record.results) results[figure.name] = figure.value;
  return results;
}

/// Adds the last values of all metrics, and the epochs.
void add_last_epoch(const RunRecord& record, ordered_json& data) {
  size_t epochs = 0;
  for (const auto& metric : record.history) {
    if (!metric.train.empty()) data["train_" + metric.name] = metric.train.back();
    if (!metric.valid.empty()) data["val_" + metric.name] = metric.valid.back();
    epochs = std::max({epochs, metric.train.size(), metric.valid.size()});
  }
  data["epochs"] = epochs;
}

ordered_json data_json(const RunRecord& record) {
  const microseconds total = total_of(record);
  ordered_json data{{"start_time", seconds(since_1970(record.start))},
                    {"start_time_string", time_text(record.start)},
                    {"end_time", seconds(since_1970(record.end))},
                    {"end_time_string", time_text(record.end)},
                    {"total_time", seconds(total)},
                    {"total_time_string", duration_text(total)}};
  if (!record.results.empty()) data["results"] = results_json(record);
  add_last_epoch(record, data);
  if (record.peak_bytes > 0) data["peak_bytes"] = record.peak_bytes;
  for (const MetricValue& figure : record.more) data[figure.name] = figure.value;
  return data;
}

constexpr const char *kHistory = "history.json", *kRunData = "run_data.json";

/// Returns the file's content; null where it is not there or no JSON.
ordered_json parsed(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  auto json = ordered_json::parse(io::read_text(file), nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? ordered_json() : json;
}

double number_of(const ordered_json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

}  // namespace

RunRecord record_of(const report::RunFiles& run, config::Node config,
                    system_clock::time_point start, system_clock::time_point end) {
  RunRecord record{.config = std::move(config), .start = start, .end = end};
  record.history.push_back(losses(run));
  for (const auto& name : report::metric_names(run))
    record.history.push_back(metric_history(run, name));
  if (run.figures) record.results = figures_of(run.figures->test);
  return record;
}

std::string history_json(const RunRecord& record) {
  ordered_json history = ordered_json::object();
  for (const auto& metric : record.history) {
    if (!metric.train.empty()) history[metric.name] = metric.train;
    if (!metric.valid.empty()) history["val_" + metric.name] = metric.valid;
  }
  return text_of(history) + '\n';
}

std::string run_data_json(const RunRecord& record) {
  if (record.config.kind != Kind::map)
    throw ConfigError("sweep.run_data_json", "config", "must be a mapping", {},
                      config::describe(record.config));
  ordered_json json = json_of(record.config);
  auto& meta = json["meta"];
  if (!meta.is_object()) meta = ordered_json::object();
  meta["data"] = data_json(record);
  return text_of(json) + '\n';
}

std::optional<double> RunData::find(const std::string& name) const {
  const MetricValue* const found = report::find_metric(values, name);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<RunData> read_run_data(const std::filesystem::path& folder) {
  const ordered_json all = parsed(folder / kRunData);
  const ordered_json::json_pointer place("/meta/data");
  if (!all.is_object() || !all.contains(place) || !all.at(place).is_object()) return std::nullopt;
  RunData data;
  for (const auto& [name, value] : all.at(place).items())
    data.values.push_back({name, number_of(value)});
  return data;
}

std::vector<double> read_history(const std::filesystem::path& folder, const std::string& name) {
  const ordered_json history = parsed(folder / kHistory);
  std::vector<double> values;
  if (history.is_object() && history.contains(name) && history.at(name).is_array())
    for (const auto& value : history.at(name)) values.push_back(number_of(value));
  return values;
}

std::string config_json(const Node& config) { return text_of(json_of(config)) + '\n'; }

std::string duration_text(microseconds duration) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(duration).count();
  std::string text;
  const auto add = [&](auto count, char unit) {
    if (text.empty() && count == 0 && unit != 's') return;
    text += (text.empty() ? "" : " ") + std::to_string(count) + unit;
  };
  add(whole / 86400, 'd');
  add(whole / 3600 % 24, 'h');
  add(whole / 60 % 60, 'm');
  add(whole % 60, 's');
  return text;
}

void write_plot(const std::filesystem::path& folder, const MetricHistory& metric, io::Flush flush) {
  if (std::max(metric.train.size(), metric.valid.size()) < 2) return;
  const report::MetricPlot plot{metric.name, metric.train, metric.valid};
  const std::string name = report::plot_file_name(metric.name);
  io::write_atomically(folder / (name + ".svg"), report::plot_svg(plot), flush);
  io::write_atomically(folder / (name + ".png"), report::plot_png(plot), flush);
}

void write_run_files(const std::filesystem::path& folder, const RunRecord& record) {
  const std::string run_data = run_data_json(record);
  io::write_atomically(folder / kHistory, history_json(record), io::Flush::no);
  for (const auto& metric : record.history) write_plot(folder, metric, io::Flush::no);
  io::write_atomically(folder / kRunData, run_data, io::Flush::no);
}

}  // namespace tare::sweep

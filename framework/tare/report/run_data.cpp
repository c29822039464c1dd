// Writes what the folder of a run holds as JSON and as tables.
#include "tare/report/run_data.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tare/base/csv.h"
#include "tare/config/scalar.h"
#include "tare/report/json_fields.h"
#include "tare/report/read_run.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

RunFiles read(const fs::path& folder, const fs::path& trace) {
  return read_run(folder, trace.empty() ? folder : trace);
}

// ---- JSON

ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : nullptr; }

ordered_json json_of_steps(const PhaseFiles& phase) {
  auto steps = ordered_json::array();
  for (const StepRow& row : phase.steps)
    steps.push_back({{"step", row.step}, {"loss", number(row.loss)}, {"lr", number(row.lr)}});
  return steps;
}

ordered_json json_of_rates(const PhaseFiles& phase) {
  auto rates = ordered_json::array();
  for (const RateRow& row : phase.rates)
    rates.push_back(
        {{"lr", number(row.lr)}, {"loss", number(row.loss)}, {"smoothed", number(row.smoothed)}});
  return rates;
}

ordered_json json_of_phase(const PhaseFiles& phase) {
  auto epochs = json_of(phase.epochs);
  for (auto& epoch : epochs) epoch.erase("samples");  // which the CSV file does not have
  return {{"name", phase.name},
          {"epochs", std::move(epochs)},
          {"steps", json_of_steps(phase)},
          {"rates", json_of_rates(phase)}};
}

ordered_json json_of_memory(const Timeline& memory) {
  auto groups = ordered_json::object(), at_peak = groups;
  for (size_t i = 0; i < memory.groups.size(); ++i) {
    groups[memory.groups[i]] = memory.bytes[i];
    at_peak[memory.groups[i]] = memory.at_peak[i];
  }
  auto left = ordered_json::array();
  for (const AliveGroup& one : memory.left)
    left.push_back(
        {{"group", one.group}, {"phase", one.phase}, {"blocks", one.blocks}, {"bytes", one.bytes}});
  return {{"events", memory.events},
          {"time_s", memory.stretch_s},
          {"bytes", groups},
          {"lowest_bytes", memory.lowest_bytes},
          {"peak_bytes", memory.peak_bytes},
          {"peak_s", memory.peak_s},
          {"peak_phase", memory.peak_phase},
          {"at_peak", at_peak},
          {"left", left}};
}

// ---- tables

std::string epochs_of(const RunFiles& run) {
  const auto metrics = metric_names(run);
  std::string rows;
  for (const PhaseFiles& phase : run.phases)
    for (const EpochRow& row : phase.epochs) {
      rows += csv_field(phase.name) + ',' + std::to_string(row.epoch) + ',' +
              csv_number(row.train_loss) + ',' + csv_number(row.valid_loss);
      for (const auto& name : metrics) {
        const MetricValue* metric = find_metric(row.metrics, name);
        rows += ',' + (metric ? csv_number(metric->value) : "");
      }
      rows += ',' + csv_number(row.seconds) + '\n';
    }
  if (rows.empty()) return {};
  std::string head = "phase,epoch,train_loss,valid_loss";
  for (const auto& name : metrics) head += ',' + csv_field(name);
  return head + ",seconds\n" + rows;
}

/// Returns a table of `rows(phase)`, each row behind the name of its phase; empty: there is none.
template <class Rows>
std::string by_phase(const RunFiles& run, const std::string& head, const Rows& rows) {
  std::string text;
  for (const PhaseFiles& phase : run.phases)
    for (const auto& row : rows(phase)) text += csv_field(phase.name) + ',' + csv_line(row);
  return text.empty() ? text : "phase," + head + text;
}

std::string phases_of(const RunFiles& run) {
  std::string rows;
  for (const PhaseFiles& phase : run.phases) {
    if (!phase.figures) continue;
    const PhaseReport& f = *phase.figures;
    rows += csv_field(phase.name) + ',' + csv_number(f.seconds) + ',' + csv_number(f.samples_per_s);
    for (const std::optional<int64_t>& bytes :
         {std::optional(f.consumed_bytes), std::optional(f.data_bytes), std::optional(f.peak_bytes),
          f.planned_peak_bytes, std::optional(f.reclaimed_bytes), std::optional(f.residual_bytes)})
      rows += ',' + (bytes ? std::to_string(*bytes) : "");
    rows += '\n';
  }
  return rows.empty() ? rows
                      : "phase,seconds,samples_per_s,consumed_bytes,data_bytes,peak_bytes,"
                        "planned_peak_bytes,reclaimed_bytes,residual_bytes\n" +
                            rows;
}

std::string memory_of(const RunFiles& run) {
  if (!run.memory || run.memory->stretch_s.empty()) return {};
  const Timeline& memory = *run.memory;
  std::string text = "time_s,lowest_bytes";
  for (const auto& group : memory.groups) text += ',' + csv_field(group);
  text += '\n';
  for (size_t i = 0; i < memory.stretch_s.size(); ++i) {
    text += csv_number(memory.stretch_s[i]) + ',' + csv_number(memory.lowest_bytes[i]);
    for (const auto& group : memory.bytes) text += ',' + csv_number(group[i]);
    text += '\n';
  }
  return text;
}

std::string predictions_of(const RunFiles& run) {
  if (!run.figures || !run.figures->classification) return {};
  const Classification& all = *run.figures->classification;
  if (all.counts.empty()) return {};
  std::string text = "label,predicted,samples\n";
  for (size_t label = 0; label < all.counts.size(); ++label)
    for (size_t predicted = 0; predicted < all.counts[label].size(); ++predicted)
      text += csv_field(all.labels[label]) + ',' + csv_field(all.labels[predicted]) + ',' +
              std::to_string(all.counts[label][predicted]) + '\n';
  return text;
}

std::string label_counts_of(const RunFiles& run) {
  if (!run.figures || !run.figures->classification) return {};
  const Classification& all = *run.figures->classification;
  if (all.label_counts.empty()) return {};
  std::string text = "label,true_positives,false_positives,false_negatives,true_negatives\n";
  for (size_t label = 0; label < all.labels.size(); ++label) {
    const LabelCounts& counts = all.label_counts[label];
    text += csv_field(all.labels[label]) + ',' + std::to_string(counts.true_positives) + ',' +
            std::to_string(counts.false_positives) + ',' + std::to_string(counts.false_negatives) +
            ',' + std::to_string(counts.true_negatives) + '\n';
  }
  return text;
}

bool has_texts(const Classification& all) {
  return std::ranges::any_of(all.worst, [](const WorstSample& one) { return !one.text.empty(); });
}

/// Returns the header of the worst samples. A label that is called as another column, such as
/// `loss`, is `label.loss` there.
std::string worst_header(const Classification& all) {
  std::vector<std::string> columns{"index", "name", "label", "predicted", "probability", "loss"};
  if (!all.label_counts.empty()) {
    for (std::string label : all.labels) {
      while (std::ranges::find(columns, label) != columns.end()) label.insert(0, "label.");
      columns.push_back(label);
    }
  }
  if (has_texts(all)) columns.emplace_back("text");
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "" : ",") + csv_field(column);
  return text + '\n';
}

std::string worst_samples_of(const RunFiles& run) {
  if (!run.figures || !run.figures->classification || run.figures->classification->worst.empty())
    return {};
  const Classification& all = *run.figures->classification;
  std::string text = worst_header(all);
  for (const WorstSample& sample : all.worst) {
    text += std::to_string(sample.index) + ',' + csv_field(sample.name) + ',' +
            csv_field(sample.label) + ',' + csv_field(sample.predicted) + ',' +
            csv_number(sample.probability) + ',' + csv_number(sample.loss);
    if (!all.label_counts.empty())
      for (const double probability : sample.probabilities) text += ',' + csv_number(probability);
    if (has_texts(all)) text += ',' + csv_field(sample.text);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string csv_number(double value) {
  return std::isnan(value) ? std::string() : config::number_text(value);
}

std::string run_json(const fs::path& folder, const fs::path& trace) {
  const RunFiles run = read(folder, trace);
  auto phases = ordered_json::array();
  for (const PhaseFiles& phase : run.phases) phases.push_back(json_of_phase(phase));
  return dump_json({{"name", run.name},
                    {"recipe", run.recipe},
                    {"phases", phases},
                    {"memory", run.memory ? json_of_memory(*run.memory) : ordered_json()},
                    {"worst_rows", json_of(run.worst_rows)},
                    {"report", json_of(run.figures)},
                    {"failure", json_of(run.failure)},
                    {"missing", run.missing}},
                   2);
}

std::vector<DataFile> run_tables(const fs::path& folder, const fs::path& trace) {
  const RunFiles run = read(folder, trace);
  std::vector<DataFile> files{
      {"epochs.csv", epochs_of(run)},
      {"steps.csv",
       by_phase(run, kStepsHeader, [](const PhaseFiles& phase) { return phase.steps; })},
      {"rates.csv",
       by_phase(run, kRatesHeader, [](const PhaseFiles& phase) { return phase.rates; })},
      {"phases.csv", phases_of(run)},
      {"memory.csv", memory_of(run)},
      {"predictions.csv", predictions_of(run)},
      {"labels.csv", label_counts_of(run)},
      {"worst_samples.csv", worst_samples_of(run)},
      {kWorstRowsFile, run.worst_rows.empty() ? "" : csv_of(run.worst_rows)}};
  std::erase_if(files, [](const DataFile& file) { return file.text.empty(); });
  return files;
}

}  // namespace tare::report

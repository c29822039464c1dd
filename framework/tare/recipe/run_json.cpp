#include <cmath>
#include <nlohmann/json.hpp>

#include "tare/recipe/run.h"

namespace tare {
namespace {

using nlohmann::ordered_json;

// JSON has no NaN: null stands for it.
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json metrics_json(const std::vector<MetricValue>& metrics) {
  ordered_json object = ordered_json::object();
  for (const auto& m : metrics) object[m.name] = number(m.value);
  return object;
}

ordered_json phase_json(const PhaseReport& phase) {
  ordered_json epochs = ordered_json::array();
  for (const auto& row : phase.epochs) {
    epochs.push_back({{"train_loss", number(row.train_loss)},
                      {"valid_loss", number(row.valid_loss)},
                      {"metrics", metrics_json(row.metrics)},
                      {"seconds", row.seconds}});
  }
  return {{"name", phase.name},
          {"epochs", epochs},
          {"seconds", phase.seconds},
          {"samples_per_s", phase.samples_per_s},
          {"consumed_bytes", phase.consumed_bytes},
          {"peak_bytes", phase.peak_bytes},
          {"reclaimed_bytes", phase.reclaimed_bytes},
          {"residual_bytes", phase.residual_bytes}};
}

}  // namespace

std::string to_json(const RunReport& report) {
  ordered_json phases = ordered_json::array();
  for (const auto& phase : report.phases) phases.push_back(phase_json(phase));
  ordered_json value{
      {"name", report.name}, {"data", report.data}, {"device", report.device}, {"phases", phases}};
  if (report.test)
    value["test"] = {{"loss", number(report.test->loss)},
                     {"metrics", metrics_json(report.test->metrics)}};
  if (!report.export_path.empty()) {
    value["export"] = {{"path", report.export_path.string()}, {"bytes", report.export_bytes}};
  }
  value["residual_bytes"] = report.residual_bytes;
  value["process_bytes"] = report.process_bytes;
  value["seconds"] = report.seconds;
  return value.dump(2);
}

}  // namespace tare

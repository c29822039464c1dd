// Writes the parts of a run's report as JSON, and reads them back.
#include "tare/recipe/run_json.h"

#include <cmath>
#include <limits>

#include "tare/base/base64.h"

namespace tare {
namespace {

using nlohmann::ordered_json;

// JSON has no NaN: null stands for it.
ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

double number_from(const ordered_json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

ordered_json metrics_to_json(const std::vector<MetricValue>& metrics) {
  ordered_json object = ordered_json::object();
  for (const auto& m : metrics) object[m.name] = number(m.value);
  return object;
}

ordered_json evaluation_to_json(const Evaluation& evaluation) {
  return {{"loss", number(evaluation.loss)}, {"metrics", metrics_to_json(evaluation.metrics)}};
}

ordered_json row_to_json(const EpochRow& row) {
  return {{"epoch", row.epoch},
          {"train_loss", number(row.train_loss)},
          {"valid_loss", number(row.valid_loss)},
          {"metrics", metrics_to_json(row.metrics)},
          {"seconds", row.seconds},
          {"samples", row.samples}};
}

EpochRow row_from_json(const ordered_json& value) {
  EpochRow row{.epoch = value.at("epoch").get<int64_t>(),
               .train_loss = number_from(value.at("train_loss")),
               .valid_loss = number_from(value.at("valid_loss")),
               .metrics = {},
               .seconds = value.at("seconds").get<double>(),
               .samples = value.at("samples").get<int64_t>()};
  for (const auto& [name, metric] : value.at("metrics").items())
    row.metrics.push_back({name, number_from(metric)});
  return row;
}

ordered_json leaks_to_json(const std::vector<PhaseLeak>& leaks) {
  ordered_json list = ordered_json::array();
  for (const auto& leak : leaks)
    list.push_back({{"phase", leak.phase},
                    {"site", leak.site},
                    {"blocks", leak.blocks},
                    {"bytes", leak.bytes},
                    {"youngest_steps", leak.youngest_steps},
                    {"oldest_steps", leak.oldest_steps}});
  return list;
}

PhaseLeak leak_from_json(const ordered_json& value) {
  return {.phase = value.at("phase").get<std::string>(),
          .site = value.at("site").get<std::string>(),
          .blocks = value.at("blocks").get<int64_t>(),
          .bytes = value.at("bytes").get<int64_t>(),
          .youngest_steps = value.at("youngest_steps").get<int64_t>(),
          .oldest_steps = value.at("oldest_steps").get<int64_t>()};
}

ordered_json machine_to_json(const Machine& machine) {
  return {{"tare", machine.tare},
          {"libtorch", machine.libtorch},
          {"processor", machine.processor},
          {"threads", machine.threads},
          {"memory_bytes", machine.memory_bytes},
          {"device", machine.device}};
}

ordered_json classification_to_json(const Classification& classification) {
  ordered_json worst = ordered_json::array();
  for (const auto& sample : classification.worst) {
    worst.push_back({{"index", sample.index},
                     {"label", sample.label},
                     {"predicted", sample.predicted},
                     {"probability", number(sample.probability)},
                     {"loss", number(sample.loss)}});
    if (!sample.name.empty()) worst.back()["name"] = sample.name;
    if (!sample.picture.empty()) worst.back()["picture"] = base64(sample.picture);
  }
  return {{"labels", classification.labels}, {"counts", classification.counts}, {"worst", worst}};
}

}  // namespace

ordered_json phase_to_json(const PhaseReport& phase) {
  ordered_json epochs = ordered_json::array();
  for (const auto& row : phase.epochs) epochs.push_back(row_to_json(row));
  return {{"name", phase.name},
          {"epochs", epochs},
          {"seconds", phase.seconds},
          {"samples_per_s", phase.samples_per_s},
          {"consumed_bytes", phase.consumed_bytes},
          {"data_bytes", phase.data_bytes},
          {"peak_bytes", phase.peak_bytes},
          {"micro_batch", phase.micro_batch},
          {"overflows", phase.overflows},
          {"restored_epoch", phase.restored_epoch},
          {"reclaimed_bytes", phase.reclaimed_bytes},
          {"residual_bytes", phase.residual_bytes},
          {"fragmented_bytes", phase.fragmented_bytes},
          {"allocator_retries", phase.allocator_retries},
          {"leaks", leaks_to_json(phase.leaks)},
          {"planned_peak_bytes",
           phase.planned_peak_bytes ? ordered_json(*phase.planned_peak_bytes) : ordered_json()}};
}

PhaseReport phase_from_json(const ordered_json& value) {
  PhaseReport phase{.name = value.at("name").get<std::string>(),
                    .epochs = {},
                    .seconds = value.at("seconds").get<double>(),
                    .samples_per_s = value.at("samples_per_s").get<double>(),
                    .consumed_bytes = value.at("consumed_bytes").get<int64_t>(),
                    .peak_bytes = value.at("peak_bytes").get<int64_t>(),
                    .reclaimed_bytes = value.at("reclaimed_bytes").get<int64_t>(),
                    .residual_bytes = value.at("residual_bytes").get<int64_t>()};
  phase.data_bytes = value.value("data_bytes", int64_t{0});
  phase.micro_batch = value.value("micro_batch", int64_t{0});
  phase.overflows = value.value("overflows", int64_t{0});
  phase.restored_epoch = value.value("restored_epoch", int64_t{0});
  phase.fragmented_bytes = value.value("fragmented_bytes", int64_t{0});
  phase.allocator_retries = value.value("allocator_retries", int64_t{0});
  if (const auto& planned = value.value("planned_peak_bytes", ordered_json()); planned.is_number())
    phase.planned_peak_bytes = planned.get<int64_t>();
  for (const auto& leak : value.value("leaks", ordered_json::array()))
    phase.leaks.push_back(leak_from_json(leak));
  for (const auto& row : value.at("epochs")) phase.epochs.push_back(row_from_json(row));
  return phase;
}

std::string to_json(const RunReport& report) {
  ordered_json phases = ordered_json::array();
  for (const auto& phase : report.phases) phases.push_back(phase_to_json(phase));
  ordered_json value{
      {"name", report.name},
      {"data", report.data},
      {"device", report.device},
      {"reason", report.reason == StopReason::interrupted ? "interrupted" : "finished"},
      {"phases", phases}};
  value["machine"] = machine_to_json(report.machine);
  if (!report.resumed_from.empty()) {
    value["resumed_from"] = report.resumed_from;
    value["resumes"] = report.resumes;
  }
  if (report.generated) value["generated"] = true;
  if (report.test) value["test"] = evaluation_to_json(*report.test);
  if (report.valid) value["valid"] = evaluation_to_json(*report.valid);
  if (report.classification)
    value["classification"] = classification_to_json(*report.classification);
  if (!report.export_path.empty()) {
    value["export"] = {{"path", report.export_path.string()}, {"bytes", report.export_bytes}};
  }
  value["residual_bytes"] = report.residual_bytes;
  value["process_bytes"] = report.process_bytes;
  value["seconds"] = report.seconds;
  value["tracker"] = {{"allocations", report.tracker.records},
                      {"ns_each", report.tracker.ns_each},
                      {"share", report.tracker.share()}};
  // A label may hold any bytes.
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace tare

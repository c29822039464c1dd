// Writes steps and epochs as lines of JSON.
#include "tare/callback/jsonl_log.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/callback/growing_file.h"
#include "tare/callback/registry.h"
#include "tare/callback/step_samples.h"

namespace tare {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity: null stands for them.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Names of metrics may hold any byte.
std::string line_of(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string line_of(const StepSample& sample) {
  return line_of(Json{{"type", "step"},
                      {"step", sample.step},
                      {"epoch", sample.epoch},
                      {"loss", number(sample.loss)},
                      {"lr", number(sample.lr)},
                      {"time", sample.time}});
}

std::string line_of(const char* type, const FitContext& context, int64_t step) {
  const EpochRow& row = context.row;
  Json metrics = Json::object();
  for (const MetricValue& metric : row.metrics) metrics[metric.name] = number(metric.value);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  Json line{{"type", type},
            {"step", step},
            {"epoch", row.epoch},
            {"train_loss", number(row.train_loss)},
            {"valid_loss", number(row.valid_loss)},
            {"metrics", std::move(metrics)},
            {"seconds", row.seconds},
            {"samples", row.samples},
            {"time", now.count()}};
  for (const EpochText& text : context.texts) line["texts"][text.name] = text.text;
  return line_of(line);
}

}  // namespace

struct JsonlLog::Parts {
  explicit Parts(int64_t every) : samples(every) {}

  void write_steps(io::Flush flush) {
    for (const StepSample& sample : samples.take()) file.add(line_of(sample));
    file.write(flush);
  }

  StepSamples samples;
  GrowingFile file;
};

JsonlLog::JsonlLog(JsonlLogOptions options)
    : options_(std::move(options)), parts_(std::make_unique<Parts>(options_.every)) {
  config::validate(options_, "jsonl_log");
}

JsonlLog::~JsonlLog() = default;

CallbackFacts JsonlLog::facts() const {
  return {.files = {options_.file.string()},
          .logs = true,
          .only_writes = true,
          .bytes_on_card = StepSamples::kBytesOnCard};
}

Action JsonlLog::before_fit(FitContext& context) {
  parts_->samples.begin(context);
  parts_->file.open(context.learner.folder() / options_.file, "");
  return Action::proceed;
}

Action JsonlLog::after_step(FitContext& context) {
  if (parts_->samples.add(context)) parts_->write_steps(io::Flush::no);
  return Action::proceed;
}

Action JsonlLog::after_validate(FitContext& context) {
  if (!context.inside_epoch) return Action::proceed;
  parts_->write_steps(io::Flush::no);
  parts_->file.add(line_of("validation", context, parts_->samples.last_step()));
  parts_->file.write(io::Flush::no);
  return Action::proceed;
}

Action JsonlLog::after_epoch(FitContext& context) {
  parts_->write_steps(io::Flush::no);
  parts_->file.add(line_of("epoch", context, parts_->samples.last_step()));
  parts_->file.write(io::Flush::yes);
  return Action::proceed;
}

Action JsonlLog::after_fit(FitContext&) {
  parts_->write_steps(io::Flush::yes);
  parts_->samples.release();
  return Action::proceed;
}

void JsonlLog::purge() { parts_->samples.release(); }

void JsonlLog::account(Ledger& ledger) const { parts_->samples.account(ledger, "jsonl_log"); }

std::string JsonlLog::state() const {
  parts_->write_steps(io::Flush::yes);
  return nlohmann::json{{"bytes", parts_->file.bytes()}, {"steps", parts_->samples.state()}}.dump();
}

void JsonlLog::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("bytes") || !value["bytes"].is_number_integer() ||
      !value.contains("steps") || !parts_->samples.load(value["steps"]))
    throw FormatError("jsonl_log.load_state", name(), "bytes, steps",
                      "are not in the checkpoint's state");
  parts_->file.continue_at(value["bytes"].get<int64_t>());
}

namespace callbacks {
void add_jsonl_log(Registry& all) {
  all.add<JsonlLogOptions>("jsonl_log", "writes steps and epochs as lines of JSON",
                           [](const JsonlLogOptions& o) { return std::make_shared<JsonlLog>(o); });
}
}  // namespace callbacks

}  // namespace tare

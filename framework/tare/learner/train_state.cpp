#include "tare/learner/train_state.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/config/field.h"

namespace tare {
namespace {

using nlohmann::json;

// JSON has no NaN: null stands for it.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json rows_to_json(const std::vector<EpochRow>& rows) {
  json list = json::array();
  for (const auto& row : rows) {
    json metrics = json::array();
    for (const auto& m : row.metrics)
      metrics.push_back({{"name", m.name}, {"value", number(m.value)}});
    list.push_back({{"epoch", row.epoch},
                    {"train_loss", number(row.train_loss)},
                    {"valid_loss", number(row.valid_loss)},
                    {"metrics", metrics},
                    {"seconds", row.seconds},
                    {"samples", row.samples}});
  }
  return list;
}

// Fields of one JSON object, each checked as it is taken.
class Reader {
 public:
  Reader(const json& object, std::string part, const std::filesystem::path& path)
      : object_(object), part_(std::move(part)), path_(path) {
    if (!object.is_object()) fail("", "is no object");
  }

  [[nodiscard]] int64_t count(const char* key) const {
    const json& value = at(key);
    if (!value.is_number_integer() || value.get<int64_t>() < 0) fail(key, "is no count");
    return value.get<int64_t>();
  }
  [[nodiscard]] double real(const char* key) const {
    const json& value = at(key);
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) fail(key, "is no number");
    return value.get<double>();
  }
  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) fail(key, "is no text");
    return at(key).get<std::string>();
  }
  [[nodiscard]] std::vector<Reader> list(const char* key) const {
    if (!at(key).is_array()) fail(key, "is no list");
    std::vector<Reader> all;
    for (const auto& item : at(key)) all.emplace_back(item, part_ + "." + key, path_);
    return all;
  }
  [[nodiscard]] std::vector<double> reals(const char* key) const {
    std::vector<double> all;
    if (!at(key).is_array()) fail(key, "is no list");
    for (const auto& item : at(key)) {
      if (!item.is_number()) fail(key, "holds something that is no number");
      all.push_back(item.get<double>());
    }
    return all;
  }
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }
  [[nodiscard]] Reader object(const char* key) const { return {at(key), part_ + "." + key, path_}; }
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    throw FormatError("learner.load", path_.string(), key.empty() ? part_ : part_ + "." + key,
                      problem);
  }

 private:
  [[nodiscard]] const json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(key, "is missing");
    return *found;
  }

  const json& object_;
  std::string part_;
  const std::filesystem::path& path_;
};

std::vector<EpochRow> rows_from(const Reader& reader, const char* key) {
  std::vector<EpochRow> rows;
  for (const auto& item : reader.list(key)) {
    EpochRow row{.epoch = item.count("epoch"),
                 .train_loss = item.real("train_loss"),
                 .valid_loss = item.real("valid_loss"),
                 .metrics = {},
                 .seconds = item.real("seconds"),
                 .samples = item.count("samples")};
    for (const auto& m : item.list("metrics"))
      row.metrics.push_back({m.text("name"), m.real("value")});
    rows.push_back(std::move(row));
  }
  return rows;
}

FitPlan plan_from(const Reader& reader) {
  FitPlan plan{.epochs = reader.count("epochs"),
               .rates = reader.reals("rates"),
               .schedule = {},
               .epoch = reader.count("epoch"),
               .batch = reader.count("batch"),
               .step = reader.count("step"),
               .loss_sum = reader.real("loss_sum"),
               .loss_samples = reader.count("loss_samples"),
               .rows = rows_from(reader, "rows")};
  if (plan.finished()) reader.fail("epoch", "lies behind the last epoch");
  try {
    plan.schedule = config::read<Schedule>(config::parse_text(reader.text("schedule"), "schedule"));
    plan.schedule.check();
  } catch (const ConfigError& error) {
    reader.fail("schedule", error.what());
  }
  return plan;
}

GradScaler scaler_from(const Reader& reader) {
  const double scale = reader.real("scale");
  if (!(scale > 0) || !std::isfinite(scale)) reader.fail("scale", "is no positive number");
  GradScaler scaler;
  scaler.restore(scale, reader.count("finite_steps"));
  return scaler;
}

}  // namespace

void check_callbacks(const std::vector<CallbackPtr>& callbacks, const std::string& call) {
  for (const auto& callback : callbacks)
    if (!callback) throw ConfigError(call, "a callback is null");
}

std::vector<CallbackState> states_of(const std::vector<CallbackPtr>& callbacks) {
  std::vector<CallbackState> states;
  for (const auto& callback : callbacks) {
    if (auto state = callback->state(); !state.empty())
      states.push_back({callback->name(), std::move(state)});
  }
  return states;
}

void restore(const std::vector<CallbackState>& states, const std::vector<CallbackPtr>& callbacks) {
  for (const auto& saved : states) {
    for (const auto& callback : callbacks) {
      if (callback->name() == saved.name) callback->load_state(saved.state);
    }
  }
}

std::string to_json(const TrainState& state) {
  json value{{"epochs_done", state.epochs_done},
             {"saves", state.saves},
             {"history", rows_to_json(state.history)},
             {"micro_batches", json::array()},
             {"callbacks", json::array()}};
  for (const auto& [key, size] : state.micro_batches)
    value["micro_batches"].push_back({{"key", key}, {"size", size}});
  for (const auto& [name, text] : state.callbacks)
    value["callbacks"].push_back({{"name", name}, {"state", text}});
  if (state.scaler)
    value["scaler"] = {{"scale", state.scaler->scale()},
                       {"finite_steps", state.scaler->finite_steps()}};
  if (state.plan) {
    const FitPlan& plan = *state.plan;
    value["fit"] = {{"epochs", plan.epochs},
                    {"rates", plan.rates},
                    {"schedule", config::to_yaml(config::to_node(plan.schedule))},
                    {"epoch", plan.epoch},
                    {"batch", plan.batch},
                    {"step", plan.step},
                    {"loss_sum", number(plan.loss_sum)},
                    {"loss_samples", plan.loss_samples},
                    {"rows", rows_to_json(plan.rows)}};
  }
  return value.dump();
}

TrainState train_state_from_json(const std::string& text, const std::filesystem::path& path) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Reader reader(value, "state", path);
  TrainState state;
  state.epochs_done = reader.count("epochs_done");
  state.saves = reader.count("saves");
  state.history = rows_from(reader, "history");
  if (reader.has("micro_batches"))  // not in older checkpoints
    for (const auto& item : reader.list("micro_batches")) {
      state.micro_batches.push_back({item.text("key"), item.count("size")});
      if (state.micro_batches.back().size == 0) item.fail("size", "is no size");
    }
  for (const auto& item : reader.list("callbacks"))
    state.callbacks.push_back({item.text("name"), item.text("state")});
  if (reader.has("scaler")) state.scaler = scaler_from(reader.object("scaler"));
  if (reader.has("fit")) state.plan = plan_from(reader.object("fit"));
  return state;
}

}  // namespace tare

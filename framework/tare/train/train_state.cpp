// Writes the progress of training to a checkpoint, and checks it on the way back.
#include "tare/train/train_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tare/base/error.h"
#include "tare/config/field.h"
#include "tare/train/row_table.h"
#include "tare/train/stored_search.h"

namespace tare {
namespace {

using nlohmann::json;

// JSON has no NaN: null stands for it.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

constexpr const char* kHistory = "state/history";
constexpr const char* kFitRows = "state/fit/rows";
constexpr const char* kValidations = "state/fit/validations";
constexpr const char* kRestored = "state/restored_validation";
constexpr const char* kSearch = "state/fit/lr_find";
constexpr const char* kData = "state/data";

std::string callback_tensor(size_t i) { return "state/callbacks/" + std::to_string(i); }

/// Returns the tensors whose names begin with `prefix`, without it.
std::vector<NamedTensor> below(const std::string& prefix, const std::vector<NamedTensor>& all) {
  std::vector<NamedTensor> found;
  for (const NamedTensor& one : all)
    if (one.name.starts_with(prefix)) found.push_back({one.name.substr(prefix.size()), one.tensor});
  return found;
}

// The names in JSON, the values as a tensor.
json store_rows(const std::vector<EpochRow>& rows, const char* name,
                std::vector<NamedTensor>& tensors) {
  RowTable table = table_of(rows);
  if (table.values.defined()) tensors.push_back({name, std::move(table.values)});
  return {{"columns", table.columns}};
}

/// The table of the epochs has a column that validations do not need, for the step.
json store_validations(const std::vector<ValidationRow>& validations, const char* name,
                       std::vector<NamedTensor>& tensors) {
  std::vector<EpochRow> rows;
  for (const ValidationRow& validation : validations) {
    rows.push_back(row_of(validation));
    rows.back().samples = validation.step;
  }
  return store_rows(rows, name, tensors);
}

// Fields of one JSON object, each checked as it is taken.
class Reader {
 public:
  Reader(const json& object, std::string part, const std::filesystem::path& path)
      : object_(object), part_(std::move(part)), path_(path) {
    if (!object.is_object()) fail("", "is not an object");
  }

  [[nodiscard]] int64_t count(const char* key) const {
    const json& value = at(key);
    if (!value.is_number_integer() || value.get<int64_t>() < 0) fail(key, "is not a count");
    return value.get<int64_t>();
  }
  /// Reads a finite number >= 0.
  [[nodiscard]] double sum(const char* key) const {
    const double value = real(key);
    if (!(value >= 0) || !std::isfinite(value)) fail(key, "is not a finite number >= 0");
    return value;
  }
  [[nodiscard]] double real(const char* key) const {
    const json& value = at(key);
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) fail(key, "is not a number");
    return value.get<double>();
  }
  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) fail(key, "is not a text");
    return at(key).get<std::string>();
  }
  [[nodiscard]] std::vector<Reader> list(const char* key) const {
    if (!at(key).is_array()) fail(key, "is not a list");
    std::vector<Reader> all;
    for (const auto& item : at(key)) all.emplace_back(item, part_ + "." + key, path_);
    return all;
  }
  [[nodiscard]] std::vector<double> reals(const char* key) const {
    std::vector<double> all;
    if (!at(key).is_array()) fail(key, "is not a list");
    for (const auto& item : at(key)) {
      if (!item.is_number()) fail(key, "holds something that is not a number");
      all.push_back(item.get<double>());
    }
    return all;
  }
  /// Reads a list of lists of texts.
  [[nodiscard]] std::vector<std::vector<std::string>> text_lists(const char* key) const {
    std::vector<std::vector<std::string>> all;
    if (!at(key).is_array()) fail(key, "is not a list");
    for (const auto& item : at(key)) all.push_back(texts_of(item, key));
    return all;
  }
  [[nodiscard]] std::vector<std::string> texts(const char* key) const {
    return texts_of(at(key), key);
  }
  [[nodiscard]] bool flag(const char* key) const {
    if (!at(key).is_boolean()) fail(key, "is neither true nor false");
    return at(key).get<bool>();
  }
  [[nodiscard]] uint64_t seed(const char* key) const {
    if (!at(key).is_number_unsigned()) fail(key, "is not a seed");
    return at(key).get<uint64_t>();
  }
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }
  [[nodiscard]] bool is_list(const char* key) const { return has(key) && at(key).is_array(); }
  [[nodiscard]] Reader object(const char* key) const { return {at(key), part_ + "." + key, path_}; }
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const {
    throw FormatError("learner.load", path_.string(), key.empty() ? part_ : part_ + "." + key,
                      problem);
  }

 private:
  [[nodiscard]] std::vector<std::string> texts_of(const json& list, const char* key) const {
    std::vector<std::string> all;
    if (!list.is_array()) fail(key, "holds something that is not a list");
    for (const auto& item : list) {
      if (!item.is_string()) fail(key, "holds something that is not a text");
      all.push_back(item.get<std::string>());
    }
    return all;
  }
  [[nodiscard]] const json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(key, "is missing");
    return *found;
  }

  const json& object_;
  std::string part_;
  const std::filesystem::path& path_;
};

/// Reads the rows as older versions wrote them: every value in the manifest.
std::vector<EpochRow> rows_in_json(const Reader& reader, const char* key) {
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

// A JSON object with the tensors that belong to it.
struct Stored {
  const Reader& reader;
  const std::vector<NamedTensor>& tensors;

  /// Returns the tensor with a name; undefined if there is none.
  [[nodiscard]] at::Tensor tensor(const std::string& name) const {
    const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
    return found == tensors.end() ? at::Tensor() : found->tensor;
  }
};

std::vector<EpochRow> rows_from(const Stored& source, const char* key, const char* tensor) {
  const Reader& reader = source.reader;
  if (reader.is_list(key)) return rows_in_json(reader, key);
  try {
    return rows_of({reader.object(key).text_lists("columns"), source.tensor(tensor)});
  } catch (const ConfigError& error) {
    reader.fail(key, error.problem());
  }
}

std::vector<ValidationRow> validations_from(const Stored& source, const char* key,
                                            const char* tensor) {
  std::vector<ValidationRow> validations;
  for (EpochRow& row : rows_from(source, key, tensor))
    validations.push_back({.step = row.samples,
                           .epoch = row.epoch,
                           .train_loss = row.train_loss,
                           .valid_loss = row.valid_loss,
                           .metrics = std::move(row.metrics)});
  return validations;
}

std::vector<CallbackState> callbacks_from(const Stored& source) {
  std::vector<CallbackState> states;
  for (const auto& item : source.reader.list("callbacks")) {
    if (item.has("state")) {  // an older checkpoint
      states.push_back({.name = item.text("name"), .state = item.text("state")});
      continue;
    }
    const std::string place = callback_tensor(states.size());
    try {
      states.push_back({.name = item.text("name"),
                        .state = text_of(source.tensor(place)),
                        .tensors = below(place + '/', source.tensors),
                        .mapped = true});
    } catch (const ConfigError& error) {
      item.fail("state", error.problem());
    }
  }
  return states;
}

SampleOrder order_from(const Reader& reader) {
  return {.batch = reader.count("batch"),
          .samples = reader.count("samples"),
          .drop_last = reader.flag("drop_last"),
          .shuffle = reader.flag("shuffle"),
          .seed = reader.seed("seed"),
          .sampling = reader.has("sampling") ? reader.text("sampling") : "each",  // older ones
          .group_by_length = reader.has("group_by_length") && reader.flag("group_by_length")};
}

json store_search(const LrFindResult& found, std::vector<NamedTensor>& tensors) {
  tensors.push_back({kSearch, tensor_of(found.points)});
  const auto rate = [](const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
  };
  return {{"steps", found.steps},           {"stopped_early", found.stopped_early},
          {"valley", rate(found.valley)},   {"steepest", rate(found.steepest)},
          {"minimum", rate(found.minimum)}, {"suggestion", found.suggestion},
          {"seconds", found.seconds}};
}

LrFindResult search_from(const Stored& source) {
  const Reader reader = source.reader.object("lr_find");
  const auto rate = [&](const char* key) {
    const double value = reader.real(key);
    return std::isnan(value) ? std::nullopt : std::optional(value);
  };
  try {
    return {.points = points_of(source.tensor(kSearch)),
            .steps = reader.count("steps"),
            .stopped_early = reader.flag("stopped_early"),
            .valley = rate("valley"),
            .steepest = rate("steepest"),
            .minimum = rate("minimum"),
            .suggestion = reader.text("suggestion"),
            .seconds = reader.real("seconds")};
  } catch (const ConfigError& error) {
    reader.fail("points", error.problem());
  }
}

/// Reads a value that is stored as the text of its YAML.
template <class T>
T options_from(const Reader& reader, const char* key) {
  try {
    return config::read<T>(config::parse_text(reader.text(key), key));
  } catch (const ConfigError& error) {
    reader.fail(key, error.what());
  }
}

FitPlan plan_from(const Stored& source) {
  const Reader& reader = source.reader;
  FitPlan plan{.epochs = reader.count("epochs"),
               .rates = reader.reals("rates"),
               .schedule = {},
               .epoch = reader.count("epoch"),
               .batch = reader.count("batch"),
               .turn = reader.has("turn") ? reader.count("turn") : 0,  // not of one optimizer
               .step = reader.count("step"),
               .loss_sum = reader.real("loss_sum"),
               .loss_counted = 0,
               .loss_samples = reader.count("loss_samples"),
               .overflows = reader.has("overflows") ? reader.count("overflows") : 0,  // none
               .seconds = reader.has("seconds") ? reader.real("seconds") : 0,         // older ones
               .rate_factor = reader.has("rate_factor") ? reader.real("rate_factor") : 1,
               .order = {},
               .rows = rows_from(source, "rows", kFitRows),
               .validations = {}};
  if (reader.has("validations"))  // a fit inside whose epochs there is none
    plan.validations = validations_from(source, "validations", kValidations);
  plan.loss_counted = reader.has("loss_counted") ? reader.sum("loss_counted")
                                                 : static_cast<double>(plan.loss_samples);
  if (reader.has("order")) plan.order = order_from(reader.object("order"));
  if (reader.has("optimizers")) plan.optimizers = reader.texts("optimizers");
  if (reader.has("turns")) plan.turns = reader.texts("turns");
  if (reader.has("batches")) plan.batches = reader.count("batches");  // else the epochs are whole
  if (reader.has("inside_seconds")) plan.inside_seconds = reader.real("inside_seconds");
  if (reader.has("most_seconds")) plan.most_seconds = reader.real("most_seconds");
  if (reader.has("schedules")) plan.schedules = options_from<HyperSchedules>(reader, "schedules");
  if (reader.has("search")) plan.search = options_from<LrFindOptions>(reader, "search");
  if (reader.has("lr_find")) plan.found = search_from(source);
  if (!(plan.rate_factor > 0) || !std::isfinite(plan.rate_factor))
    reader.fail("rate_factor", "is not a finite number > 0");
  if (plan.finished()) reader.fail("epoch", "lies behind the last epoch");
  try {
    plan.schedule = config::read<Schedule>(config::parse_text(reader.text("schedule"), "schedule"));
    plan.schedule.check();
    plan.schedules.check(plan.schedule);
  } catch (const ConfigError& error) {
    reader.fail("schedule", error.what());
  }
  return plan;
}

GradScaler scaler_from(const Reader& reader) {
  const double scale = reader.real("scale");
  if (!(scale > 0) || !std::isfinite(scale)) reader.fail("scale", "is not a positive number");
  GradScaler scaler;
  scaler.restore(scale, reader.count("finite_steps"));
  return scaler;
}

}  // namespace

void check_callbacks(const std::vector<CallbackPtr>& callbacks, const std::string& call) {
  for (const auto& callback : callbacks)
    if (!callback) throw ConfigError(call, "a callback is null");
  const Callback* lender = nullptr;
  for (const auto& callback : callbacks) {
    if (!callback->facts().lends_weights) continue;
    if (lender)
      throw ConfigError(call, "the callbacks " + printable(lender->name()) + " and " +
                                  printable(callback->name()) +
                                  " both put weights into the validation; omit one");
    lender = callback.get();
  }
  check_names(states_of(callbacks), call);
}

void check_names(const std::vector<CallbackState>& states, const std::string& call) {
  std::set<std::string> names;
  for (const CallbackState& saved : states) {
    if (names.insert(saved.name).second) continue;
    throw ConfigError(call, "two callbacks that have a state are named '" + printable(saved.name) +
                                "', and a checkpoint holds one state of a name: give each a "
                                "name() of its own, or omit one")
        .about("callbacks", "one of a name", saved.name);
  }
}

std::vector<CallbackState> states_of(const std::vector<CallbackPtr>& callbacks) {
  std::vector<CallbackState> states;
  for (const auto& callback : callbacks) {
    if (auto state = callback->state(); !state.empty())
      states.push_back(
          {.name = callback->name(), .state = std::move(state), .tensors = callback->tensors()});
  }
  return states;
}

void restore(const std::vector<CallbackState>& states, const std::vector<CallbackPtr>& callbacks) {
  for (const auto& saved : states) {
    for (const auto& callback : callbacks) {
      if (callback->name() != saved.name) continue;
      callback->load_state(saved.state);
      callback->load_tensors(saved.tensors);
    }
  }
}

void check_same_order(const SampleOrder& saved, const SampleOrder& now, const std::string& call) {
  const auto refuse = [&](const std::string& there, const std::string& here) {
    throw ConfigError(call, "the fit to resume has " + there + ", this Learner has " + here +
                                ": its samples would be others; make them equal, or start a new "
                                "fit()");
  };
  const auto number = [](auto value) { return std::to_string(value); };
  if (saved.batch != now.batch)
    refuse("batch " + number(saved.batch), "batch " + number(now.batch));
  if (saved.samples != now.samples)
    refuse("a training split of " + number(saved.samples) + " samples",
           "one of " + number(now.samples));
  const auto flag = [](const char* name, bool value) {
    return std::string(name) + (value ? " = true" : " = false");
  };
  if (saved.drop_last != now.drop_last)
    refuse(flag("drop_last", saved.drop_last), flag("drop_last", now.drop_last));
  if (saved.shuffle != now.shuffle)
    refuse(flag("shuffle", saved.shuffle), flag("shuffle", now.shuffle));
  if (saved.sampling != now.sampling)
    refuse("sampling " + printable(saved.sampling), "sampling " + now.sampling);
  if (saved.group_by_length != now.group_by_length)
    refuse(flag("group_by_length", saved.group_by_length),
           flag("group_by_length", now.group_by_length));
  if (saved.seed != now.seed) refuse("seed " + number(saved.seed), "seed " + number(now.seed));
}

void check_same_names(const std::vector<std::string>& saved, const std::vector<std::string>& now,
                      const std::string& what, const std::string& call) {
  if (saved == now) return;
  const auto text = [&](const std::vector<std::string>& names) {
    return names.empty() ? "no named " + what : "the " + what + " " + listed(names);
  };
  throw ConfigError(call, "the fit to resume has " + text(saved) + ", this Learner has " +
                              text(now) +
                              ": rates and turns go by this order; give them in that of the fit, "
                              "or start a new fit()");
}

const EpochRow* row_of_weights(const std::vector<EpochRow>& history, int64_t restored_epoch) {
  if (history.empty()) return nullptr;
  const auto restored = std::ranges::find(history, restored_epoch, &EpochRow::epoch);
  return restored != history.end() ? &*restored : &history.back();
}

std::optional<ValidationRow> validation_of_weights(const TrainState& state) {
  if (!state.plan || state.plan->batch == 0) return state.restored_validation;
  const auto& all = state.plan->validations;
  if (all.empty() || all.back().step != state.plan->step) return std::nullopt;
  return all.back();
}

EpochRow row_of(const ValidationRow& validation) {
  return {.epoch = validation.epoch,
          .train_loss = validation.train_loss,
          .valid_loss = validation.valid_loss,
          .metrics = validation.metrics};
}

std::optional<EpochRow> row_of_figures(const TrainState& state) {
  if (state.lent_figures) return std::nullopt;
  if (const auto validation = validation_of_weights(state)) return row_of(*validation);
  if (state.plan && state.plan->batch > 0) return std::nullopt;
  const EpochRow* row = row_of_weights(state.history, state.restored_epoch);
  return row ? std::optional(*row) : std::nullopt;
}

StoredState stored(const TrainState& state) {
  StoredState result;
  json value{{"epochs_done", state.epochs_done},
             {"saves", state.saves},
             {"restored_epoch", state.restored_epoch},
             {"lent_figures", state.lent_figures},
             {"history", store_rows(state.history, kHistory, result.tensors)},
             {"micro_batches", json::array()},
             {"callbacks", json::array()}};
  if (state.restored_validation)
    value["restored_validation"] =
        store_validations({*state.restored_validation}, kRestored, result.tensors);
  for (const auto& [key, size] : state.micro_batches)
    value["micro_batches"].push_back({{"key", key}, {"size", size}});
  for (size_t i = 0; i < state.callbacks.size(); ++i) {
    value["callbacks"].push_back({{"name", state.callbacks[i].name}});
    result.tensors.push_back({callback_tensor(i), tensor_of(state.callbacks[i].state)});
    for (const auto& [name, tensor] : state.callbacks[i].tensors)
      result.tensors.push_back({callback_tensor(i) + '/' + name, tensor});
  }
  if (state.scaler)
    value["scaler"] = {{"scale", state.scaler->scale()},
                       {"finite_steps", state.scaler->finite_steps()}};
  if (state.plan) {
    const FitPlan& plan = *state.plan;
    json fit{{"epochs", plan.epochs},
             {"rates", plan.rates},
             {"schedule", config::to_yaml(config::to_node(plan.schedule))},
             {"epoch", plan.epoch},
             {"batch", plan.batch},
             {"step", plan.step},
             {"loss_sum", number(plan.loss_sum)},
             {"loss_counted", plan.loss_counted},
             {"loss_samples", plan.loss_samples},
             {"seconds", plan.seconds},
             {"rows", store_rows(plan.rows, kFitRows, result.tensors)}};
    if (!plan.validations.empty())
      fit["validations"] = store_validations(plan.validations, kValidations, result.tensors);
    if (plan.inside_seconds > 0) fit["inside_seconds"] = plan.inside_seconds;
    if (plan.batches > 0) fit["batches"] = plan.batches;
    if (plan.most_seconds > 0) fit["most_seconds"] = plan.most_seconds;
    if (plan.turn > 0) fit["turn"] = plan.turn;
    if (plan.overflows > 0) fit["overflows"] = plan.overflows;
    if (plan.rate_factor != 1) fit["rate_factor"] = plan.rate_factor;
    if (const auto& order = plan.order)
      fit["order"] = {{"batch", order->batch},
                      {"samples", order->samples},
                      {"drop_last", order->drop_last},
                      {"shuffle", order->shuffle},
                      {"seed", order->seed},
                      {"sampling", order->sampling},
                      {"group_by_length", order->group_by_length}};
    if (plan.optimizers) fit["optimizers"] = *plan.optimizers;
    if (plan.turns) fit["turns"] = *plan.turns;
    if (plan.schedules.any()) fit["schedules"] = config::to_yaml(config::to_node(plan.schedules));
    if (plan.search) fit["search"] = config::to_yaml(config::to_node(*plan.search));
    if (plan.found) fit["lr_find"] = store_search(*plan.found, result.tensors);
    value["fit"] = std::move(fit);
  }
  if (!state.data.empty()) result.tensors.push_back({kData, tensor_of(state.data)});
  result.json = value.dump();
  return result;
}

TrainState train_state_from(const std::string& text, const std::vector<NamedTensor>& tensors,
                            const std::filesystem::path& path) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Reader reader(value, "state", path);
  TrainState state;
  state.epochs_done = reader.count("epochs_done");
  state.saves = reader.count("saves");
  state.history = rows_from({reader, tensors}, "history", kHistory);
  if (reader.has("restored_epoch"))  // not in older checkpoints
    state.restored_epoch = reader.count("restored_epoch");
  if (reader.has("restored_validation")) {
    const auto restored = validations_from({reader, tensors}, "restored_validation", kRestored);
    if (restored.size() != 1) reader.fail("restored_validation", "is not one validation");
    state.restored_validation = restored.front();
  }
  if (reader.has("lent_figures"))  // not in older checkpoints
    state.lent_figures = reader.flag("lent_figures");
  if (reader.has("micro_batches"))  // not in older checkpoints
    for (const auto& item : reader.list("micro_batches")) {
      state.micro_batches.push_back({item.text("key"), item.count("size")});
      if (state.micro_batches.back().size == 0) item.fail("size", "is not a size");
    }
  state.callbacks = callbacks_from({reader, tensors});
  if (const at::Tensor data = Stored{reader, tensors}.tensor(kData); data.defined()) {
    try {
      state.data = text_of(data);
    } catch (const ConfigError& error) {
      reader.fail("data", error.problem());
    }
  }
  if (reader.has("scaler")) state.scaler = scaler_from(reader.object("scaler"));
  if (reader.has("fit")) {
    const Reader fit = reader.object("fit");
    state.plan = plan_from({fit, tensors});
  }
  return state;
}

}  // namespace tare

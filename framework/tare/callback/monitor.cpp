// Follows a figure by epoch: saves the best, stops early, stops at NaN.
#include "tare/callback/monitor.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"
#include "tare/callback/save_failure.h"
#include "tare/report/run_tables.h"

namespace tare {
namespace {

nlohmann::json field_of(const std::string& state, const char* field, const std::string& callback) {
  const auto value = nlohmann::json::parse(state, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains(field))
    throw FormatError("callback.load_state", callback, field, "is not in the checkpoint's state");
  return value[field];
}

std::optional<double> best_of(const std::string& state, const std::string& callback) {
  const auto best = field_of(state, "best", callback);
  if (best.is_null()) return {};
  if (!best.is_number())
    throw FormatError("callback.load_state", callback, "best", "is not a number");
  return best.get<double>();
}

nlohmann::json to_json(std::optional<double> best) {
  return best ? nlohmann::json(*best) : nlohmann::json(nullptr);
}

bool lower_is_better_for(const std::string& figure) {
  for (const char* word : {"loss", "error", "mse", "mae", "perplexity"}) {
    if (figure.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

double Monitor::value(const EpochRow& row) const {
  if (figure == "train_loss") return row.train_loss;
  if (figure == "valid_loss") return row.valid_loss;
  if (const MetricValue* metric = report::find_metric(row.metrics, figure)) return metric->value;
  std::string known = "train_loss, valid_loss";
  for (const auto& m : row.metrics) known += ", " + m.name;
  throw ConfigError("monitor",
                    "no figure is named '" + printable(figure) + "'; there are " + known);
}

bool Monitor::is_of_validation(const EpochRow& row) const {
  return figure == "valid_loss" || report::find_metric(row.metrics, figure) != nullptr;
}

std::string MonitorTurns::counted(int64_t looks) const {
  return std::to_string(looks) + (is_inside_ ? " validation" : " epoch") + (looks == 1 ? "" : "s");
}

bool Monitor::prefers_lower(const EpochRow& row) const {
  const MetricValue* metric = report::find_metric(row.metrics, figure);
  const auto said = metric ? metric->lower_is_better : std::nullopt;
  return lower_is_better.value_or(said.value_or(lower_is_better_for(figure)));
}

bool Monitor::improves(const EpochRow& row, std::optional<double> best) const {
  const double now = value(row);
  if (std::isnan(now)) return false;
  if (!best) return true;
  return prefers_lower(row) ? now < *best - min_delta : now > *best + min_delta;
}

Action SaveBest::before_fit(FitContext& context) {
  if (context.step == 0) best_.reset();  // a resumed fit keeps the best so far
  missed_.reset();
  return Action::proceed;
}

Action SaveBest::after_validate(FitContext& context) {
  if (turns_.after_validate(context, options_.monitor)) look(context);
  return Action::proceed;
}

Action SaveBest::after_epoch(FitContext& context) {
  if (turns_.after_epoch(context)) look(context);
  return Action::proceed;
}

void SaveBest::look(FitContext& context) {
  const double value = options_.monitor.value(context.row);
  if (!options_.monitor.improves(context.row, best_)) return;
  context.learner.finish_saves();                   // one that fails is not the best
  const auto before = std::exchange(best_, value);  // the checkpoint holds its own
  const Missed tried{
      .epoch = context.row.epoch, .value = value, .inside_epoch = context.inside_epoch};
  const auto saved = [this, before, tried, row = context.row](const std::exception_ptr& error) {
    note(row, tried, error == nullptr);
    if (!error) return;
    best_ = before;
    log::warning("the best weights so far were not saved: " + failure_text(error) +
                 "; training continues");
  };
  context.learner.try_save(options_.checkpoint, saved);
}

void SaveBest::note(const EpochRow& row, const Missed& tried, bool saved) {
  const bool lower = options_.monitor.prefers_lower(row);
  if (missed_ && (lower ? tried.value >= missed_->value : tried.value <= missed_->value)) return;
  missed_ = saved ? std::nullopt : std::optional(tried);
}

Action SaveBest::after_fit(FitContext& context) {
  context.learner.finish_saves();  // one that fails is not the best
  if (missed_ && !missed_->inside_epoch && missed_->epoch == context.row.epoch) {
    missed_.reset();  // the model has the best weights
    return Action::proceed;
  }
  if (missed_ && !context.error)
    log::warning("epoch " + std::to_string(missed_->epoch) + " has the best " +
                 printable(options_.monitor.figure) +
                 ", and its weights could not be saved, so that they are lost");
  if (options_.restore && best_ && !context.error && !context.interrupted)
    context.learner.restore_weights(options_.checkpoint);
  return Action::proceed;
}

CallbackFacts SaveBest::facts() const {
  return {
      .watched = {options_.monitor.figure}, .files = {options_.checkpoint}, .saves_epochs = true};
}

std::string SaveBest::state() const { return nlohmann::json{{"best", to_json(best_)}}.dump(); }

void SaveBest::load_state(const std::string& json) { best_ = best_of(json, name()); }

EarlyStopping::EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {
  if (options_.patience < 0) {
    throw ConfigError("early_stopping",
                      "patience must be >= 0, got " + std::to_string(options_.patience));
  }
}

Action EarlyStopping::before_fit(FitContext& context) {
  if (context.step == 0) {
    best_.reset();
    waited_ = 0;
  }
  return Action::proceed;
}

Action EarlyStopping::after_validate(FitContext& context) {
  return turns_.after_validate(context, options_.monitor) ? look(context) : Action::proceed;
}

Action EarlyStopping::after_epoch(FitContext& context) {
  return turns_.after_epoch(context) ? look(context) : Action::proceed;
}

Action EarlyStopping::look(const FitContext& context) {
  const double value = options_.monitor.value(context.row);
  if (options_.monitor.improves(context.row, best_)) {
    best_ = value;
    waited_ = 0;
    return Action::proceed;
  }
  return ++waited_ <= options_.patience ? Action::proceed : Action::stop_fit;
}

Action EarlyStopping::after_fit(FitContext& context) {
  if (waited_ > options_.patience && context.ends_early())
    log::info("stopped early: " + options_.monitor.figure + " has not improved for " +
              turns_.counted(waited_));
  return Action::proceed;
}

std::string EarlyStopping::state() const {
  return nlohmann::json{{"best", to_json(best_)}, {"waited", waited_}}.dump();
}

void EarlyStopping::load_state(const std::string& json) {
  const auto waited = field_of(json, "waited", name());
  if (!waited.is_number_integer() || waited < 0)
    throw FormatError("callback.load_state", name(), "waited", "is not a count");
  best_ = best_of(json, name());
  waited_ = waited.get<int64_t>();
}

StopOnNan::StopOnNan(StopOnNanOptions options) : options_(std::move(options)) {
  if (options_.every < 1) {
    throw ConfigError("stop_on_nan", "every must be >= 1, got " + std::to_string(options_.every));
  }
}

Action StopOnNan::before_fit(FitContext&) {
  stopped_ = false;
  return Action::proceed;
}

Action StopOnNan::after_loss(FitContext& context) {
  if (!context.loss.device().is_cpu() && context.step % options_.every != 0) return Action::proceed;
  return check(context, "loss", context.loss_value(), context.step + 1);
}

Action StopOnNan::after_validate(FitContext& context) {
  return check(context, "valid_loss", context.row.valid_loss, context.step);
}

Action StopOnNan::after_epoch(FitContext& context) {
  if (context.row.samples == 0) return Action::proceed;  // every batch was skipped
  return check(context, "train_loss", context.row.train_loss, context.step);
}

Action StopOnNan::check(const FitContext& context, const char* figure, double loss, int64_t step) {
  if (stopped_ || std::isfinite(loss)) return Action::proceed;
  const DivergedError error(options_.where.empty() ? "fit" : options_.where, figure, loss,
                            context.epoch + 1, step, context.advice_on_divergence());
  if (options_.fail) throw error;
  log::warning(std::string("stopped: ") + error.what());
  stopped_ = true;
  return Action::stop_fit;
}

namespace callbacks {
void add_monitor(Registry& all) {
  all.add<EarlyStoppingOptions>(
      "early_stopping", "ends a fit whose figure has not improved for some epochs",
      [](const EarlyStoppingOptions& o) { return std::make_shared<EarlyStopping>(o); });
  all.add<SaveBestOptions>("save_best",
                           "saves the epoch of the best figure, and ends with its weights",
                           [](const SaveBestOptions& o) { return std::make_shared<SaveBest>(o); });
}
}  // namespace callbacks

}  // namespace tare

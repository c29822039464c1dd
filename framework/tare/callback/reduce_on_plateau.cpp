// Lowers rates where a figure stays as it is.
#include "tare/callback/reduce_on_plateau.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"
#include "tare/config/scalar.h"

namespace tare {

ReduceOnPlateau::ReduceOnPlateau(ReduceOnPlateauOptions options) : options_(std::move(options)) {
  config::validate(options_, "reduce_on_plateau");
}

Action ReduceOnPlateau::before_fit(FitContext& context) {
  if (context.step > 0) return Action::proceed;
  best_.reset();
  waited_ = 0;
  lr_ = 0;
  return Action::proceed;
}

Action ReduceOnPlateau::after_step(FitContext& context) {
  lr_ = context.lr;
  return Action::proceed;
}

Action ReduceOnPlateau::after_validate(FitContext& context) {
  if (turns_.after_validate(context, options_.monitor)) look(context);
  return Action::proceed;
}

Action ReduceOnPlateau::after_epoch(FitContext& context) {
  if (turns_.after_epoch(context)) look(context);
  return Action::proceed;
}

void ReduceOnPlateau::look(FitContext& context) {
  const double value = options_.monitor.value(context.row);
  if (options_.monitor.improves(context.row, best_)) {
    best_ = value;
    waited_ = 0;
  } else if (++waited_ > options_.patience) {
    waited_ = 0;
    reduce(context);
  }
}

void ReduceOnPlateau::reduce(FitContext& context) {
  const double lowest = options_.min_lr > 0 ? options_.min_lr / lr_ : 0;
  const double factor = std::max(options_.factor, lowest);
  constexpr double kRounding = 1e-9;  // of a rate that is the lowest already
  if (lowest > 1 + kRounding)
    log::warning_once("reduce_on_plateau has no effect while the rate is below min_lr, " +
                      config::number_text(options_.min_lr));
  if (factor > 1 - kRounding) return;
  context.rate_factor *= factor;
  lr_ *= factor;
  log::info("the rates are multiplied by " + config::number_text(factor) +
            " from here on: " + options_.monitor.figure + " has not improved for " +
            turns_.counted(options_.patience + 1));
}

std::string ReduceOnPlateau::state() const {
  return nlohmann::json{{"best", best_ ? nlohmann::json(*best_) : nlohmann::json(nullptr)},
                        {"waited", waited_},
                        {"lr", lr_}}
      .dump();
}

void ReduceOnPlateau::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto require = [&](const char* key, const auto& is_right) {
    if (!value.is_object() || !value.contains(key) || !is_right(value[key]))
      throw FormatError("callback.load_state", name(), key, "is not in the checkpoint's state");
  };
  require("best", [](const auto& best) { return best.is_null() || best.is_number(); });
  require("waited", [](const auto& waited) { return waited.is_number_integer() && waited >= 0; });
  require("lr", [](const auto& lr) { return lr.is_number(); });
  best_.reset();
  if (!value["best"].is_null()) best_ = value["best"].get<double>();
  waited_ = value["waited"].get<int64_t>();
  lr_ = value["lr"].get<double>();
}

namespace callbacks {
void add_reduce_on_plateau(Registry& all) {
  all.add<ReduceOnPlateauOptions>(
      "reduce_on_plateau", "lowers the rates when a figure has not improved for some epochs",
      [](const ReduceOnPlateauOptions& o) { return std::make_shared<ReduceOnPlateau>(o); });
}
}  // namespace callbacks

}  // namespace tare

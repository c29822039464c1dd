// Saves checkpoints by the clock, and of the last and the best epochs.
#include "tare/callback/saving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"
#include "tare/callback/save_failure.h"

namespace tare {

TimedSave::TimedSave(TimedSaveOptions options) : between_(60 * options.minutes) {
  config::validate(options, "timed_save");
}

Action TimedSave::before_fit(FitContext& context) {
  last_ = Clock::now();
  saved_step_ = context.step;
  return Action::proceed;
}

Action TimedSave::after_batch(FitContext& context) {
  const bool due = context.step != saved_step_ && Clock::now() - last_ >= between_;
  if (!context.learner.first_rank_says(due)) return Action::proceed;
  saved_step_ = context.step;
  turns_.save(context.learner);
  last_ = Clock::now();
  return Action::proceed;
}

KeepCheckpoints::KeepCheckpoints(KeepCheckpointsOptions options) : options_(std::move(options)) {
  config::validate(options_, "keep_checkpoints");
  io::checked_name(options_.name, "name");
  const KeepCheckpointsOptions plain;
  if (options_.last == 0 && options_.best == 0)
    throw ConfigError("keep_checkpoints", "last", "keeps no checkpoint", ">= 1, or a `best` >= 1",
                      "0");
  if (options_.best == 0 && (options_.monitor != plain.monitor || options_.lower_is_better))
    throw ConfigError("keep_checkpoints", "monitor", "has no effect, because `best` is 0",
                      "omit it, or a `best` >= 1", options_.monitor);
}

std::string KeepCheckpoints::checkpoint(int64_t epoch) const {
  return options_.name + '-' + std::to_string(epoch);
}

Action KeepCheckpoints::after_epoch(FitContext& context) {
  context.learner.finish_saves();  // one that fails is not kept
  Kept now{.epoch = context.row.epoch, .value = std::numeric_limits<double>::quiet_NaN()};
  if (options_.best > 0) {
    const Monitor monitor{.figure = options_.monitor, .lower_is_better = options_.lower_is_better};
    now.value = monitor.value(context.row);
    lower_ = monitor.prefers_lower(context.row);
  }
  const auto before = kept_;
  // A fit that was begun again replaces the checkpoint of the epoch.
  std::erase_if(kept_, [&](const Kept& one) { return one.epoch == now.epoch; });
  kept_.push_back(now);  // the checkpoint knows itself
  context.learner.try_save(checkpoint(now.epoch), [this, before, now, &learner = context.learner](
                                                      const std::exception_ptr& error) {
    if (!error) return remove_others(learner);
    kept_ = before;
    log::warning("no checkpoint of epoch " + std::to_string(now.epoch) +
                 " was written: " + failure_text(error) + "; training continues");
  });
  return Action::proceed;
}

bool KeepCheckpoints::stays(size_t index) const {
  if (std::cmp_greater_equal(index + static_cast<size_t>(options_.last), kept_.size())) return true;
  const double own = kept_[index].value;
  if (std::isnan(own)) return false;
  int64_t better = 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const double other = kept_[i].value;
    if (std::isnan(other)) continue;
    better += (lower_ ? other < own : other > own) || (other == own && i < index);
  }
  return better < options_.best;
}

void KeepCheckpoints::remove_others(const LearnerView& learner) {
  std::vector<Kept> stay;
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (stays(i)) {
      stay.push_back(kept_[i]);
      continue;
    }
    try {
      if (learner.is_first_rank())
        io::remove_directory_atomically(learner.folder() / checkpoint(kept_[i].epoch));
    } catch (const IoError& error) {
      log::warning(std::string("a checkpoint of an earlier epoch stays: ") + error.what());
    }
  }
  kept_ = std::move(stay);
}

std::string KeepCheckpoints::state() const {
  auto epochs = nlohmann::json::array(), values = nlohmann::json::array();
  for (const Kept& one : kept_) {
    epochs.push_back(one.epoch);
    values.push_back(std::isnan(one.value) ? nlohmann::json() : nlohmann::json(one.value));
  }
  return nlohmann::json{{"epochs", epochs}, {"values", values}}.dump();
}

void KeepCheckpoints::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto is_epoch = [](const auto& one) { return one.is_number_integer() && one >= 0; };
  if (!value.is_object() || !value.contains("epochs") || !value["epochs"].is_array() ||
      !std::ranges::all_of(value["epochs"], is_epoch))
    throw FormatError("callback.load_state", name(), "epochs", "is not a list of epochs");
  // An earlier version wrote no values.
  const auto values = value.value("values", nlohmann::json::array());
  kept_.clear();
  for (size_t i = 0; i < value["epochs"].size(); ++i) {
    const bool known = values.is_array() && i < values.size() && values[i].is_number();
    kept_.push_back(
        {.epoch = value["epochs"][i].get<int64_t>(),
         .value = known ? values[i].get<double>() : std::numeric_limits<double>::quiet_NaN()});
  }
}

namespace callbacks {
void add_saving(Registry& all) {
  all.add<TimedSaveOptions>(
      "timed_save", "saves a checkpoint to resume from every so many minutes",
      [](const TimedSaveOptions& o) { return std::make_shared<TimedSave>(o); });
  all.add<KeepCheckpointsOptions>(
      "keep_checkpoints", "saves a checkpoint of each epoch and keeps the last and the best ones",
      [](const KeepCheckpointsOptions& o) { return std::make_shared<KeepCheckpoints>(o); });
}
}  // namespace callbacks

}  // namespace tare

// Saves checkpoints by the clock and of the last epochs.
#include "tare/callback/saving.h"

#include <algorithm>
#include <nlohmann/json.hpp>

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
  if (context.step == saved_step_ || Clock::now() - last_ < between_) return Action::proceed;
  saved_step_ = context.step;
  turns_.save(context.learner);
  last_ = Clock::now();
  return Action::proceed;
}

KeepCheckpoints::KeepCheckpoints(KeepCheckpointsOptions options) : options_(std::move(options)) {
  config::validate(options_, "keep_checkpoints");
  io::checked_name(options_.name, "name");
}

std::string KeepCheckpoints::checkpoint(int64_t epoch) const {
  return options_.name + '-' + std::to_string(epoch);
}

Action KeepCheckpoints::after_epoch(FitContext& context) {
  context.learner.finish_saves();  // one that fails is not kept
  const int64_t epoch = context.row.epoch;
  const auto before = epochs_;
  std::erase(epochs_, epoch);  // of a fit that was begun again
  epochs_.push_back(epoch);    // the checkpoint knows itself
  context.learner.try_save(checkpoint(epoch), [this, before, epoch, &learner = context.learner](
                                                  const std::exception_ptr& error) {
    if (!error) return remove_older(learner.folder());
    epochs_ = before;
    log::warning("no checkpoint of epoch " + std::to_string(epoch) +
                 " was written: " + failure_text(error) + "; training continues");
  });
  return Action::proceed;
}

void KeepCheckpoints::remove_older(const std::filesystem::path& folder) {
  while (std::ssize(epochs_) > options_.last) {
    const auto path = folder / checkpoint(epochs_.front());
    try {
      io::remove_directory_atomically(path);
    } catch (const IoError& error) {
      log::warning(std::string("a checkpoint of an earlier epoch stays: ") + error.what());
    }
    epochs_.erase(epochs_.begin());
  }
}

std::string KeepCheckpoints::state() const { return nlohmann::json{{"epochs", epochs_}}.dump(); }

void KeepCheckpoints::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto is_epoch = [](const auto& one) { return one.is_number_integer() && one >= 0; };
  if (!value.is_object() || !value.contains("epochs") || !value["epochs"].is_array() ||
      !std::ranges::all_of(value["epochs"], is_epoch))
    throw FormatError("callback.load_state", name(), "epochs", "is not a list of epochs");
  epochs_ = value["epochs"].get<std::vector<int64_t>>();
}

namespace callbacks {
void add_saving(Registry& all) {
  all.add<TimedSaveOptions>(
      "timed_save", "saves a checkpoint to resume from every so many minutes",
      [](const TimedSaveOptions& o) { return std::make_shared<TimedSave>(o); });
  all.add<KeepCheckpointsOptions>(
      "keep_checkpoints", "saves a checkpoint of each epoch and keeps the last ones",
      [](const KeepCheckpointsOptions& o) { return std::make_shared<KeepCheckpoints>(o); });
}
}  // namespace callbacks

}  // namespace tare

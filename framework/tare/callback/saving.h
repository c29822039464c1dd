// TimedSave and KeepCheckpoints: checkpoints by the clock, and of the last epochs.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/callback/autosave.h"
#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Configures TimedSave.
struct TimedSaveOptions {
  double minutes = 10;  ///< between two saves, > 0
};
void visit_fields(auto& visit, TimedSaveOptions& o) {
  visit("minutes", o.minutes, config::above(0));
}

/// Saves a checkpoint after the first step that ends `minutes` or more after the last save, or
/// after the beginning of the fit, as Autosave does every so many steps: under Autosave::names() in
/// turn, so that the newest one resumes a run. A save that fails is logged as a warning and
/// training continues.
class TimedSave final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit TimedSave(TimedSaveOptions options = {});
  [[nodiscard]] std::string name() const override { return "timed_save"; }
  Action before_fit(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override { return {.saves_steps = true}; }
  [[nodiscard]] std::string state() const override { return turns_.state(); }
  void load_state(const std::string& json) override { turns_.load_state(json); }

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::duration<double> between_;
  Autosave turns_{0};
  Clock::time_point last_{};
  int64_t saved_step_ = 0;  // a batch without a step does not save again
};

/// Configures KeepCheckpoints.
struct KeepCheckpointsOptions {
  int64_t last = 3;            ///< checkpoints that stay, >= 1
  std::string name = "epoch";  ///< beginning of their names: "epoch-1", "epoch-2" ...
};
void visit_fields(auto& visit, KeepCheckpointsOptions& o) {
  visit("last", o.last, config::at_least(1));
  visit("name", o.name);
}

/// Saves a checkpoint after each epoch, under `name`, a hyphen and EpochRow::epoch, and removes
/// those that it saved before the last `last` ones. A save or a removal that fails is logged as a
/// warning and training continues.
class KeepCheckpoints final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit KeepCheckpoints(KeepCheckpointsOptions options = {});
  [[nodiscard]] std::string name() const override { return "keep_checkpoints:" + options_.name; }
  Action after_epoch(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override {
    return {.prefixes = {options_.name + '-'}, .saves_epochs = true};
  }
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  [[nodiscard]] std::string checkpoint(int64_t epoch) const;
  void remove_older(const std::filesystem::path& folder);

  KeepCheckpointsOptions options_;
  std::vector<int64_t> epochs_;  // of the checkpoints that are there, the oldest first
};

}  // namespace tare

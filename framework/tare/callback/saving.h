// TimedSave and KeepCheckpoints: checkpoints by the clock, and of the last and the best epochs.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/callback/autosave.h"
#include "tare/callback/callback.h"
#include "tare/callback/monitor.h"
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
  int64_t last = 3;                       ///< of the last epochs that stay, >= 0
  int64_t best = 0;                       ///< of the best epochs that stay beside them, >= 0
  std::string monitor = "valid_loss";     ///< decides which are best, see Monitor::figure
  std::optional<bool> lower_is_better{};  ///< see Monitor
  std::string name = "epoch";             ///< beginning of their names: "epoch-1", "epoch-2" ...
};
void visit_fields(auto& visit, KeepCheckpointsOptions& o) {
  visit("last", o.last, config::at_least(0));
  visit("best", o.best, config::at_least(0));
  visit("monitor", o.monitor);
  visit("lower_is_better", o.lower_is_better);
  visit("name", o.name);
}

/// Saves a checkpoint after each epoch, under `name`, a hyphen and EpochRow::epoch, and removes
/// those that it has saved and that are neither of the last `last` epochs nor of the `best` ones
/// with the best values of the column `monitor`. Of equal values the earlier is better; NaN is none
/// of the best. A save or a removal that fails is logged as a warning and training continues.
class KeepCheckpoints final : public Callback {
 public:
  /// Throws ConfigError for an option out of range, options that keep no checkpoint, and those of
  /// the column where `best` is 0.
  explicit KeepCheckpoints(KeepCheckpointsOptions options = {});
  [[nodiscard]] std::string name() const override { return "keep_checkpoints:" + options_.name; }
  Action after_epoch(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override {
    CallbackFacts facts{.prefixes = {options_.name + '-'}, .saves_epochs = true};
    if (options_.best > 0) facts.watched = {options_.monitor};
    return facts;
  }
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  struct Kept {
    int64_t epoch = 0;
    double value = 0;  // of the column; NaN: unknown
  };
  [[nodiscard]] std::string checkpoint(int64_t epoch) const;
  [[nodiscard]] bool stays(size_t index) const;
  void remove_others(const LearnerView& learner);

  KeepCheckpointsOptions options_;
  std::vector<Kept> kept_;  // the checkpoints that are there, the oldest first
  bool lower_ = true;       // lower values are better
};

}  // namespace tare

// Callbacks that watch a value: SaveBest, EarlyStopping, StopOnNan.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Names the column of the epochs table to watch, and sets whether lower is better.
struct Monitor {
  std::string figure = "valid_loss";  ///< train_loss, valid_loss or a metric's name
  /// Unset: as the metric says; for another column and a metric that is a function, true for names
  /// that contain "loss", "error", "mse", "mae" or "perplexity", else false.
  std::optional<bool> lower_is_better{};
  double min_delta = 0;  ///< a smaller change is no improvement, >= 0

  /// Returns the column's value in `row`. Throws ConfigError, listing the columns, if there is none
  /// of that name.
  [[nodiscard]] double value(const EpochRow& row) const;
  /// Whether a validation has given the column: valid_loss, or one of the metrics of `row`.
  [[nodiscard]] bool is_of_validation(const EpochRow& row) const;
  /// Whether a lower value is better for the column of `row`.
  [[nodiscard]] bool prefers_lower(const EpochRow& row) const;
  /// Whether the column's value in `row` beats `best` by more than min_delta. NaN never does.
  /// Throws as value().
  [[nodiscard]] bool improves(const EpochRow& row, std::optional<double> best) const;
};

/// Determines when a callback looks at its column: at the end of each epoch and, if a validation
/// gives the column, after each validation inside an epoch; once where an epoch ends with one.
class MonitorTurns {
 public:
  /// Whether the callback looks in after_validate.
  [[nodiscard]] bool after_validate(const FitContext& context, const Monitor& monitor) {
    has_looked_ = context.inside_epoch && monitor.is_of_validation(context.row);
    is_inside_ = is_inside_ || has_looked_;
    return has_looked_;
  }
  /// Whether the callback looks in after_epoch.
  [[nodiscard]] bool after_epoch(const FitContext& context) const {
    return !(context.inside_epoch && has_looked_);
  }
  /// Returns a number of looks in words: "3 epochs" or, where it looks inside them too, "3
  /// validations".
  [[nodiscard]] std::string counted(int64_t looks) const;

 private:
  bool has_looked_ = false;  // at the last validation
  bool is_inside_ = false;   // it has looked inside an epoch
};

/// Visits the fields of a Monitor among those of a callback that has one.
void visit_monitor(auto& visit, Monitor& o) {
  visit("monitor", o.figure);
  visit("lower_is_better", o.lower_is_better);
  visit("min_delta", o.min_delta, config::at_least(0));
}

/// Configures SaveBest.
struct SaveBestOptions {
  Monitor monitor{};                ///< the column that decides
  std::string checkpoint = "best";  ///< name given to save()
  bool restore = true;  ///< copy the best weights back at the end of a fit that is whole
};
void visit_fields(auto& visit, SaveBestOptions& o) {
  visit_monitor(visit, o.monitor);
  visit("checkpoint", o.checkpoint);
  visit("restore", o.restore);
}

/// Saves a checkpoint after each epoch, and each validation inside an epoch, that is better than
/// all before it in the same fit. A save that fails is logged as a warning and training continues;
/// the best so far is then the one whose checkpoint was written. A fit that an error or an
/// interrupt ends keeps its last weights.
class SaveBest final : public Callback {
 public:
  /// Checks the options, see SaveBestOptions.
  explicit SaveBest(SaveBestOptions options = {}) : options_(std::move(options)) {}
  [[nodiscard]] std::string name() const override { return "save_best:" + options_.checkpoint; }
  Action before_fit(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;
  /// Returns the best value so far; unset before the first epoch with one.
  [[nodiscard]] std::optional<double> best() const { return best_; }
  /// Whether the weights of the best epoch are gone at the end of the fit, because they could not
  /// be saved and are not those of the last epoch.
  [[nodiscard]] bool is_lost() const { return missed_.has_value(); }

 private:
  struct Missed {  // an epoch that is better than the saved one, and could not be saved
    int64_t epoch = 0;
    double value = 0;
    bool inside_epoch = false;
  };
  void look(FitContext& context);
  void note(const EpochRow& row, const Missed& tried, bool saved);

  SaveBestOptions options_;
  MonitorTurns turns_;
  std::optional<double> best_;
  std::optional<Missed> missed_;
};

/// Configures EarlyStopping.
struct EarlyStoppingOptions {
  Monitor monitor{};     ///< the column that decides
  int64_t patience = 0;  ///< looks at it without improvement that are tolerated, >= 0
};
void visit_fields(auto& visit, EarlyStoppingOptions& o) {
  visit_monitor(visit, o.monitor);
  visit("patience", o.patience, config::at_least(0));
}

/// Stops the fit when the column has not improved for more than `patience` looks in a row. It looks
/// at the end of each epoch and at the validations inside it, see MonitorTurns.
class EarlyStopping final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  [[nodiscard]] std::string name() const override { return "early_stopping"; }
  Action before_fit(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  /// Logs that it has ended the fit early, behind the row of the last epoch.
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override {
    return {.watched = {options_.monitor.figure}};
  }
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  [[nodiscard]] Action look(const FitContext& context);

  EarlyStoppingOptions options_;
  MonitorTurns turns_;
  std::optional<double> best_;
  int64_t waited_ = 0;
};

/// Configures StopOnNan.
struct StopOnNanOptions {
  int64_t every = 16;   ///< steps between two checks on a device, where reading a loss waits, >= 1
  bool fail = false;    ///< throw DivergedError instead of ending the fit with a warning
  std::string where{};  ///< the operation that the message names; empty: "fit"
};

/// Ends the fit at the first loss that is NaN or infinite, before that step touches the weights. On
/// the host every step is checked, on a device every `every` steps; the mean loss of training is
/// checked at the end of each epoch, that of a validation after it.
class StopOnNan final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit StopOnNan(StopOnNanOptions options = {});
  [[nodiscard]] std::string name() const override { return "stop_on_nan"; }
  Action before_fit(FitContext& context) override;
  Action after_loss(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;

 private:
  [[nodiscard]] Action check(const FitContext& context, const char* figure, double loss,
                             int64_t step);

  StopOnNanOptions options_;
  bool stopped_ = false;  // one warning is enough
};

}  // namespace tare

// ReduceOnPlateau: lowers the learning rates of a fit that does not improve.
#pragma once

#include <optional>
#include <string>

#include "tare/callback/callback.h"
#include "tare/callback/monitor.h"
#include "tare/config/field.h"

namespace tare {

/// Configures ReduceOnPlateau.
struct ReduceOnPlateauOptions {
  Monitor monitor{};     ///< the column that decides
  double factor = 0.1;   ///< multiplies the rates, in (0, 1)
  int64_t patience = 2;  ///< looks at it without improvement that are tolerated, >= 0
  double min_lr = 0;     ///< the rate of the last parameter group is not lowered below, >= 0
};
void visit_fields(auto& visit, ReduceOnPlateauOptions& o) {
  visit_monitor(visit, o.monitor);
  visit("factor", o.factor, config::between(1e-6, 0.999999));
  visit("patience", o.patience, config::at_least(0));
  visit("min_lr", o.min_lr, config::at_least(0));
}

/// Multiplies the rates of all following steps by `factor` when the column has not improved for
/// more than `patience` looks in a row, see MonitorTurns, again and again
/// (torch.optim.lr_scheduler's ReduceLROnPlateau, without a cooldown). It multiplies what the
/// schedule gives, by FitContext::rate_factor, which a resumed fit continues. A new fit begins with
/// its own rates.
class ReduceOnPlateau final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit ReduceOnPlateau(ReduceOnPlateauOptions options = {});
  [[nodiscard]] std::string name() const override { return "reduce_on_plateau"; }
  Action before_fit(FitContext& context) override;
  Action after_step(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override {
    return {.watched = {options_.monitor.figure}};
  }
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  void look(FitContext& context);
  void reduce(FitContext& context);

  ReduceOnPlateauOptions options_;
  MonitorTurns turns_;
  std::optional<double> best_;
  int64_t waited_ = 0;
  double lr_ = 0;  // of the last step
};

}  // namespace tare

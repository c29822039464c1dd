// LiveLog: writes what a run is doing now, for `tare watch`. Internal.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/report/live.h"

namespace tare {

/// Writes report::kLiveFile into the folder of the run at the first batch of a fit, then every few
/// seconds and at the end of each epoch, and removes it when the fit ends. Neither waits for the
/// disk or for the device. A file that cannot be written is no error of the training: it is logged
/// once, and not tried again.
class LiveLog final : public Callback {
 public:
  /// Takes the run's folder and the name of the phase.
  LiveLog(std::filesystem::path folder, std::string phase)
      : folder_(std::move(folder)), phase_(std::move(phase)) {}
  [[nodiscard]] std::string name() const override { return "live_log"; }
  [[nodiscard]] CallbackFacts facts() const override { return {.only_writes = true}; }
  Action before_fit(FitContext& context) override;
  Action after_loss(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  Action before_validate(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_due() const;
  void write(const FitContext& context);
  void forget(const std::string& reason);

  std::filesystem::path folder_;
  std::string phase_;
  std::vector<MetricValue> memory_;  // of the newest snapshot
  int64_t allocated_bytes_ = 0;
  int64_t samples_ = 0;  // since the last writing
  double samples_per_s_ = 0;
  bool failed_ = false, written_ = false;
  Clock::time_point last_{};  // writing; later by the validations since then
  Clock::time_point validation_{};
};

}  // namespace tare

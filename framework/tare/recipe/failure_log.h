// FailureLog: writes why a run failed, for `tare watch` and the reports. Internal.
#pragma once

#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include "tare/callback/callback.h"
#include "tare/report/run_failure.h"

namespace tare {

/// Notes where a run is, and writes report::kFailureFile into its folder where an error ends it.
class FailureLog final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "failure_log"; }
  /// Notes the phase under way; empty: none is.
  void begin(std::string phase) { failure_ = {.phase = std::move(phase)}; }
  Action on_exception(FitContext& context) override;
  /// Writes the file and waits for the disk. What keeps it from being written is logged, so that
  /// the error that ends the run is the one that the caller gets.
  void write(const std::filesystem::path& folder, const std::exception_ptr& error);

 private:
  report::RunFailure failure_;
};

}  // namespace tare

// MemoryLog: memory growth, peak and unexplained memory of each epoch, as columns of the epochs
// table.
#pragma once

#include <memory>
#include <string>

#include "tare/callback/callback.h"
#include "tare/memory/backend.h"

namespace tare {

/// Adds three columns to every epoch, in MiB of allocated bytes on the Learner's device:
/// `used_mib`, the growth over the epoch (0 from the second epoch on, unless something leaks),
/// `peak_mib`, the highest point above the epoch's start, and `unexplained_mib`, what is in no
/// ledger at the epoch's end (see memory/snapshot.h). Exact, not sampled.
class MemoryLog final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "memory_log"; }
  Action before_epoch(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override {
    return {.columns = {"used_mib", "peak_mib", "unexplained_mib"}};
  }

 private:
  std::unique_ptr<memory::PeakScope> scope_;
  int64_t start_bytes_ = 0;
};

}  // namespace tare

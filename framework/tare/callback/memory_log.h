// Memory used and peak per epoch, as metrics in the epochs table.
#pragma once

#include <memory>
#include <string>

#include "tare/callback/callback.h"
#include "tare/memory/backend.h"

namespace tare {

/// Adds two columns to every epoch, in MiB of tracked memory on the Learner's device: `used_mib`,
/// by how much the allocated bytes grew over the epoch (0 from the second epoch on in a healthy
/// run), and `peak_mib`, how far above the epoch's start they rose. Exact, not sampled.
class MemoryLog final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "memory_log"; }
  Action before_epoch(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;

 private:
  std::unique_ptr<memory::PeakScope> scope_;
  int64_t start_bytes_ = 0;
};

}  // namespace tare

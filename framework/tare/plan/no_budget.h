// NoBudget: a scope without a budget of the host. Internal.
#pragma once

#include <cstdint>
#include <optional>

#include "tare/memory/backend.h"

namespace tare {

/// Lifts the budget of the host, which is one for the fit and not for its plan.
class NoBudget {
 public:
  NoBudget() { backend_.set_budget(std::nullopt); }
  ~NoBudget() { backend_.set_budget(budget_); }
  NoBudget(const NoBudget&) = delete;
  NoBudget& operator=(const NoBudget&) = delete;

 private:
  memory::DeviceBackend& backend_ = memory::backend(c10::kCPU);
  std::optional<int64_t> budget_ = backend_.budget();
};

}  // namespace tare

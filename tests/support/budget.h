// BudgetScope: a host budget for the length of a scope.
#pragma once

#include <cstdint>

#include "tare/memory/host_allocator.h"

namespace tare::testing {

/// Lets tensors take so many bytes above what is allocated on the host now.
class BudgetScope {
 public:
  explicit BudgetScope(int64_t more_bytes) { allow(more_bytes); }
  ~BudgetScope() { memory::host_allocator::set_budget({}); }
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

  static void allow(int64_t more_bytes) {
    memory::host_allocator::set_budget(memory::host_allocator::counters().live_bytes + more_bytes);
  }
};

}  // namespace tare::testing

// BudgetScope: a host budget for the length of a scope.
#pragma once

#include <cstdint>

#include "tare/memory/host_allocator.h"

namespace tare::testing {

/// Leaves room for so many bytes above what is allocated on the host now.
class BudgetScope {
 public:
  explicit BudgetScope(int64_t room_bytes) { leave(room_bytes); }
  ~BudgetScope() { memory::host_allocator::set_budget({}); }
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

  static void leave(int64_t room_bytes) {
    memory::host_allocator::set_budget(memory::host_allocator::counters().live_bytes + room_bytes);
  }
};

}  // namespace tare::testing

// A callback that watches micro-batches change.
#pragma once

#include <vector>

#include "learner/state.h"
#include "tare/memory/host_allocator.h"

namespace tare::testing {

/// Notes the sizes of the parts, and can make an allocation of the first step fail.
struct Watch final : Callback {
  explicit Watch(uint64_t k = 0) : fail_at(k) {}
  [[nodiscard]] std::string name() const override { return "watch"; }
  Action before_batch(FitContext& c) override {
    if (c.step == 0) memory::host_allocator::fail_at(fail_at);
    return Action::proceed;
  }
  Action after_batch(FitContext&) override {
    memory::host_allocator::fail_at(0);
    return Action::proceed;
  }
  Action on_micro_batch(FitContext& c) override {
    changes.push_back(*c.micro_batch_change);
    return Action::proceed;
  }

  uint64_t fail_at;
  std::vector<MicroBatchChange> changes{};
};

}  // namespace tare::testing

// A callback that ends a fit by an exception.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tare/callback/callback.h"

namespace tare::testing {

/// Throws behind the batch of a step, counted from 1.
struct FailAt final : Callback {
  explicit FailAt(int64_t at) : step(at) {}
  [[nodiscard]] std::string name() const override { return "fail_at"; }
  Action after_batch(FitContext& context) override {
    if (context.step == step) throw std::runtime_error("failed");
    return Action::proceed;
  }
  int64_t step;
};

}  // namespace tare::testing

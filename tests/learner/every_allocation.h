// Lets each allocation of a call fail in turn, and what a fit looks like between its steps.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "tare/callback/callback.h"

namespace tare::testing {

/// Calls `verb` with allocation k failing, for k from 1 until one call needs less than k.
/// `fail_at(k)` is called before each call, and `fail_at(0)` after it, so that nothing fails any
/// more; `check(k)` is called after each failure. Returns the number of failures; ends at the first
/// one whose check fails.
template <class Error>
uint64_t at_every_allocation(const std::function<void(uint64_t k)>& fail_at,
                             const std::function<void()>& verb,
                             const std::function<void(uint64_t k)>& check) {
  for (uint64_t k = 1;; ++k) {
    fail_at(k);
    try {
      verb();
      fail_at(0);
      return k - 1;
    } catch (const Error&) {
      fail_at(0);
    }
    check(k);
    if (::testing::Test::HasFailure()) return k;
  }
}

/// Calls a function after each batch.
class AfterBatch final : public Callback {
 public:
  explicit AfterBatch(std::function<void()> seen) : seen_(std::move(seen)) {}
  [[nodiscard]] std::string name() const override { return "after_batch"; }
  Action after_batch(FitContext&) override {
    seen_();
    return Action::proceed;
  }

 private:
  std::function<void()> seen_;
};

}  // namespace tare::testing

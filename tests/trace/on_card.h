// Fixtures of tests that need a card: on a machine without one they are skipped with the reason.
#pragma once

#include <gtest/gtest.h>

#include "contract/traits.h"

namespace tare::plan {

/// Adds to a base of fixtures that the card is ready.
template <class Base>
class OnCard : public Base {
 protected:
  void SetUp() override {
    if (const auto reason = memory::CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

}  // namespace tare::plan

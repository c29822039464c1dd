// Compares what ranks print.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tare::testing {

constexpr double kNear = 1e-6;  // ranks add in another order

/// Expects numbers near each other; lists element by element.
inline void expect_near(const nlohmann::json& got, const nlohmann::json& expected,
                        const std::string& what) {
  if (!expected.is_number()) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (size_t i = 0; i < expected.size(); ++i)
      expect_near(got[i], expected[i], what + ' ' + std::to_string(i));
    return;
  }
  ASSERT_TRUE(got.is_number()) << what;
  const auto value = expected.get<double>();
  EXPECT_NEAR(got.get<double>(), value, kNear * std::max(1.0, std::abs(value))) << what;
}

}  // namespace tare::testing

// Which texts are bools, integers and numbers.
#include "tare/config/scalar.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace tare::config {
namespace {

TEST(Scalar, BoolsAreTrueAndFalseOnly) {
  EXPECT_EQ(as_bool("true"), true);
  EXPECT_EQ(as_bool("False"), false);
  for (const char* text : {"", "yes", "no", "on", "1", "0", "tRue", " true"})
    EXPECT_EQ(as_bool(text), std::nullopt) << text;
}

TEST(Scalar, IntegersAreDecimal) {
  EXPECT_EQ(as_integer("0"), 0);
  EXPECT_EQ(as_integer("+12"), 12);
  EXPECT_EQ(as_integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  for (const char* text : {"", "+", "-", "+-1", "--1", "1.0", "1e3", "0x10", "1_000", " 1", "1 ",
                           "9223372036854775808", "inf"})
    EXPECT_EQ(as_integer(text), std::nullopt) << text;
}

TEST(Scalar, NumbersTakeYamlsInfinityAndNan) {
  EXPECT_EQ(as_number("1e-3"), 1e-3);
  EXPECT_EQ(as_number(".5"), 0.5);
  EXPECT_EQ(as_number("-.5"), -0.5);
  EXPECT_EQ(as_number("+1."), 1.0);
  EXPECT_EQ(as_number("-.Inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(as_number(".NaN").value()));
  for (const char* text : {"", ".", "-", "inf", "nan", "-nan", "1e999", "1,5", "1e", "0x1p3", "1f"})
    EXPECT_EQ(as_number(text), std::nullopt) << text;
}

TEST(Scalar, NumberTextReadsBackToTheSameBits) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    const auto back = as_number(number_text(value));
    ASSERT_TRUE(back.has_value()) << number_text(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(*back));
    } else {
      EXPECT_EQ(std::bit_cast<uint64_t>(*back), std::bit_cast<uint64_t>(value));
    }
  }
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1), "1");
}

TEST(Scalar, KnowsWhatOtherReadersTakeForSomethingElse) {
  for (const char* text :
       {"",   "~",   "null",       "NULL",  "true", "No",   "on",    "y", "1",  "-1",  "+.5",
        ".5", "1e3", "2024-01-01", "12:30", "0x1F", ".inf", "-.inf", "-", "<<", "a\rb"})
    EXPECT_FALSE(reads_as_text(text)) << text;
  for (const char* text :
       {"a", "auto", "cuda:0", "./x", "../x", "/a/b", "-x", "nulls", "yes!", "."})
    EXPECT_TRUE(reads_as_text(text)) << text;
}

}  // namespace
}  // namespace tare::config

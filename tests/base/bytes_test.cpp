// Byte counts, times and numbers, to text and back.
#include "tare/base/bytes.h"

#include <gtest/gtest.h>

#include <limits>

namespace tare {
namespace {

TEST(Bytes, LiteralsAreBinary) {
  static_assert(1_KiB == 1024);
  static_assert(3_MiB == 3 * 1024 * 1024);
  static_assert(2_GiB == int64_t{2} << 30);
}

TEST(FormatBytes, HasAtMostOneDigitBehindThePoint) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(46871347), "44.7 MiB");
  EXPECT_EQ(format_bytes(-3_GiB / 2), "-1.5 GiB");
}

TEST(FormatBytes, NeverPrintsAThousandAndTwentyFourOfAUnit) {
  EXPECT_EQ(format_bytes(1_MiB - 1), "1 MiB");
  EXPECT_EQ(format_bytes(1_GiB - 1), "1 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::max()), "8 EiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::min()), "-8 EiB");
}

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("123"), 123);
  EXPECT_EQ(parse_bytes("123 B"), 123);
  EXPECT_EQ(parse_bytes("8GiB"), 8_GiB);
  EXPECT_EQ(parse_bytes("8 GB"), 8'000'000'000);
  EXPECT_EQ(parse_bytes("512m"), 512_MiB);
  EXPECT_EQ(parse_bytes("1.5e9"), 1'500'000'000);
  EXPECT_EQ(parse_bytes("1.5 kB"), 1500);
  EXPECT_EQ(parse_bytes(" 2 tib "), 2048_GiB);
}

TEST(ParseBytes, IsExactForWholeNumbers) {
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993);
  EXPECT_EQ(parse_bytes("9223372036854775807"), std::numeric_limits<int64_t>::max());
}

TEST(ParseBytes, RefusesWhatIsNoCount) {
  for (const char* text : {"", " ", "-1", "+1", "GiB", "1 XiB", "1 GiBB", "1 G i B", "0x10", "nan",
                           "inf", "1e400", "9223372036854775808", "8388608 TiB", "1,5 GB", "1.2.3"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(FormatSeconds, ChoosesTheUnit) {
  EXPECT_EQ(format_seconds(0), "0 us");
  EXPECT_EQ(format_seconds(12e-6), "12 us");
  EXPECT_EQ(format_seconds(0.25e-3), "250 us");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(12.34), "12.3 s");
  EXPECT_EQ(format_seconds(125), "2 min 05 s");
  EXPECT_EQ(format_seconds(-125), "-2 min 05 s");
  EXPECT_EQ(format_seconds(11220), "3 h 07 min");
}

TEST(FormatSeconds, RoundsIntoTheNextUnit) {
  EXPECT_EQ(format_seconds(0.99996e-3), "1 ms");
  EXPECT_EQ(format_seconds(0.9999), "1 s");
  EXPECT_EQ(format_seconds(59.96), "1 min 00 s");
  EXPECT_EQ(format_seconds(3599.7), "1 h 00 min");
}

TEST(FormatSeconds, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::quiet_NaN()), "unknown");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(format_seconds(1e300), "2500000000000 h 00 min");
}

TEST(FormatCount, GroupsByThree) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-123456), "-123,456");
  EXPECT_EQ(format_count(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

}  // namespace
}  // namespace tare

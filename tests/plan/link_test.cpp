// Tests the time of exchanges, and how links, times and rates are read.
#include "tare/plan/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tare/base/error.h"

namespace tare::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Link kLine{.bytes_per_s = 1000, .latency_s = 0.5};

TEST(Exchange, TakesWhatItsFormulasSay) {
  EXPECT_DOUBLE_EQ(all_reduce_s(4, 2'000, kLine), 6 * (0.5 + 0.5));
  EXPECT_DOUBLE_EQ(reduce_s(4, 2'000, kLine), 3 * (0.5 + 0.5) + (0.5 + 1.5));
  EXPECT_DOUBLE_EQ(broadcast_s(4, 2'000, kLine), 2 * 2.5);
  EXPECT_DOUBLE_EQ(broadcast_s(5, 2'000, kLine), 3 * 2.5);
  EXPECT_DOUBLE_EQ(agree_s(4, kLine), 1.5);
  for (const auto& one : {all_reduce_s, reduce_s, broadcast_s}) EXPECT_EQ(one(1, 2'000, kLine), 0);
  EXPECT_EQ(agree_s(1, kLine), 0);
}

TEST(Link, IsReadInBytesAndInBits) {
  for (const auto& [text, bytes, seconds] :
       {std::tuple("25GB/s,5us", 25e9, 5e-6), std::tuple("100Mbit/s, 10ms", 12.5e6, 10e-3),
        std::tuple("1.5GiB/s,0us", 1.5 * 0x1p30, 0.0), std::tuple(" 9600kbit/s ,2s", 1.2e6, 2.0)}) {
    const Link link = parse_link(text, "--link");
    EXPECT_DOUBLE_EQ(link.bytes_per_s, bytes) << text;
    EXPECT_DOUBLE_EQ(link.latency_s, seconds) << text;
  }
  EXPECT_EQ((Link{.bytes_per_s = 25e9, .latency_s = 5e-6}.str()), "25 GB/s, 5 us");
}

std::string refusal(const auto& read) {
  try {
    read();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Link, RefusesAnyOtherText) {
  for (const char* text : {"", "25GB/s", "25GB/s,", ",5us", "25GB,5us", "25GB/s,5", "0GB/s,5us",
                           "-1GB/s,5us", "nanGB/s,5us", "infGB/s,1us", "25GB/s,5us,1us", "x,y"})
    EXPECT_THAT(refusal([&] { (void)parse_link(text, "--link"); }),
                AllOf(HasSubstr("--link must be a bandwidth above 0 and a latency"),
                      HasSubstr("such as 25GB/s,5us")))
        << text;
}

TEST(Link, TimesAndRatesAreReadWithTheirUnits) {
  EXPECT_DOUBLE_EQ(parse_seconds("250ms", "--batch-time"), 0.25);
  EXPECT_DOUBLE_EQ(parse_rate("120TFLOP/s", "--rate"), 120e12);
  EXPECT_DOUBLE_EQ(parse_rate("0.5 PFLOP/s", "--rate"), 5e14);
  for (const char* text : {"0s", "-1s", "5", "five"})
    EXPECT_THAT(refusal([&] { (void)parse_seconds(text, "--batch-time"); }),
                HasSubstr("--batch-time must be a time above 0"));
  for (const char* text : {"0TFLOP/s", "120", "120TFLOPS"})
    EXPECT_THAT(refusal([&] { (void)parse_rate(text, "--rate"); }),
                HasSubstr("--rate must be operations by the second"));
}

TEST(Cluster, IsAsSlowAsItsSlowestPart) {
  const Cluster cluster{.per_machine = 4,
                        .inside = {.bytes_per_s = 100, .latency_s = 3},
                        .between = {.bytes_per_s = 200, .latency_s = 7}};
  EXPECT_EQ(cluster.of(4).bytes_per_s, 100);
  EXPECT_EQ(cluster.of(4).latency_s, 3);
  EXPECT_EQ(cluster.of(5).bytes_per_s, 100);
  EXPECT_EQ(cluster.of(5).latency_s, 7);
  Cluster alone = cluster;
  alone.per_machine = 1;
  EXPECT_EQ(alone.of(2).bytes_per_s, 200);
}

}  // namespace
}  // namespace tare::plan

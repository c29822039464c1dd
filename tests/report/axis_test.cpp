// Ticks, labels and places on axes.
#include "tare/report/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tare::report {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> all;
  for (const auto& tick : axis.ticks) all.push_back(tick.label);
  return all;
}

TEST(Axis, PutsTicksAtRoundValues) {
  EXPECT_THAT(labels(round_axis(0.31, 0.91, Unit::number)),
              ElementsAre("0.2", "0.4", "0.6", "0.8", "1"));
  EXPECT_THAT(labels(exact_axis(1, 5, Unit::count)), ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_THAT(labels(exact_axis(1, 4200, Unit::count)),
              ElementsAre("1,000", "2,000", "3,000", "4,000"));
  EXPECT_THAT(labels(exact_axis(0, 1.1e-4, Unit::number)), ElementsAre("0", "5e-05", "0.0001"));
}

TEST(Axis, CountsBytesInPowersOfTwo) {
  EXPECT_THAT(labels(round_axis(0, 90e6, Unit::bytes)),
              ElementsAre("0 B", "32 MiB", "64 MiB", "96 MiB"));
  EXPECT_THAT(labels(round_axis(0, 3, Unit::bytes)), ElementsAre("0 B", "1 B", "2 B", "3 B"));
}

TEST(Axis, ChoosesTheUnitOfTime) {
  EXPECT_THAT(labels(exact_axis(0, 0.4, Unit::seconds)),
              ElementsAre("0 s", "0.1 s", "0.2 s", "0.3 s", "0.4 s"));
  EXPECT_THAT(labels(exact_axis(0, 600, Unit::seconds)),
              ElementsAre("0 min", "2 min", "4 min", "6 min", "8 min", "10 min"));
  EXPECT_THAT(labels(exact_axis(0, 8 * 3600, Unit::seconds)),
              ElementsAre("0 h", "2 h", "4 h", "6 h", "8 h"));
}

TEST(Axis, HasALengthEvenForOneValue) {
  for (const Unit unit : {Unit::number, Unit::count, Unit::bytes, Unit::seconds}) {
    for (const double value : {0.0, 3.0, 1e12}) {
      const Axis axis = round_axis(value, value, unit);
      EXPECT_LT(axis.low, axis.high) << value;
      EXPECT_GE(axis.ticks.size(), 2U) << value;
      EXPECT_LE(axis.ticks.size(), 12U) << value;
    }
  }
}

TEST(Axis, PlacesValuesAndTicksWithinItsEnds) {
  for (const Axis& axis : {exact_axis(-3, 17, Unit::number), round_axis(-3, 17, Unit::number),
                           round_axis(1e-9, 2e-9, Unit::number), log_axis(0.002, 40)}) {
    EXPECT_NEAR(axis.place(axis.low), 0, 1e-12);
    EXPECT_NEAR(axis.place(axis.high), 1, 1e-12);
    for (const auto& tick : axis.ticks) {
      EXPECT_GE(axis.place(tick.value), -1e-6);
      EXPECT_LE(axis.place(tick.value), 1 + 1e-6);
    }
  }
}

TEST(Axis, IsLogarithmicInPowersOfTen) {
  const Axis axis = log_axis(0.002, 40);
  EXPECT_THAT(labels(axis), ElementsAre("0.001", "0.01", "0.1", "1", "10", "100"));
  EXPECT_NEAR(axis.place(0.1), 0.4, 1e-9);
  EXPECT_LE(log_axis(1e-300, 1e300).ticks.size(), 7U);
}

TEST(Axis, LabelsOfPowersHaveOneForm) {
  const auto labels = [](const Axis& axis) {
    std::vector<std::string> all;
    for (const auto& tick : axis.ticks) all.push_back(tick.label);
    return all;
  };
  EXPECT_EQ(labels(log_axis(1e-3, 1)), (std::vector<std::string>{"0.001", "0.01", "0.1", "1"}));
  EXPECT_EQ(labels(log_axis(1e-5, 1e-2)),
            (std::vector<std::string>{"1e-5", "1e-4", "1e-3", "1e-2"}));
}

}  // namespace
}  // namespace tare::report

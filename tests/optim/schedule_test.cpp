// Learning rates by step, against fastai.
#include "tare/optim/schedule.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tare/base/error.h"

namespace tare {
namespace {

// The golden numbers are printed with ten digits.
constexpr double kRelative = 1e-9;

void expect_near(double got, double wanted, double relative = kRelative) {
  EXPECT_NEAR(got, wanted, std::abs(wanted) * relative);
}

// fastai v1 with 100 steps and a maximal rate of 1e-2.
TEST(OneCycle, EqualsFastai) {
  const auto lr = [](int64_t step) { return one_cycle_lr(step, 100, 1e-2); };
  expect_near(lr(0), 4e-4);
  expect_near(lr(15), 5.2e-3);
  EXPECT_EQ(lr(30), 1e-2);
  expect_near(lr(31), 9.994965353e-3);
  expect_near(lr(65), 5.00002e-3);
  expect_near(lr(99), 5.074647e-6, 1e-6);  // printed with seven digits
  expect_near(lr(100), 4e-8);
  EXPECT_EQ(one_cycle_momentum(0, 100), 0.95);
  EXPECT_EQ(one_cycle_momentum(30, 100), 0.85);
  expect_near(one_cycle_momentum(99, 100), 0.9499497, 1e-7);
  expect_near(one_cycle_momentum(100, 100), 0.95);
}

TEST(OneCycle, TakesItsShape) {
  const OneCycle shape{
      .div = 10, .pct_start = 0.5, .final_div = 100, .momentum_start = 0.8, .momentum_lowest = 0.6};
  expect_near(one_cycle_lr(0, 10, 1, shape), 0.1);
  EXPECT_EQ(one_cycle_lr(5, 10, 1, shape), 1);
  expect_near(one_cycle_lr(10, 10, 1, shape), 0.01);
  expect_near(one_cycle_momentum(0, 10, shape), 0.8);
  EXPECT_EQ(one_cycle_momentum(5, 10, shape), 0.6);
}

TEST(OneCycle, EachPhaseHasAtLeastOneStep) {
  for (const int64_t total : {1, 2, 3}) {
    expect_near(one_cycle_factor(0, total), 1.0 / 25);
    EXPECT_EQ(one_cycle_factor(1, total), 1) << total;
  }
  EXPECT_THROW((void)one_cycle_factor(-1, 10), ConfigError);
  EXPECT_THROW((void)one_cycle_factor(11, 10), ConfigError);
  EXPECT_THROW((void)one_cycle_factor(0, 0), ConfigError);
}

TEST(Schedule, CoursesOfEachKind) {
  EXPECT_EQ((Schedule{.kind = "constant"}).factor(7, 10), 1);
  expect_near((Schedule{.kind = "linear"}).factor(5, 10), 0.5);
  expect_near((Schedule{.kind = "linear", .final_factor = 0.2}).factor(5, 10), 0.6);
  expect_near((Schedule{.kind = "cosine"}).factor(5, 10), 0.5);
  EXPECT_EQ((Schedule{.kind = "cosine"}).factor(0, 10), 1);
  expect_near((Schedule{.kind = "cosine", .final_factor = 0.5}).factor(5, 10), 0.75);
  expect_near((Schedule{.kind = "exponential", .final_factor = 0.01}).factor(5, 10), 0.1);
  expect_near((Schedule{.kind = "one_cycle"}).factor(15, 100), 0.52);
}

TEST(Schedule, WarmUpRisesToOneAndTheRestFollows) {
  const Schedule schedule{.kind = "linear", .warmup = 0.2};
  expect_near(schedule.factor(0, 20), 0.2);
  expect_near(schedule.factor(3, 20), 0.8);
  EXPECT_EQ(schedule.factor(4, 20), 1);
  expect_near(schedule.factor(12, 20), 0.5);
}

TEST(Schedule, OnlyOneCycleMovesMomentum) {
  for (const char* kind : {"constant", "linear", "cosine", "exponential"}) {
    EXPECT_FALSE((Schedule{.kind = kind}).momentum(0, 10).has_value()) << kind;
  }
  EXPECT_EQ((Schedule{.kind = "one_cycle"}).momentum(30, 100), 0.85);
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  EXPECT_NO_THROW((Schedule{.kind = "cosine", .warmup = 0.1}).check());
  EXPECT_THROW((Schedule{.kind = "cosinus"}).check(), ConfigError);
  EXPECT_THROW((Schedule{.kind = "one_cycle", .warmup = 0.1}).check(), ConfigError);
  EXPECT_THROW((Schedule{.kind = "exponential"}).check(), ConfigError);
  EXPECT_THROW((Schedule{.final_factor = 2}).check(), ConfigError);
  EXPECT_THROW((Schedule{.kind = "constant", .final_factor = 0.5}).check(), ConfigError);
  EXPECT_THROW((Schedule{.kind = "one_cycle", .final_factor = 0.5}).check(), ConfigError);
  EXPECT_THROW((Schedule{.kind = "cosine", .one_cycle = {.div = 2}}).check(), ConfigError);
  EXPECT_NO_THROW((Schedule{.kind = "one_cycle", .one_cycle = {.div = 2}}).check());
  EXPECT_THROW((Schedule{.one_cycle = {.div = 0.5}}).check(), ConfigError);
}

TEST(LearningRate, OneRateForAllGroups) {
  const LearningRate rate = 1e-3;
  EXPECT_THAT(rate.per_group(3), ::testing::ElementsAre(1e-3, 1e-3, 1e-3));
}

TEST(LearningRate, RangeIsGeometric) {
  const LearningRate rate = lr_range(1e-5, 1e-3);
  const auto rates = rate.per_group(3);
  ASSERT_EQ(rates.size(), 3u);
  EXPECT_EQ(rates[0], 1e-5);
  expect_near(rates[1], 1e-4);
  EXPECT_EQ(rates[2], 1e-3);
  EXPECT_THAT(rate.per_group(1), ::testing::ElementsAre(1e-3));
}

TEST(LearningRate, RefusesRatesThatAreNotPositive) {
  EXPECT_THROW((void)LearningRate(0.0).per_group(1), ConfigError);
  EXPECT_THROW((void)LearningRate(NAN).per_group(1), ConfigError);
  EXPECT_THROW((void)LearningRate(lr_range(1e-3, -1)).per_group(2), ConfigError);
  EXPECT_THROW((void)LearningRate(1e-3).per_group(0), ConfigError);
}

TEST(LearningRate, IsReadFromBothForms) {
  const auto read = [](const char* text) {
    return config::read<LearningRate>(config::parse_text(text, "test"));
  };
  EXPECT_EQ(std::get<double>(read("1e-3")), 1e-3);
  EXPECT_EQ(std::get<LrRange>(read("{from: 1e-5, to: 1e-3}")), lr_range(1e-5, 1e-3));
  EXPECT_THROW((void)read("{from: 1e-5, till: 1e-3}"), ConfigError);
  EXPECT_THROW((void)read("fast"), ConfigError);
}

TEST(LearningRate, IsWrittenAsItIsRead) {
  for (const LearningRate& rate : {LearningRate(0.1), LearningRate(lr_range(1e-5, 1e-3))}) {
    const std::string text = config::to_yaml(config::to_node(rate));
    EXPECT_EQ(config::read<LearningRate>(config::parse_text(text, "test")), rate) << text;
  }
}

}  // namespace
}  // namespace tare

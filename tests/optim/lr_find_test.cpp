// The curve of a search for a learning rate, and what it suggests, against fastai.
#include "tare/optim/lr_find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/config/node.h"
#include "tare/optim/schedule.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

constexpr double kSumRounding = 1e-12;  // of sums of a hundred losses

TEST(LrFindCurve, SmoothsAndSuggestsAsFastaiDoes) {
  const auto golden =
      nlohmann::json::parse(io::read_text(std::string(TARE_GOLDEN) + "/lr_find.json"));
  ASSERT_GT(golden.size(), 5U);
  for (const auto& one : golden) {
    LrFindCurve curve({});
    const auto losses = one["losses"].get<std::vector<double>>();
    for (size_t i = 0; i < losses.size() && !curve.finished(); ++i)
      curve.add(1e-7 * std::pow(1e8, static_cast<double>(i) / 100), losses[i]);
    const auto smoothed = one["smoothed"].get<std::vector<double>>();
    ASSERT_EQ(curve.points().size(), smoothed.size()) << one["name"];
    for (size_t i = 0; i < smoothed.size(); ++i)
      ASSERT_NEAR(curve.points()[i].smoothed, smoothed[i], kSumRounding * smoothed[i]) << i;
    LrFindResult result{.points = curve.points(), .steps = 100};
    suggest(result);
    ASSERT_TRUE(result.valley.has_value()) << one["name"];
    EXPECT_NEAR(*result.valley / one["valley"].get<double>(), 1, kSumRounding) << one["name"];
    EXPECT_NEAR(*result.steepest / one["steepest"].get<double>(), 1, kSumRounding) << one["name"];
    EXPECT_NEAR(*result.minimum / one["minimum"].get<double>(), 1, kSumRounding) << one["name"];
  }
}

TEST(LrFindCurve, EndsAtALossThatIsNotFinite) {
  LrFindCurve curve({});
  curve.add(1e-3, 1);
  EXPECT_FALSE(curve.finished());
  curve.add(1e-2, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(curve.finished());
  EXPECT_TRUE(curve.stopped_early());
  EXPECT_EQ(curve.points().size(), 1U);
}

TEST(LrFindCurve, GoesToItsLastStepIfItMayNotStopEarly) {
  LrFindCurve curve({.steps = 8, .stop_early = false});
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(curve.finished());
    curve.add(1e-3 * (i + 1), std::pow(10, i));
  }
  EXPECT_TRUE(curve.finished());
  EXPECT_FALSE(curve.stopped_early());
}

TEST(LrFindCurve, DoesNotEndBecauseTheFirstBatchIsAnEasyOne) {
  LrFindCurve curve{LrFindOptions{}};
  for (int i = 0; i < 60; ++i) {
    ASSERT_FALSE(curve.finished()) << i;
    curve.add(1e-6 * std::pow(1.1, i), i == 0 ? 0.05 : 2 - 0.01 * i);
  }
  for (int i = 0; i < 30 && !curve.finished(); ++i) curve.add(1, 1000);
  EXPECT_TRUE(curve.stopped_early());
}

LrFindResult valley() {
  LrFindResult result;
  for (int i = 0; i < 40; ++i) {
    const double loss = 2 + std::cos(i * 0.1);
    result.points.push_back({.lr = 1e-5 * std::pow(10, i * 0.1), .loss = loss, .smoothed = loss});
  }
  suggest(result);
  return result;
}

TEST(LrFindResult, TakesTheSuggestionThatItIsAskedFor) {
  LrFindResult result = valley();
  EXPECT_EQ(result.lr(), *result.valley);
  result.suggestion = "steepest";
  EXPECT_EQ(result.lr(), *result.steepest);
  result.suggestion = "minimum";
  EXPECT_EQ(result.lr(), *result.minimum);
  EXPECT_NE(*result.minimum, *result.valley);
  EXPECT_NE(*result.minimum, *result.steepest);
}

TEST(LrFindResult, HasNoSuggestionWhereTheLossNeverFalls) {
  LrFindResult result;
  for (int i = 0; i < 20; ++i)
    result.points.push_back({.lr = 1e-3 * (i + 1), .loss = 1.0 + i, .smoothed = 1.0 + i});
  suggest(result);
  EXPECT_FALSE(result.valley || result.steepest || result.minimum);
  EXPECT_THROW((void)result.lr(), StateError);
  EXPECT_THAT(result.str(), HasSubstr("the loss fell at none of them"));
}

TEST(LrFindResult, PrintsAPlotWithinItsWidth) {
  const std::string text = valley().str(50);
  EXPECT_THAT(text, HasSubstr("suggested: valley"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 12 + 2 + 1) << text;
  const std::string plot = text.substr(0, text.find("40 steps"));
  size_t start = 0;
  for (size_t end; (end = plot.find('\n', start)) != std::string::npos; start = end + 1)
    EXPECT_LE(end - start, 50U) << text;
}

TEST(LrFindOptions, AreChecked) {
  EXPECT_NO_THROW(LrFindOptions{}.check("test"));
  EXPECT_THROW((LrFindOptions{.start = 0}.check("test")), ConfigError);
  EXPECT_THROW((LrFindOptions{.start = 1, .end = 1}.check("test")), ConfigError);
  EXPECT_THROW((LrFindOptions{.end = INFINITY}.check("test")), ConfigError);
  EXPECT_THROW((LrFindOptions{.steps = 5}.check("test")), ConfigError);
  EXPECT_THROW((LrFindOptions{.suggestion = "best"}.check("test")), ConfigError);
}

TEST(LearningRate, MayBeASearch) {
  const auto read = [](const char* text) {
    return config::read<LearningRate>(config::parse_text(text, "test"));
  };
  ASSERT_TRUE(read("find").search());
  EXPECT_EQ(*read("find").search(), LrFindOptions{});
  const LearningRate own = read("{find: {steps: 20, suggestion: steepest}}");
  ASSERT_TRUE(own.search());
  EXPECT_EQ(own.search()->steps, 20);
  EXPECT_EQ(own.search()->suggestion, "steepest");
  for (const LearningRate& rate : {LearningRate(LrFindOptions{}), own}) {
    const std::string text = config::to_yaml(config::to_node(rate));
    EXPECT_EQ(read(text.c_str()), rate) << text;
  }
  EXPECT_FALSE(read("0.1").search());
  EXPECT_THROW((void)own.per_group(1), ConfigError);
  EXPECT_THROW((void)read("{find: {steps: 20}, from: 0.1}"), ConfigError);
  EXPECT_THROW((void)read("{find: {step: 20}}"), ConfigError);
}

}  // namespace
}  // namespace tare

// ReduceOnPlateau: when it lowers the rates, how far, and how it resumes.
#include "tare/callback/reduce_on_plateau.h"

#include <gtest/gtest.h>

#include <cmath>

#include "callback/fake_learner.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

/// The factors after epochs with these losses and a rate of 1 before it.
std::vector<double> factors(ReduceOnPlateau& callback, FitContext& c,
                            const std::vector<double>& losses) {
  std::vector<double> all;
  for (const double loss : losses) {
    c.lr = c.rate_factor;
    ++c.step;
    callback.after_step(c);
    c.row.valid_loss = loss;
    callback.after_epoch(c);
    all.push_back(c.rate_factor);
  }
  return all;
}

TEST(ReduceOnPlateau, LowersTheRatesAfterEachPlateau) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  ReduceOnPlateau callback({.factor = 0.5, .patience = 1});
  callback.before_fit(c);
  EXPECT_EQ(factors(callback, c, {3, 2, 2, 2, 2, 2, 1, 1}),
            (std::vector<double>{1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25}));
}

TEST(ReduceOnPlateau, LooksAtValidationsInsideEpochsToo) {
  FakeLearner learner;
  FitContext c{.learner = learner, .lr = 1};
  ReduceOnPlateau callback({.factor = 0.5, .patience = 1});
  callback.before_fit(c);
  callback.after_step(c);
  c.inside_epoch = true;
  std::vector<double> all;
  for (const double loss : {3.0, 3.0, 3.0, 2.0}) {
    c.row.valid_loss = loss;
    callback.after_validate(c);
    all.push_back(c.rate_factor);
  }
  EXPECT_EQ(all, (std::vector<double>{1, 1, 0.5, 0.5}));
  callback.after_epoch(c);  // which ends with the last of them
  c.inside_epoch = false;
  callback.after_epoch(c);
  EXPECT_EQ(c.rate_factor, 0.5) << "one look without improvement";
  callback.after_epoch(c);
  EXPECT_EQ(c.rate_factor, 0.25);
}

TEST(ReduceOnPlateau, ContinuesFromItsStateAndANewFitBeginsAnew) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  ReduceOnPlateau first({.factor = 0.5, .patience = 2}), second({.factor = 0.5, .patience = 2});
  first.before_fit(c);
  (void)factors(first, c, {2, 2, 2});
  second.load_state(first.state());
  second.before_fit(c);
  EXPECT_EQ(factors(second, c, {2}), std::vector<double>{0.5});
  c.step = 0;
  c.rate_factor = 1;
  second.before_fit(c);
  EXPECT_EQ(factors(second, c, {9, 9, 9}), (std::vector<double>{1, 1, 1}));
  for (const char* state : {"", "{}", R"({"best":1,"waited":-1,"lr":1})",
                            R"({"best":"1","waited":1,"lr":1})", R"({"best":1,"waited":1})"})
    EXPECT_THROW(first.load_state(state), FormatError) << state;
}

TEST(ReduceOnPlateau, StopsAtTheLowestRate) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  ReduceOnPlateau callback({.factor = 0.1, .patience = 0, .min_lr = 0.02});
  callback.before_fit(c);
  const auto all = factors(callback, c, {1, 1, 1, 1});
  EXPECT_EQ(all[1], 0.1);
  EXPECT_NEAR(all[2], 0.02, 1e-15);  // the rounding of a product
  EXPECT_EQ(all[3], all[2]);
  EXPECT_THROW(ReduceOnPlateau({.factor = 1}), ConfigError);
  EXPECT_THROW(ReduceOnPlateau({.patience = -1}), ConfigError);
  EXPECT_THROW(ReduceOnPlateau({.min_lr = -1}), ConfigError);
}

TEST(ReduceOnPlateau, TakesTheDirectionThatTheMetricSays) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  ReduceOnPlateau callback({.monitor = {.figure = "spread"}, .factor = 0.5, .patience = 0});
  callback.before_fit(c);
  for (const double spread : {3.0, 2.0, 1.0}) {
    c.row.metrics = {{.name = "spread", .value = spread, .lower_is_better = true}};
    (void)factors(callback, c, {0});
  }
  EXPECT_EQ(c.rate_factor, 1) << "it improves";
}

TEST(ReduceOnPlateau, WarnsOnceWhereTheRateIsBelowTheLowest) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  ReduceOnPlateau callback({.patience = 0, .min_lr = 3});
  callback.before_fit(c);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(factors(callback, c, {1, 1, 1}), (std::vector<double>{1, 1, 1}));
  const std::string text = ::testing::internal::GetCapturedStderr();
  const std::string warning = "no effect while the rate is below min_lr, 3";
  const size_t first = text.find(warning);
  ASSERT_NE(first, text.npos) << text;
  EXPECT_EQ(text.find(warning, first + 1), text.npos) << text;
}

}  // namespace
}  // namespace tare::testing

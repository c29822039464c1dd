// Callbacks that follow a figure: the best, the end, the first NaN.
#include "tare/callback/monitor.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "callback/fake_learner.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

EpochRow row(double valid_loss, double accuracy) {
  EpochRow r;
  r.train_loss = 9;
  r.valid_loss = valid_loss;
  r.metrics = {{"accuracy", accuracy}, {"error_rate", 1 - accuracy}};
  return r;
}

Action epoch(Callback& callback, FitContext& c, double valid_loss, double accuracy = 0) {
  c.row = row(valid_loss, accuracy);
  ++c.step;
  return callback.after_epoch(c);
}

TEST(Monitor, ReadsAnyFigureAndKnowsItsDirection) {
  EXPECT_EQ(Monitor{.figure = "train_loss"}.value(row(1, 2)), 9);
  EXPECT_EQ(Monitor{.figure = "accuracy"}.value(row(1, 2)), 2);
  EXPECT_THROW((void)Monitor{.figure = "accurcy"}.value(row(1, 2)), ConfigError);
  EXPECT_TRUE(Monitor{}.improves(row(0.5, 0), 0.6));
  EXPECT_FALSE(Monitor{}.improves(row(0.7, 0), 0.6));
  EXPECT_TRUE(Monitor{.figure = "accuracy"}.improves(row(0, 0.7), 0.6));
  EXPECT_TRUE(Monitor{.figure = "error_rate"}.improves(row(0, 0.5), 0.6));
  EXPECT_FALSE((Monitor{.min_delta = 0.2}.improves(row(0.5, 0), 0.6)));
  EXPECT_FALSE(Monitor{}.improves(row(std::nan(""), 0), std::nullopt));
  EXPECT_TRUE((Monitor{.figure = "accuracy", .lower_is_better = true}.improves(row(0, 0.5), 0.6)));
}

TEST(Monitor, TakesTheDirectionThatTheMetricSays) {
  const Monitor monitor{.figure = "figure"};
  EpochRow row{.metrics = {{"figure", 0.5, true}}};
  EXPECT_TRUE(monitor.improves(row, 0.6));
  row.metrics.front().lower_is_better = false;
  EXPECT_FALSE(monitor.improves(row, 0.6));
  EXPECT_TRUE((Monitor{.figure = "figure", .lower_is_better = true}.improves(row, 0.6)));
  row.metrics = {{"no_loss", 0.5, false}};
  EXPECT_TRUE((Monitor{.figure = "no_loss"}.improves(row, 0.4)));
  row.metrics.front().lower_is_better.reset();
  EXPECT_FALSE((Monitor{.figure = "no_loss"}.improves(row, 0.4))) << "as its name says";
}

TEST(SaveBest, SavesAtEachImprovementAndRestoresTheLast) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  SaveBest best({.monitor = {.figure = "accuracy"}});
  best.before_fit(c);
  for (const double a : {0.5, 0.4, 0.7, 0.6}) epoch(best, c, 0, a);
  EXPECT_EQ(learner.saved.size(), 2U);
  best.after_fit(c);
  EXPECT_EQ(learner.restored, std::vector<std::string>{"best"});
  EXPECT_DOUBLE_EQ(*best.best(), 0.7);
  c.interrupted = true;
  best.after_fit(c);
  EXPECT_EQ(learner.restored.size(), 1U) << "a stopped fit continues with its last weights";
  c.interrupted = false;

  SaveBest resumed({.monitor = {.figure = "accuracy"}});
  resumed.load_state(best.state());
  epoch(resumed, c, 0, 0.65);
  EXPECT_EQ(learner.saved.size(), 2U) << "the best so far survives a resume";
  for (const char* state : {"", "[]", "{}", R"({"best": "0.7"})"})
    EXPECT_THROW(resumed.load_state(state), FormatError) << state;
  EXPECT_DOUBLE_EQ(*resumed.best(), 0.7);
}

TEST(SaveBest, RestoresNothingAfterAnError) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  SaveBest best;
  best.before_fit(c);
  epoch(best, c, 0.5);
  c.error = std::make_exception_ptr(std::runtime_error("x"));
  best.after_fit(c);
  EXPECT_TRUE(learner.restored.empty());
}

TEST(SaveBest, AFailedSaveIsAWarningAndTheBestIsTheOneThatWasSaved) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  SaveBest best;
  best.before_fit(c);
  epoch(best, c, 0.5);
  learner.full = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(epoch(best, c, 0.3), Action::proceed);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the best weights so far were not saved"),
            std::string::npos);
  EXPECT_EQ(best.best(), 0.5) << "what after_fit() restores";
  learner.full = false;
  epoch(best, c, 0.4);
  EXPECT_EQ(best.best(), 0.4);
  EXPECT_EQ(learner.saved.size(), 2U);
}

TEST(SaveBest, SaysThatTheBestWeightsAreLostUnlessTheyAreTheLast) {
  const auto lost = [](const std::vector<double>& losses, size_t full_from) {
    FakeLearner learner;
    FitContext c{.learner = learner};
    SaveBest best;
    best.before_fit(c);
    ::testing::internal::CaptureStderr();
    for (size_t i = 0; i < losses.size(); ++i) {
      learner.full = i == full_from;
      c.row = row(losses[i], 0);
      c.row.epoch = static_cast<int64_t>(i) + 1;
      ++c.step;
      best.after_epoch(c);
    }
    best.after_fit(c);
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(warnings.find("so that they are lost") != std::string::npos, best.is_lost());
    return std::pair(best.is_lost(), learner.restored.size());
  };
  EXPECT_EQ(lost({0.5, 0.3, 0.4}, 1), std::pair(true, size_t{1}))
      << "those of epoch 3 are restored";
  EXPECT_EQ(lost({0.5, 0.4, 0.3}, 2), std::pair(false, size_t{0})) << "the model has the best";
  EXPECT_EQ(lost({0.5, 0.3, 0.2}, 1), std::pair(false, size_t{1})) << "a better one is saved";
  EXPECT_EQ(lost({0.5, 0.4, 0.3}, 9), std::pair(false, size_t{1}));
}

TEST(EarlyStopping, WaitsForItsPatience) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  EarlyStopping stop({.patience = 1});
  stop.before_fit(c);
  EXPECT_EQ(epoch(stop, c, 0.5), Action::proceed);
  EXPECT_EQ(epoch(stop, c, 0.6), Action::proceed);
  EXPECT_EQ(epoch(stop, c, 0.4), Action::proceed);
  EXPECT_EQ(epoch(stop, c, 0.5), Action::proceed);
  EXPECT_EQ(epoch(stop, c, 0.5), Action::stop_fit);
  EXPECT_THROW(EarlyStopping({.patience = -1}), ConfigError);
}

/// A validation inside an epoch, after a step.
Action inside(Callback& callback, FitContext& c, double valid_loss, double accuracy = 0) {
  c.row = row(valid_loss, accuracy);
  ++c.step;
  c.inside_epoch = true;
  const Action action = callback.after_validate(c);
  c.inside_epoch = false;
  return action;
}

TEST(EarlyStopping, CountsValidationsInsideEpochs) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  c.epochs = 9;
  EarlyStopping stop({.patience = 1});
  stop.before_fit(c);
  EXPECT_EQ(inside(stop, c, 0.5), Action::proceed);
  EXPECT_EQ(inside(stop, c, 0.6), Action::proceed);
  EXPECT_EQ(stop.after_validate(c), Action::proceed) << "that of the epoch waits for its end";
  EXPECT_EQ(epoch(stop, c, 0.6), Action::stop_fit);
  ::testing::internal::CaptureStderr();
  stop.after_fit(c);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("valid_loss has not improved for 2 validations"));
}

TEST(EarlyStopping, LooksOnceAtTheFiguresWithWhichAnEpochEnds) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  EarlyStopping stop({.patience = 1});
  stop.before_fit(c);
  EXPECT_EQ(inside(stop, c, 0.5), Action::proceed);
  EXPECT_EQ(inside(stop, c, 0.6), Action::proceed);
  c.inside_epoch = true;  // nothing was trained since
  EXPECT_EQ(stop.after_epoch(c), Action::proceed);
  c.inside_epoch = false;
  EXPECT_EQ(epoch(stop, c, 0.6), Action::stop_fit);
}

TEST(EarlyStopping, LooksAtWhatNoValidationGivesAtTheEndOfAnEpoch) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  EarlyStopping stop({.monitor = {.figure = "train_loss"}}), by_other({.monitor = {.figure = "x"}});
  stop.before_fit(c);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(inside(stop, c, 0.5), Action::proceed);
    EXPECT_EQ(inside(by_other, c, 0.5), Action::proceed) << "a column that comes later";
  }
  EXPECT_EQ(epoch(stop, c, 0.5), Action::proceed);
  c.inside_epoch = true;
  EXPECT_EQ(stop.after_epoch(c), Action::stop_fit) << "a whole epoch without improvement";
}

TEST(SaveBest, SavesInsideAnEpoch) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  SaveBest best({.monitor = {.figure = "accuracy"}});
  best.before_fit(c);
  inside(best, c, 0, 0.5);
  inside(best, c, 0, 0.4);
  inside(best, c, 0, 0.6);
  epoch(best, c, 0, 0.55);
  EXPECT_EQ(learner.saved.size(), 2U);
  EXPECT_DOUBLE_EQ(*best.best(), 0.6);
}

TEST(EarlyStopping, GoesOnWaitingFromItsState) {
  FakeLearner learner;
  FitContext c{.learner = learner};
  EarlyStopping stopped({.patience = 1}), resumed({.patience = 1});
  stopped.before_fit(c);
  epoch(stopped, c, 0.5);
  epoch(stopped, c, 0.6);
  resumed.load_state(stopped.state());
  resumed.before_fit(c);
  EXPECT_EQ(epoch(resumed, c, 0.55), Action::stop_fit) << "one epoch was waited for before";

  resumed.load_state(EarlyStopping().state());
  EXPECT_EQ(epoch(resumed, c, 0.9), Action::proceed) << "nothing is best yet";
}

TEST(EarlyStopping, RefusesAnotherState) {
  EarlyStopping stop;
  for (const char* state : {"", "[]", "{}", R"({"best": null})", R"({"best": null, "waited": "1"})",
                            R"({"best": null, "waited": -1})", R"({"best": [], "waited": 1})"})
    EXPECT_THROW(stop.load_state(state), FormatError) << state;
}

TEST(StopOnNan, WarnsAndStopsOnceOrFails) {
  FakeLearner learner;
  FitContext c{.learner = learner, .epoch = 2, .step = 7};
  c.loss = at::full({}, std::nan(""));
  c.row = row(std::nan(""), 0);
  StopOnNan stop;
  EXPECT_EQ(stop.after_loss(c), Action::stop_fit);
  EXPECT_EQ(stop.after_validate(c), Action::proceed) << "it was said";
  stop.before_fit(c);
  EXPECT_EQ(stop.after_validate(c), Action::stop_fit);

  StopOnNan fail({.fail = true, .where = "phase head"});
  try {
    fail.after_loss(c);
    FAIL() << "a loss that is NaN is accepted";
  } catch (const DivergedError& error) {
    EXPECT_TRUE(std::isnan(error.value()));
    EXPECT_EQ(error.epoch(), 3) << "counted from 1, as the rows of the table";
    EXPECT_EQ(error.step(), 8) << "counted from 1, as steps.csv";
    EXPECT_THAT(error.what(), ::testing::HasSubstr("; lower the learning rate"));
  }
  c.bfloat16_on_host = true;
  try {
    fail.after_loss(c);
    FAIL() << "a loss that is NaN is accepted";
  } catch (const DivergedError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("; use precision fp32, because convolutions of small "
                                     "pictures go wrong in bfloat16 on a CPU"));
  }
  c.row.train_loss = HUGE_VAL;
  EXPECT_EQ(fail.after_epoch(c), Action::proceed) << "without a sample there is no loss";
  c.row.samples = 1;
  try {
    fail.after_epoch(c);
    FAIL() << "a mean loss that is infinite is accepted";
  } catch (const DivergedError& error) {
    EXPECT_EQ(error.epoch(), 3);
    EXPECT_EQ(error.step(), 7) << "the last of the steps whose mean it is";
  }
  c.loss = at::full({}, 1.0);
  EXPECT_EQ(fail.after_loss(c), Action::proceed);
  EXPECT_THROW(StopOnNan({.every = 0}), ConfigError);
}

}  // namespace
}  // namespace tare::testing

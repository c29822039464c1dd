// The order of a fit's events, and what answers and errors change.
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

// Writes down every event, answers what a test wants, throws where a test wants it.
struct Spy final : Callback {
  [[nodiscard]] std::string name() const override { return "spy"; }
  Action note(Event event) {
    seen.emplace_back(to_string(event));
    if (throw_at == event) throw std::runtime_error("planted");
    return answer_at == event ? answer : Action::proceed;
  }
  Action before_fit(FitContext&) override { return note(Event::before_fit); }
  Action before_epoch(FitContext&) override { return note(Event::before_epoch); }
  Action before_batch(FitContext&) override { return note(Event::before_batch); }
  Action after_forward(FitContext& c) override {
    EXPECT_TRUE(c.output().defined());
    return note(Event::after_forward);
  }
  Action after_loss(FitContext& c) override {
    EXPECT_GT(c.loss_value(), 0);
    return note(Event::after_loss);
  }
  Action after_backward(FitContext& c) override {
    EXPECT_TRUE(c.learner.model().parameters()[0].tensor.grad().defined());
    return note(Event::after_backward);
  }
  Action after_step(FitContext& c) override {
    EXPECT_TRUE(c.learner.model().parameters()[0].tensor.grad().defined());
    return note(Event::after_step);
  }
  Action after_batch(FitContext& c) override {
    if (answer_at != Event::after_backward && answer_at != Event::after_step) {
      EXPECT_FALSE(c.learner.model().parameters()[0].tensor.grad().defined());
    }
    return note(Event::after_batch);
  }
  Action before_validate(FitContext&) override { return note(Event::before_validate); }
  Action after_validate(FitContext&) override { return note(Event::after_validate); }
  Action after_epoch(FitContext&) override { return note(Event::after_epoch); }
  Action after_fit(FitContext& c) override {
    failed = c.error != nullptr;
    return note(Event::after_fit);
  }
  Action on_exception(FitContext& c) override {
    EXPECT_TRUE(c.error != nullptr);
    return note(Event::on_exception);
  }

  std::vector<std::string> seen;
  std::optional<Event> throw_at, answer_at;
  Action answer = Action::proceed;
  bool failed = false;
};

using Names = std::vector<std::string>;

struct EventScene {
  TempDir folder;
  LearnerOptions options = quiet(folder);
  std::shared_ptr<Spy> spy = std::make_shared<Spy>();
  EventScene() { options.batch = 30; }
  Splits data = split_points(30, 30);  // one step an epoch
};

TEST(Events, ComeInTheirOrder) {
  EventScene s;
  Learner learner(make_net(), s.data, s.options);
  learner.fit(1, {.callbacks = {s.spy}});
  EXPECT_EQ(s.spy->seen, (Names{"before_fit", "before_epoch", "before_batch", "after_forward",
                                "after_loss", "after_backward", "after_step", "after_batch",
                                "before_validate", "after_validate", "after_epoch", "after_fit"}));
}

TEST(Events, AnswersLeaveOutWhatComesNext) {
  const auto steps_and_events = [](Event at, Action answer) {
    EventScene s;
    s.spy->answer_at = at;
    s.spy->answer = answer;
    Learner learner(make_net(), s.data, s.options);
    const auto result = learner.fit(2, {.callbacks = {s.spy}});
    const auto count = [&](const char* name) { return std::ranges::count(s.spy->seen, name); };
    return std::vector<int64_t>{result.steps, count("after_forward"), count("after_backward"),
                                count("after_validate"),
                                static_cast<int64_t>(result.epochs.size())};
  };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(steps_and_events(Event::before_batch, Action::skip), (Counts{0, 0, 0, 2, 2}));
  EXPECT_EQ(steps_and_events(Event::after_loss, Action::skip), (Counts{0, 2, 0, 2, 2}));
  EXPECT_EQ(steps_and_events(Event::after_backward, Action::skip), (Counts{0, 2, 2, 2, 2}));
  EXPECT_EQ(steps_and_events(Event::before_validate, Action::skip), (Counts{2, 2, 2, 0, 2}));
  EXPECT_EQ(steps_and_events(Event::after_batch, Action::stop_epoch), (Counts{2, 2, 2, 2, 2}));
  EXPECT_EQ(steps_and_events(Event::after_batch, Action::stop_fit), (Counts{1, 1, 1, 1, 1}));
  EXPECT_EQ(steps_and_events(Event::before_fit, Action::stop_fit), (Counts{0, 0, 0, 0, 0}));
}

TEST(Events, SkippedStepsAccumulateGradients) {
  EventScene s;
  s.spy->answer_at = Event::after_backward;
  s.spy->answer = Action::skip;
  Learner learner(make_net(), s.data, s.options);
  learner.fit(1, {.callbacks = {s.spy}});
  EXPECT_TRUE(learner.model().parameters()[0].tensor.grad().defined());
  EXPECT_GT(learner.purge().freed[Category::gradients], 0);
}

class EveryEvent : public ::testing::TestWithParam<Event> {};

TEST_P(EveryEvent, MayThrowAndTheLearnerStaysUsable) {
  EventScene s;
  Learner learner(make_net(), s.data, s.options);
  learner.fit(1);
  const int64_t bytes = tracked();
  s.spy->throw_at = GetParam();
  EXPECT_THROW(learner.fit(1, {.callbacks = {s.spy}}), std::runtime_error);
  EXPECT_EQ(std::ranges::count(s.spy->seen, "on_exception"), 1);
  EXPECT_TRUE(s.spy->failed || GetParam() == Event::after_fit);
  EXPECT_EQ(tracked(), bytes);
  const size_t seen = s.spy->seen.size();
  learner.fit(1);
  EXPECT_EQ(s.spy->seen.size(), seen)
      << "a callback of one call is gone after it, also after an error";
}

INSTANTIATE_TEST_SUITE_P(All, EveryEvent,
                         ::testing::Values(Event::before_fit, Event::before_epoch,
                                           Event::before_batch, Event::after_forward,
                                           Event::after_loss, Event::after_backward,
                                           Event::after_step, Event::after_batch,
                                           Event::before_validate, Event::after_validate,
                                           Event::after_epoch, Event::after_fit),
                         [](const auto& event) { return std::string(to_string(event.param)); });

TEST(Events, AFailureWhileEndingDoesNotHideTheFirst) {
  EventScene s;
  struct Bad final : Callback {
    [[nodiscard]] std::string name() const override { return "bad"; }
    Action after_loss(FitContext&) override { throw std::out_of_range("first"); }
    Action on_exception(FitContext&) override { throw std::logic_error("second"); }
  };
  Learner learner(make_net(), s.data, s.options);
  EXPECT_THROW(learner.fit(1, {.callbacks = {std::make_shared<Bad>()}}), std::out_of_range);
}

}  // namespace
}  // namespace tare::testing

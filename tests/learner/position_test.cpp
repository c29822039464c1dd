// A checkpoint saved at any event, and with gradients that wait for a step, continues bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/state.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/callback/monitor.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Saves at one event of one batch; makes each step of `every` batches, and can ask for a stop.
struct SaveIn final : Callback {
  SaveIn(Event e, int64_t b, int64_t n = 1) : event(e), batch(b), every(n) {}
  [[nodiscard]] std::string name() const override { return "save_in"; }
  Action note(Event now, FitContext& c) const {
    const int64_t at = c.epoch * c.batches + c.batch;
    if (now == event && at == batch) c.learner.save("middle");
    if (now == Event::after_batch && at == stop_after) request_interrupt();
    return Action::proceed;
  }
  Action before_batch(FitContext& c) override { return note(Event::before_batch, c); }
  Action after_forward(FitContext& c) override { return note(Event::after_forward, c); }
  Action after_loss(FitContext& c) override { return note(Event::after_loss, c); }
  Action after_backward(FitContext& c) override {
    note(Event::after_backward, c);
    return (c.batch + 1) % every == 0 ? Action::proceed : Action::skip;
  }
  Action after_step(FitContext& c) override { return note(Event::after_step, c); }
  Action after_batch(FitContext& c) override { return note(Event::after_batch, c); }
  Event event;
  int64_t batch, every, stop_after = -1;
};

struct Place {
  Event event;
  int64_t batch, every;
  std::optional<int64_t> micro_batch{};
};
void PrintTo(const Place& c, std::ostream* out) { *out << to_string(c.event) << c.batch; }

class SavedIn : public ::testing::TestWithParam<Place> {};

TEST_P(SavedIn, ContinuesBitForBit) {
  const auto [event, batch, every, micro_batch] = GetParam();
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.micro_batch = micro_batch;
  Learner straight(make_net(), split_points(), options);
  torch::manual_seed(9);
  const auto whole =
      straight.fit(2, {.callbacks = {std::make_shared<SaveIn>(event, batch, every)}});
  Learner fresh(make_net(77), split_points(), options);
  torch::manual_seed(1234);
  ASSERT_TRUE(fresh.load("middle").resumable);
  const auto rest = fresh.resume({std::make_shared<SaveIn>(event, -1, every)});
  EXPECT_TRUE(capture(straight) == capture(fresh));
  ASSERT_EQ(rest.epochs.size(), whole.epochs.size());
  for (size_t i = 0; i < whole.epochs.size(); ++i) {
    EXPECT_EQ(rest.epochs[i].train_loss, whole.epochs[i].train_loss) << i;
    EXPECT_EQ(rest.epochs[i].valid_loss, whole.epochs[i].valid_loss) << i;
  }
}

std::vector<Place> cases() {
  std::vector<Place> all;
  for (const Event event : {Event::before_batch, Event::after_forward, Event::after_loss,
                            Event::after_backward, Event::after_step, Event::after_batch})
    for (const int64_t batch : {0, 3, 10}) all.push_back({event, batch, 1});
  // Every third batch steps: 1 and 7 are in the midst of an accumulation.
  for (const Event event : {Event::before_batch, Event::after_forward, Event::after_loss,
                            Event::after_backward, Event::after_batch})
    for (const int64_t batch : {1, 7}) all.push_back({event, batch, 3});
  all.push_back({Event::after_loss, 7, 3, 5});
  all.push_back({Event::after_backward, 4, 1, 5});
  return all;
}

INSTANTIATE_TEST_SUITE_P(EveryEvent, SavedIn, ::testing::ValuesIn(cases()));

class StoppedWhileAccumulating : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(InThisAndInAnotherLearner, StoppedWhileAccumulating, ::testing::Bool());

TEST_P(StoppedWhileAccumulating, LosesNoGradient) {
  for (const int64_t stop : {0, 1, 2, 6, 7, 9}) {
    const TempDir folder;
    Learner straight(make_net(), split_points(), quiet(folder));
    torch::manual_seed(9);
    straight.fit(2, {.callbacks = {std::make_shared<SaveIn>(Event::after_fit, -1, 3)}});

    Learner other(make_net(5), split_points(), quiet(folder));
    Learner stopped(make_net(), split_points(), quiet(folder));
    torch::manual_seed(9);
    const auto callback = std::make_shared<SaveIn>(Event::after_fit, -1, 3);
    callback->stop_after = stop;
    ASSERT_EQ(stopped.fit(2, {.callbacks = {callback}}).reason, StopReason::interrupted);
    stopped.save("stopped");
    callback->stop_after = -1;
    Learner& resumed = GetParam() ? other : stopped;
    if (GetParam()) resumed.load("stopped");
    (void)resumed.resume({callback});
    EXPECT_TRUE(capture(straight) == capture(resumed)) << "stopped after batch " << stop;
  }
}

TEST(Accumulated, GradientsSurviveAnException) {
  struct Throws final : Callback {
    [[nodiscard]] std::string name() const override { return "throws"; }
    Action throw_at(Event now, const FitContext& c) {
      if (now == event && c.batch == 4 && !std::exchange(thrown, true))
        throw std::runtime_error("planted");
      return Action::proceed;
    }
    Action before_batch(FitContext& c) override { return throw_at(Event::before_batch, c); }
    Action after_loss(FitContext& c) override { return throw_at(Event::after_loss, c); }
    Action after_backward(FitContext& c) override { return throw_at(Event::after_backward, c); }
    Action after_batch(FitContext& c) override { return throw_at(Event::after_batch, c); }
    Event event = Event::after_loss;
    bool thrown = false;
  };
  const TempDir folder;
  const auto accumulate = std::make_shared<SaveIn>(Event::after_fit, -1, 3);
  Learner straight(make_net(), split_points(), quiet(folder));
  torch::manual_seed(9);
  straight.fit(1, {.callbacks = {accumulate}});
  for (const Event event :
       {Event::before_batch, Event::after_loss, Event::after_backward, Event::after_batch}) {
    Learner failed(make_net(), split_points(), quiet(folder));
    torch::manual_seed(9);
    const auto throws = std::make_shared<Throws>();
    throws->event = event;
    EXPECT_THROW(failed.fit(1, {.callbacks = {throws, accumulate}}), std::runtime_error);
    (void)failed.resume({throws, accumulate});
    EXPECT_TRUE(capture(straight) == capture(failed)) << to_string(event);
  }
}

TEST(Load, DropsGradientsOfTheWeightsBefore) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.save("clean");
  learner.fit(1, {.callbacks = {std::make_shared<SaveIn>(Event::after_fit, -1, 100)}});
  ASSERT_TRUE(learner.model().parameters()[0].tensor.grad().defined());
  learner.load("clean", {.purge = false});
  EXPECT_FALSE(learner.model().parameters()[0].tensor.grad().defined());
}

// A checkpoint of a fit with batches of 16, at its eighth batch.
struct Saved {
  TempDir folder;
  Saved() {
    Learner learner(make_net(), split_points(), quiet(folder));
    learner.fit(3, {.callbacks = {std::make_shared<SaveIn>(Event::after_batch, 7)}});
  }
  [[nodiscard]] std::string resumed(const std::function<void(LearnerOptions&)>& change,
                                    Splits data = split_points()) const {
    LearnerOptions options = quiet(folder);
    change(options);
    Learner learner(make_net(), std::move(data), options);
    const auto report = learner.load("middle");
    EXPECT_TRUE(report.resumable);
    return outcome_of([&] { (void)learner.resume(); });
  }
};

TEST(Resume, RefusesAnotherOrderOfSamplesAndNamesBoth) {
  const Saved saved;
  EXPECT_THAT(saved.resumed([](auto& o) { o.batch = 32; }),
              AllOf(HasSubstr("ConfigError: [learner.resume] "),
                    HasSubstr("has batch 16, this Learner has batch 32")));
  EXPECT_THAT(saved.resumed([](auto& o) { o.batch = 8; }), HasSubstr("has batch 8"));
  EXPECT_THAT(saved.resumed([](auto& o) { o.drop_last = true; }),
              HasSubstr("has drop_last = false, this Learner has drop_last = true"));
  EXPECT_THAT(saved.resumed([](auto& o) { o.shuffle = false; }), HasSubstr("shuffle = true"));
  EXPECT_THAT(saved.resumed([](auto& o) { o.seed = 3; }), HasSubstr("has seed 42"));
  EXPECT_THAT(saved.resumed([](auto&) {}, split_points(60)),
              HasSubstr("a training split of 90 samples, this Learner has one of 60"));
  EXPECT_EQ(saved.resumed([](auto& o) { o.workers = 3; }), "accepted");
}

TEST(Load, RefusesAGeneratorsStateBeforeAnythingChanges) {
  const Saved saved;
  const auto path = saved.folder / "middle";
  const auto loaded = checkpoint::load(path);
  for (const auto& bad : {torch::zeros({100}, torch::kByte), torch::zeros({5056}, torch::kByte),
                          torch::zeros({5056}, torch::kFloat)}) {
    auto extra = loaded.extra;
    for (auto& [name, tensor] : extra)
      if (name == "rng/cpu") tensor = bad;
    checkpoint::save(saved.folder / "bad", {.model = loaded.model,
                                            .optimizer = loaded.optimizer,
                                            .extra = extra,
                                            .state = loaded.state});
    Learner learner(make_net(3), split_points(), quiet(saved.folder));
    learner.fit(1);
    const State before = capture(learner);
    EXPECT_THAT(outcome_of([&] { learner.load("bad"); }),
                AllOf(HasSubstr("FormatError: [learner.load]"), HasSubstr("rng/cpu"),
                      HasSubstr("is not a state of this random generator")));
    EXPECT_TRUE(capture(learner) == before);
    EXPECT_EQ(learner.history().size(), 1U);
    EXPECT_FALSE(learner.can_resume());
  }
}

TEST(Load, GivesCallbacksTheirStatesBackWhenTheOptimizerRefuses) {
  const TempDir folder;
  const auto best = std::make_shared<SaveBest>();
  LearnerOptions options = quiet(folder);
  options.callbacks = {best};
  options.optimizer = {.kind = "sgd", .lr = 0.01};
  Learner sgd(make_net(), split_points(), options);
  sgd.fit(1);
  sgd.save("sgd");
  options.optimizer = {};
  const auto own = std::make_shared<SaveBest>();
  options.callbacks = {own};
  Learner adamw(make_net(), split_points(), options);
  adamw.fit(1);
  const auto before = own->best();
  ASSERT_NE(before, best->best());
  EXPECT_THROW(adamw.load("sgd"), ConfigError);
  EXPECT_EQ(own->best(), before);
}

TEST(Save, AFitOfThousandsOfEpochsIsSavedLoadedAndResumed) {
  constexpr int64_t kEpochs = 5100;  // more than a manifest could hold
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.workers = 0;
  options.batch = 8;
  const Splits data{.train = points(8, 1), .valid = points(3, 2)};
  Learner learner(torch::nn::Linear(kFeatures, kClasses), data, options);
  learner.fit(kEpochs, {.callbacks = {std::make_shared<SaveIn>(Event::after_batch, kEpochs - 1)}});
  Learner fresh(torch::nn::Linear(kFeatures, kClasses), data, options);
  ASSERT_TRUE(fresh.load("middle").resumable);
  EXPECT_EQ(std::ssize(fresh.history()), kEpochs - 1);
  EXPECT_EQ(std::ssize(fresh.resume().epochs), kEpochs);
  EXPECT_TRUE(torch::equal(flat(learner.model()), flat(fresh.model())));
}

}  // namespace
}  // namespace tare::testing

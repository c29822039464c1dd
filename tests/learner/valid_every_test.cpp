// Validations inside an epoch: when they come, what they change (nothing), who sees them, and how a
// fit continues at them.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "learner/fail_at.h"
#include "learner/fixture.h"
#include "learner/make_seeded.h"
#include "learner/state.h"
#include "learner/zoo.h"
#include "tare/base/error.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/monitor.h"
#include "tare/callback/progress.h"
#include "tare/callback/reduce_on_plateau.h"
#include "tare/callback/throughput.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/inference/bundle.h"
#include "tare/train/train_state.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 90 samples in batches of 16: six batches an epoch, the last of 10.
constexpr int64_t kInEpoch = 6;

LearnerOptions every(const TempDir& folder, int64_t steps) {
  LearnerOptions options = quiet(folder);
  options.valid_every = steps;
  return options;
}

std::vector<int64_t> steps_of(const FitResult& result) {
  std::vector<int64_t> steps;
  for (const ValidationRow& row : result.validations) steps.push_back(row.step);
  return steps;
}

void expect_same(const ValidationRow& a, const ValidationRow& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.train_loss, b.train_loss);
  EXPECT_EQ(a.valid_loss, b.valid_loss);
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (size_t i = 0; i < a.metrics.size(); ++i) EXPECT_EQ(a.metrics[i].value, b.metrics[i].value);
}

void expect_same(const FitResult& a, const FitResult& b) {
  ASSERT_EQ(a.epochs.size(), b.epochs.size());
  for (size_t i = 0; i < a.epochs.size(); ++i) {
    EXPECT_EQ(a.epochs[i].train_loss, b.epochs[i].train_loss) << i;
    EXPECT_EQ(a.epochs[i].valid_loss, b.epochs[i].valid_loss) << i;
    EXPECT_EQ(a.epochs[i].samples, b.epochs[i].samples) << i;
  }
  ASSERT_EQ(steps_of(a), steps_of(b));
  for (size_t i = 0; i < a.validations.size(); ++i) expect_same(a.validations[i], b.validations[i]);
}

/// Writes down what it is shown of validations, and may put figures of its own in their place.
class Watch final : public Callback {
 public:
  explicit Watch(std::function<double(int64_t step)> loss = {}) : loss_(std::move(loss)) {}
  [[nodiscard]] std::string name() const override { return "watch"; }
  Action before_batch(FitContext& c) override {
    EXPECT_FALSE(c.inside_epoch);
    return Action::proceed;
  }
  Action after_batch(FitContext& c) override {
    EXPECT_TRUE(c.row.metrics.empty()) << "the row of the epoch has no figures yet";
    return Action::proceed;
  }
  Action after_validate(FitContext& c) override {
    EXPECT_FALSE(c.loss.defined() || !c.data.inputs.empty()) << "of the step before";
    seen << (c.inside_epoch ? "inside " : "end ") << c.step << ' ' << c.row.samples << '\n';
    if (loss_) c.row.valid_loss = loss_(c.step);
    return Action::proceed;
  }
  Action after_epoch(FitContext& c) override {
    seen << "epoch" << (c.inside_epoch ? ", validated inside" : "") << '\n';
    return Action::proceed;
  }
  std::ostringstream seen;

 private:
  std::function<double(int64_t)> loss_;
};

TEST(ValidEvery, ComesAtMultiplesOfTheStepsOfTheFitButNotAtTheEndOfAnEpoch) {
  const TempDir folder;
  const auto steps = [&](int64_t n, const Duration& duration) {
    return steps_of(make_seeded(every(folder, n))->fit(duration));
  };
  EXPECT_THAT(steps(4, {.epochs = 2}), ElementsAre(4, 8));
  EXPECT_THAT(steps(5, {.epochs = 3}), ElementsAre(5, 10, 15)) << "counted over the fit";
  EXPECT_THAT(steps(9, {.epochs = 2}), ElementsAre(9)) << "longer than an epoch";
  EXPECT_THAT(steps(kInEpoch, {.epochs = 2}), IsEmpty()) << "that of each epoch is there";
  EXPECT_THAT(steps(100, {.epochs = 2}), IsEmpty());
  EXPECT_THAT(steps(0, {.epochs = 2}), IsEmpty());
  EXPECT_THAT(steps(2, {.steps = 8}), ElementsAre(2, 4)) << "the last step ends an epoch";
  EXPECT_THAT(steps(3, {.steps = 10}), ElementsAre(3, 9));
  EXPECT_THAT(steps(1, {.samples = 40}), ElementsAre(1, 2));
}

TEST(ValidEvery, ChangesNothingOfTheTraining) {
  const TempDir folder;
  const auto drawing = [](const at::Tensor& output, const at::Tensor&) {
    return torch::rand({}) + output.sum() * 0;  // moves the generator
  };
  const auto fit = [&](int64_t n) {
    LearnerOptions options = every(folder, n);
    options.metrics = {"accuracy", Metric("drawn", drawing)};
    auto learner = make_seeded(std::move(options));
    const FitResult result = learner->fit(2, {.lr = 0.05, .schedule = {.kind = "cosine"}});
    return std::pair(capture(*learner), result);
  };
  const auto [plain, plain_result] = fit(0);
  const auto [often, often_result] = fit(1);
  EXPECT_THAT(steps_of(often_result), ElementsAre(1, 2, 3, 4, 5, 7, 8, 9, 10, 11));
  EXPECT_TRUE(often == plain) << "weights, buffers, optimizer, generators";
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(often_result.epochs[i].train_loss, plain_result.epochs[i].train_loss);
    EXPECT_EQ(often_result.epochs[i].valid_loss, plain_result.epochs[i].valid_loss);
  }
}

TEST(ValidEvery, GivesTheFiguresOfTheWeightsAtItsStep) {
  const TempDir folder;
  const FitResult whole = make_seeded(every(folder, 4))->fit(2, {.lr = 0.05});
  ASSERT_EQ(steps_of(whole), (std::vector<int64_t>{4, 8}));
  for (const ValidationRow& row : whole.validations) {
    const FitResult part = make_seeded(quiet(folder))->fit({.steps = row.step}, {.lr = 0.05});
    EXPECT_EQ(row.epoch, part.epochs.back().epoch);
    EXPECT_EQ(row.train_loss, part.epochs.back().train_loss) << "of the epoch so far";
    EXPECT_EQ(row.valid_loss, part.epochs.back().valid_loss);
    EXPECT_EQ(row.metrics.at(0).name, "accuracy");
    EXPECT_EQ(row.metrics[0].value, part.epochs.back().metrics.at(0).value);
  }
}

TEST(ValidEvery, IsShownToCallbacksAsThatOfTheEpoch) {
  const TempDir folder;
  const auto watch = std::make_shared<Watch>();
  make_seeded(every(folder, 4))->fit(1, {.callbacks = {watch}});
  EXPECT_EQ(watch->seen.str(), "inside 4 64\nend 6 90\nepoch\n");
}

TEST(ValidEvery, MayBeSkippedByACallback) {
  struct Skip final : Callback {
    [[nodiscard]] std::string name() const override { return "skip"; }
    Action before_validate(FitContext& c) override {
      return c.inside_epoch && c.step == 2 ? Action::skip : Action::proceed;
    }
  };
  const TempDir folder;
  const FitResult result =
      make_seeded(every(folder, 2))->fit(1, {.callbacks = {std::make_shared<Skip>()}});
  EXPECT_THAT(steps_of(result), ElementsAre(4));
}

TEST(ValidEvery, EarlyStoppingEndsTheFitWhereItLooks) {
  const TempDir folder;
  const auto worse = std::make_shared<Watch>([](int64_t step) { return 1.0 + double(step); });
  const auto stop = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.patience = 1});
  ::testing::internal::CaptureStderr();
  const FitResult result = make_seeded(every(folder, 2))->fit(3, {.callbacks = {worse, stop}});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.reason, StopReason::callback);
  EXPECT_EQ(result.steps, 6) << "step 2 is best, 4 and the epoch's end are worse";
  const auto sooner = std::make_shared<EarlyStopping>();
  const auto again = std::make_shared<Watch>([](int64_t step) { return 1.0 + double(step); });
  const FitResult inside = make_seeded(every(folder, 2))->fit(3, {.callbacks = {again, sooner}});
  EXPECT_EQ(inside.steps, 4);
  ASSERT_EQ(inside.epochs.size(), 1U);
  EXPECT_EQ(inside.epochs[0].valid_loss, 5) << "that of the validation which ended the fit";
  EXPECT_EQ(inside.epochs[0].samples, 64);
  EXPECT_EQ(inside.epochs[0].metrics.size(), 1U);
  EXPECT_EQ(again->seen.str(), "inside 2 32\ninside 4 64\nepoch, validated inside\n")
      << "the epoch is not validated again";
}

TEST(ValidEvery, SaveBestEndsWithTheWeightsOfAValidationInsideAnEpoch) {
  const TempDir folder;
  const auto best_at_four =
      std::make_shared<Watch>([](int64_t step) { return std::abs(double(step) - 4); });
  auto learner = make_seeded(every(folder, 4));
  const FitResult result =
      learner->fit(2, {.lr = 0.05, .callbacks = {best_at_four, std::make_shared<SaveBest>()}});
  EXPECT_EQ(result.restored_epoch, 1);
  EXPECT_EQ(result.restored_step, 4);
  auto part = make_seeded(quiet(folder));
  const FitResult four = part->fit({.steps = 4}, {.lr = 0.05});
  EXPECT_TRUE(torch::equal(flat(learner->model()), flat(part->model())));
  EXPECT_EQ(result.validations.at(0).metrics.at(0).value, four.epochs[0].metrics.at(0).value);

  // Checkpoints and bundles have the figures of that validation.
  const auto checkpoint = checkpoint::load(folder / "best");
  const TrainState state = train_state_from(checkpoint.state, checkpoint.extra, folder / "best");
  ASSERT_TRUE(row_of_figures(state));
  EXPECT_EQ(row_of_figures(state)->valid_loss, 0);
  learner->save("end");
  auto later = make_seeded(quiet(folder), 7);
  (void)later->load("end");
  later->save("again");
  const auto again = checkpoint::load(folder / "again");
  const auto read =
      validation_of_weights(train_state_from(again.state, again.extra, folder / "again"));
  ASSERT_TRUE(read);
  expect_same(*read, result.validations.at(0));
  // A fit that follows ends with its own weights.
  learner->set_data(split_points(), 16);
  EXPECT_EQ(learner->fit(1).restored_step, 0);
}

TEST(ValidEvery, SaveBestGivesABundleTheFiguresOfItsWeights) {
  at::set_num_threads(1);
  const TempDir folder;
  const Zoo zoo("mlp");
  LearnerOptions options = zoo.options(folder);
  options.valid_every = 2;
  options.metrics = {"accuracy"};
  Learner learner(zoo.model(), {.train = zoo.set(90, 1), .valid = zoo.set(30, 2)}, options);
  const auto best_at_two =
      std::make_shared<Watch>([](int64_t step) { return std::abs(double(step) - 2); });
  const FitResult result =
      learner.fit(2, {.callbacks = {best_at_two, std::make_shared<SaveBest>()}});
  ASSERT_EQ(result.restored_step, 2);
  learner.export_to(folder / "best.tare");
  const Bundle bundle = open_bundle(folder / "best.tare");
  const auto& metrics = bundle.manifest().metrics;
  const auto accuracy = std::ranges::find(metrics, "accuracy", &BundleMetric::name);
  ASSERT_NE(accuracy, metrics.end());
  EXPECT_EQ(accuracy->value, result.validations.at(0).metrics.at(0).value);
}

TEST(ValidEvery, TheAveragesAreValidatedInsideAnEpochToo) {
  const TempDir folder;
  const auto fit = [&](const std::vector<CallbackPtr>& callbacks) {
    auto learner = make_seeded(every(folder, 4));
    const FitResult result = learner->fit(1, {.lr = 0.05, .callbacks = callbacks});
    return std::pair(result, capture(*learner));
  };
  const auto [plain, plain_state] = fit({});
  const auto [averaged, state] =
      fit({std::make_shared<Ema>(EmaOptions{.decay = 0.9, .restore = false})});
  EXPECT_NE(averaged.validations.at(0).valid_loss, plain.validations.at(0).valid_loss);
  EXPECT_TRUE(state == plain_state) << "the weights that are trained are put back";
  const auto swa = std::make_shared<Swa>(SwaOptions{.start = 0});
  (void)fit({swa});
  EXPECT_EQ(swa->updates(), 1) << "an epoch counts once";
}

/// Everything that depends on validations: a rate that falls, the best checkpoint, an end.
std::vector<CallbackPtr> watchers() {
  return {std::make_shared<Ema>(EmaOptions{.decay = 0.5, .restore = false}),
          std::make_shared<ReduceOnPlateau>(
              ReduceOnPlateauOptions{.monitor = {.min_delta = 0.2}, .factor = 0.5, .patience = 0}),
          std::make_shared<SaveBest>(SaveBestOptions{.monitor = {.figure = "accuracy"}}),
          std::make_shared<EarlyStopping>(EarlyStoppingOptions{.patience = 6})};
}

class SaveAtEachStep final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "save_at_each_step"; }
  Action after_batch(FitContext& c) override {
    c.learner.save("step-" + std::to_string(c.step));
    return Action::proceed;
  }
};

class ResumedWithValidations : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(LoaderThreads, ResumedWithValidations, ::testing::Values(0, 4));

TEST_P(ResumedWithValidations, AtEachStepTheFitEndsAsTheStraightOne) {
  const TempDir folder;
  const auto options = [&](int64_t workers) {
    LearnerOptions changed = every(folder, 2);
    changed.workers = workers;
    return changed;
  };
  auto straight = make_seeded(options(4 - GetParam()));
  auto all = watchers();
  all.push_back(std::make_shared<SaveAtEachStep>());
  const FitResult whole = straight->fit(3, {.lr = 0.05, .callbacks = all});
  const State expected = capture(*straight);
  ASSERT_GE(whole.steps, 8);
  for (int64_t step = 1; step < whole.steps; ++step) {
    SCOPED_TRACE(step);
    auto resumed = make_seeded(options(GetParam()), 9);
    ASSERT_TRUE(resumed->load("step-" + std::to_string(step)).resumable);
    auto again = watchers();
    const FitResult rest = resumed->resume(again);
    expect_same(rest, whole);
    EXPECT_EQ(rest.restored_step, whole.restored_step);
    EXPECT_EQ(rest.restored_epoch, whole.restored_epoch);
    EXPECT_EQ(rest.reason, whole.reason);
    EXPECT_TRUE(capture(*resumed) == expected);
  }
}

TEST(ValidEvery, ContinuesAtAValidationThatFailed) {
  struct FailOnce final : Callback {
    [[nodiscard]] std::string name() const override { return "fail_once"; }
    Action before_validate(FitContext& c) override {
      if (c.inside_epoch && !std::exchange(failed, true)) throw std::runtime_error("once");
      return Action::proceed;
    }
    bool failed = false;
  };
  const TempDir folder;
  const FitResult whole = make_seeded(every(folder, 4))->fit(2, {.lr = 0.05});
  auto learner = make_seeded(every(folder, 4));
  EXPECT_THROW(learner->fit(2, {.lr = 0.05, .callbacks = {std::make_shared<FailOnce>()}}),
               std::runtime_error);
  expect_same(learner->resume(), whole);
}

TEST(ValidEvery, NeedsAValidationSplitAndANumberThatIsNotNegative) {
  const TempDir folder;
  Splits data = split_points();
  data.valid.reset();
  Learner learner(make_net(), data, every(folder, 5));
  try {
    learner.fit(1);
    FAIL() << "it has no effect";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[learner.fit] valid_every needs a validation split"));
    EXPECT_EQ(error.got(), "5");
  }
  learner.set_data(split_points(), 16);
  EXPECT_EQ(learner.fit(1).validations.size(), 1U);
  EXPECT_THROW(Learner(make_net(), split_points(), every(folder, -1)), ConfigError);
}

/// Lets a validation inside an epoch look as if it took an hour.
struct SlowInside final : Callback {
  [[nodiscard]] std::string name() const override { return "slow"; }
  Action after_validate(FitContext& c) override {
    if (c.inside_epoch) c.inside_seconds += 3600;
    return Action::proceed;
  }
};

TEST(ValidEvery, HasALineInTheTableAndIsNoTimeOfTheTraining) {
  const TempDir folder;
  std::ostringstream out;
  const auto rate = [&](const std::vector<CallbackPtr>& before) {
    auto callbacks = before;
    callbacks.push_back(std::make_shared<Throughput>());
    callbacks.push_back(std::make_shared<Progress>(out, Progress::Style::plain));
    const FitResult result = make_seeded(every(folder, 4))->fit(1, {.callbacks = callbacks});
    return result.epochs.at(0).metrics.at(1).value;
  };
  EXPECT_GT(rate({}), 0);
  EXPECT_TRUE(std::isnan(rate({std::make_shared<SlowInside>()}))) << "less than no time is left";
  EXPECT_THAT(out.str(), HasSubstr("step 4  valid_loss "));
  EXPECT_THAT(out.str(), HasSubstr("  accuracy "));
}

TEST(ValidEvery, IsNoTimeOfTheTrainingOfAResumedEpochEither) {
  const TempDir folder;
  const auto fails = std::make_shared<FailAt>(5);
  const auto learner = make_seeded(every(folder, 4));
  EXPECT_THROW(learner->fit(1, {.callbacks = {std::make_shared<SlowInside>(), fails}}),
               std::runtime_error);
  learner->save("inside");
  const auto resumed = make_seeded(every(folder, 4));
  resumed->load("inside");
  const FitResult result = resumed->resume({std::make_shared<Throughput>()});
  EXPECT_TRUE(std::isnan(result.epochs.at(0).metrics.at(1).value)) << "less than no time is left";
}

int64_t peak_of_a_fit(Learner& learner, int64_t epochs) {
  const memory::PeakScope scope(c10::kCPU);
  learner.fit(epochs);
  return scope.peak_above_start_bytes();
}

// A validation of many samples is what takes the most.
TEST(ValidEvery, IsInThePlanToTheByte) {
  at::set_num_threads(1);
  for (const bool in_background : {false, true})
    for (const int64_t n : {0, 1, 4, 6, 9}) {
      SCOPED_TRACE(n);
      const TempDir folder;
      LearnerOptions options = every(folder, n);
      options.workers = 0;
      options.micro_batch = 4;
      options.metrics = {"auroc"};
      options.save_in_background = in_background;
      Learner learner(
          models::make("mlp", {.classes = 2, .sample_shape = {kFeatures}, .hidden = {8}}),
          {.train = tensor_dataset(torch::rand({90, kFeatures}), torch::arange(90) % 2),
           .valid = tensor_dataset(torch::rand({900, kFeatures}), torch::arange(900) % 2)},
          options);
      for (const char* state : {"new", "with optimizer state"}) {
        const MemoryPlan plan = learner.plan({.advice = false});
        ASSERT_TRUE(plan.known()) << plan.reason;
        EXPECT_EQ(plan.categories.total(), plan.peak_bytes);
        EXPECT_EQ(plan.peak_bytes, peak_of_a_fit(learner, 2)) << state << ": " << plan.str();
      }
    }
}

}  // namespace
}  // namespace tare::testing

// Ema and Swa in a fit: what they average, what validates, what is left, resumed and planned.
#include "tare/callback/averaged_weights.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/every_allocation.h"
#include "learner/zoo.h"
#include "tare/base/error.h"
#include "tare/callback/gradient_norm.h"
#include "tare/callback/monitor.h"
#include "tare/callback/reduce_on_plateau.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

namespace host = memory::host_allocator;
using ::testing::HasSubstr;

std::unique_ptr<Learner> make(const TempDir& folder, uint64_t seed = 1,
                              std::vector<CallbackPtr> callbacks = {}) {
  at::set_num_threads(1);
  LearnerOptions options = quiet(folder);
  options.workers = 0;
  options.micro_batch = options.batch;  // else a batch that is refused memory is tried in parts
  options.callbacks = std::move(callbacks);
  return std::make_unique<Learner>(make_net(seed), split_points(), std::move(options));
}

std::vector<torch::Tensor> weights_of(Model& model) {
  std::vector<torch::Tensor> all;
  for (const auto& parameter : model.parameters()) all.push_back(parameter.tensor.detach().clone());
  return all;
}

/// Computes averages by hand, from the weights after each step and at the end of each epoch.
class ByHand final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "by_hand"; }
  Action before_fit(FitContext& c) override {
    average_ = weights_of(c.learner.model());
    return Action::proceed;
  }
  Action after_step(FitContext& c) override {
    if (c.step % 2 != 0) return Action::proceed;
    const double decay = 0.9 * std::min(1.0, static_cast<double>(c.step - 1) / 6);
    const auto now = weights_of(c.learner.model());
    for (size_t i = 0; i < now.size(); ++i) average_[i].mul_(decay).add_(now[i], 1 - decay);
    return Action::proceed;
  }
  Action after_validate(FitContext& c) override {
    last_ = weights_of(c.learner.model());
    by_epoch_.push_back(last_);
    return Action::proceed;
  }
  std::vector<torch::Tensor> average_, last_;
  std::vector<std::vector<torch::Tensor>> by_epoch_;
};

void expect_equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
}

TEST(Ema, AveragesStepsAndEndsWithTheAverages) {
  const TempDir folder;
  auto learner = make(folder);
  const auto hand = std::make_shared<ByHand>();
  const auto ema = std::make_shared<Ema>(EmaOptions{.decay = 0.9, .every = 2, .warmup = 6});
  const FitResult fit = learner->fit(3, {.lr = 0.01, .callbacks = {ema, hand}});
  EXPECT_EQ(ema->updates(), fit.steps / 2);
  expect_equal(weights_of(learner->model()), hand->average_);
  EXPECT_EQ(learner->validate().loss, fit.epochs.back().valid_loss) << "the averages validated";
}

TEST(Ema, LeavesTheTrainingAsItIs) {
  const TempDir folder;
  auto plain = make(folder), averaged = make(folder);
  torch::manual_seed(5);
  const auto without = plain->fit(3, {.lr = 0.01});
  torch::manual_seed(5);
  const auto with = averaged->fit(
      3, {.lr = 0.01, .callbacks = {std::make_shared<Ema>(EmaOptions{.restore = false})}});
  EXPECT_TRUE(torch::equal(flat(plain->model()), flat(averaged->model())));
  EXPECT_EQ(without.epochs.back().train_loss, with.epochs.back().train_loss);
  EXPECT_NE(without.epochs.back().valid_loss, with.epochs.back().valid_loss);
}

TEST(Ema, OfDecayZeroIsTheLastWeights) {
  const TempDir folder;
  auto learner = make(folder);
  const auto hand = std::make_shared<ByHand>();
  (void)learner->fit(2, {.callbacks = {std::make_shared<Ema>(EmaOptions{.decay = 0}), hand}});
  expect_equal(weights_of(learner->model()), hand->last_);
}

TEST(Ema, WarnsWhereMostOfTheAverageIsFromBeforeTheFit) {
  const TempDir folder;
  const auto warns = [&](const EmaOptions& options) {
    auto learner = make(folder);
    ::testing::internal::CaptureStderr();
    (void)learner->fit(1, {.callbacks = {std::make_shared<Ema>(options)}});
    const std::string text = ::testing::internal::GetCapturedStderr();
    return text.find("ema: the average has 100 % of the weights") != text.npos;
  };
  EXPECT_FALSE(warns({.decay = 0.5}));
  EXPECT_FALSE(warns({.warmup = 1}));
  EXPECT_TRUE(warns({.every = 1000, .warmup = 1}));
}

TEST(Ema, AveragesWhatIsTrainedAlone) {
  const TempDir folder;
  const auto ema = std::make_shared<Ema>(EmaOptions{.restore = false});
  auto learner = make(folder, 1, {ema});
  learner->freeze_to(-1, {.norms = false});
  (void)learner->fit(1);
  EXPECT_EQ(ema->tensors().size(), 2U) << "weight and bias of the head";
}

TEST(Swa, AveragesTheEndsOfTheLastEpochs) {
  const TempDir folder;
  auto learner = make(folder);
  const auto hand = std::make_shared<ByHand>();
  const auto swa = std::make_shared<Swa>(SwaOptions{.start = 0.5});
  const FitResult fit = learner->fit(5, {.lr = 0.01, .callbacks = {swa, hand}});
  EXPECT_EQ(swa->updates(), 3) << "the epochs after the first two";
  const auto now = weights_of(learner->model());
  constexpr double kRounding = 1e-6;  // a mean is updated three times in float32
  for (size_t i = 0; i < now.size(); ++i) {
    const auto mean = (hand->by_epoch_[2][i] + hand->by_epoch_[3][i] + hand->by_epoch_[4][i]) / 3;
    EXPECT_LT((now[i] - mean).abs().max().item<double>(), kRounding) << i;
  }
  EXPECT_EQ(learner->validate().loss, fit.epochs.back().valid_loss);
}

TEST(Swa, WorksWithoutAValidation) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  Learner learner(make_net(), {.train = points(90, 11)}, options);
  const auto swa = std::make_shared<Swa>(SwaOptions{.start = 0});
  (void)learner.fit(3, {.callbacks = {swa}});
  EXPECT_EQ(swa->updates(), 3);
}

/// Ends a fit after its second epoch.
class StopsAfterTwo final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "stops_after_two"; }
  Action after_epoch(FitContext& context) override {
    return context.epoch == 1 ? Action::stop_fit : Action::proceed;
  }
};

TEST(Swa, WarnsWhereTheFitEndsBeforeItBegins) {
  const TempDir folder;
  const auto warned = [&](double start) {
    auto learner = make(folder);
    ::testing::internal::CaptureStderr();
    (void)learner->fit(8, {.callbacks = {std::make_shared<Swa>(SwaOptions{.start = start}),
                                         std::make_shared<StopsAfterTwo>()}});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned(0.75),
              ::testing::HasSubstr("swa has averaged no weights: start: 0.75 begins with epoch 7, "
                                   "and the fit ended after 2 epochs; choose a lower start"));
  EXPECT_THAT(warned(0.125), ::testing::Not(::testing::HasSubstr("swa")));
}

TEST(Ema, WarnsWhereMostOfTheAverageIsTheFirstWeights) {
  const TempDir folder;
  const auto warned = [&](EmaOptions options) {
    auto learner = make(folder);
    ::testing::internal::CaptureStderr();
    (void)learner->fit(
        8, {.callbacks = {std::make_shared<Ema>(options), std::make_shared<StopsAfterTwo>()}});
    return ::testing::internal::GetCapturedStderr();
  };
  const auto has = [](const char* share) {
    return ::testing::HasSubstr("ema: the average has " + std::string(share) +
                                " % of the weights from before the fit");
  };
  EXPECT_THAT(warned({.decay = 0.997}), has("96"));
  EXPECT_THAT(warned({.decay = 0.97, .every = 4}), has("91"));
  EXPECT_THAT(warned({.decay = 0.999, .every = 4, .warmup = 4}), has("75"));
  EXPECT_THAT(warned({.decay = 0.9}), ::testing::IsEmpty());
  EXPECT_THAT(warned({.decay = 0.999, .warmup = 20}), ::testing::IsEmpty());
}

TEST(Swa, RefusesAShareOfEpochsThatNobodyKnows) {
  const TempDir folder;
  auto learner = make(folder);
  EXPECT_THROW((void)learner->fit(Duration{.minutes = 1}, {.callbacks = {std::make_shared<Swa>()}}),
               ConfigError);
}

/// Throws in the validation of the second epoch.
Metric failing(int64_t& calls) {
  return Metric("failing", [&calls](const at::Tensor& output, const at::Tensor&) {
    if (++calls > 3) throw std::runtime_error("the metric fails");
    return output.mean();
  });
}

TEST(AveragedWeights, AreTakenBackWhereAValidationThrows) {
  const TempDir folder;
  int64_t calls = 0;
  LearnerOptions options = quiet(folder);
  options.metrics = {failing(calls)};
  Learner learner(make_net(), split_points(), options);
  const auto ema = std::make_shared<Ema>(EmaOptions{.decay = 0.5});
  std::vector<torch::Tensor> trained;
  const auto look = std::make_shared<AfterBatch>([&] { trained = weights_of(learner.model()); });
  EXPECT_ANY_THROW((void)learner.fit(9, {.callbacks = {ema, look}}));
  expect_equal(weights_of(learner.model()), trained);
  EXPECT_FALSE(torch::equal(ema->tensors().front().tensor, trained.front()));
}

TEST(AveragedWeights, SkipAValidationThatAnotherCallbackSkips) {
  struct Skip final : Callback {
    [[nodiscard]] std::string name() const override { return "skip"; }
    Action before_validate(FitContext&) override { return Action::skip; }
  };
  const TempDir folder;
  auto learner = make(folder);
  const auto hand = std::make_shared<ByHand>();
  (void)learner->fit(
      2, {.callbacks = {std::make_shared<Ema>(EmaOptions{.decay = 0.9, .every = 2, .warmup = 6}),
                        hand, std::make_shared<Skip>()}});
  expect_equal(weights_of(learner->model()), hand->average_);
}

/// Saves after each step, and after each epoch before other callbacks have seen its end.
class SaveOften final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "save_often"; }
  Action after_batch(FitContext& c) override { return save(c, "step-"); }
  Action after_epoch(FitContext& c) override { return save(c, "epoch-"); }
  std::vector<std::string> names;

 private:
  Action save(FitContext& c, const std::string& kind) {
    names.push_back(kind + std::to_string(c.step));
    c.learner.save(names.back());
    return Action::proceed;
  }
};

std::vector<CallbackPtr> callbacks_of(const std::string& kind) {
  const ReduceOnPlateauOptions plateau{
      .monitor = {.figure = "train_loss", .min_delta = 0.2}, .factor = 0.5, .patience = 0};
  std::vector<CallbackPtr> all{std::make_shared<ReduceOnPlateau>(plateau),
                               std::make_shared<GradientNorm>()};
  if (kind == "swa")
    all.push_back(std::make_shared<Swa>(SwaOptions{.start = 0.25}));
  else
    all.push_back(std::make_shared<Ema>(EmaOptions{.decay = 0.9, .every = 2, .warmup = 9}));
  return all;
}

class ResumedWith : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Averages, ResumedWith, ::testing::Values("ema", "swa"));

TEST_P(ResumedWith, EqualsTheStraightRunBitForBit) {
  const TempDir folder;
  auto straight = make(folder);
  const auto saved = std::make_shared<SaveOften>();
  auto callbacks = callbacks_of(GetParam());
  callbacks.insert(callbacks.begin() + 1, saved);  // before those that know what an epoch is
  torch::manual_seed(5);
  const FitResult whole = straight->fit(4, {.lr = 0.05, .callbacks = callbacks});
  const torch::Tensor expected = flat(straight->model());
  ASSERT_EQ(saved->names.size(), static_cast<size_t>(whole.steps) + 4);
  for (const std::string& name : saved->names) {
    SCOPED_TRACE(name);
    auto fresh = make(folder, 77);
    if (!fresh->load(name).resumable) continue;  // after the last epoch
    const FitResult rest = fresh->resume(callbacks_of(GetParam()));
    ASSERT_TRUE(torch::equal(flat(fresh->model()), expected));
    for (size_t i = 0; i < whole.epochs.size(); ++i) {
      const EpochRow &a = rest.epochs.at(i), &b = whole.epochs[i];
      EXPECT_EQ(a.train_loss, b.train_loss);
      EXPECT_EQ(a.valid_loss, b.valid_loss);
      // A checkpoint of after_epoch has the row before the columns of other callbacks.
      if (a.metrics.size() == 1) continue;
      ASSERT_EQ(a.metrics.size(), 3U);
      for (size_t m = 0; m < 3; ++m) EXPECT_EQ(a.metrics[m].value, b.metrics[m].value);
    }
  }
}

TEST_P(ResumedWith, ContinuesInItsProcessAfterAnInterrupt) {
  const TempDir folder;
  auto straight = make(folder), stopped = make(folder, 1, callbacks_of(GetParam()));
  torch::manual_seed(5);
  (void)straight->fit(4, {.lr = 0.05, .callbacks = callbacks_of(GetParam())});
  torch::manual_seed(5);
  request_interrupt();
  FitResult fit = stopped->fit(4, {.lr = 0.05});
  for (; fit.reason == StopReason::interrupted; fit = stopped->resume()) request_interrupt();
  clear_interrupt();
  EXPECT_TRUE(torch::equal(flat(stopped->model()), flat(straight->model())));
}

TEST(AveragedWeights, AreInTheLedgerAndPurged) {
  const TempDir folder;
  auto learner = make(folder);
  (void)learner->fit(1);
  learner->purge();
  const int64_t before = tracked();
  const int64_t parameters = learner->ledger().bytes(c10::kCPU)[Category::parameters];
  request_interrupt();
  (void)learner->fit(2, {.callbacks = {std::make_shared<Ema>()}});
  ASSERT_TRUE(learner->can_resume());
  const auto of_ema = [&] {
    int64_t bytes = 0;
    for (const auto& entry : learner->ledger().entries())
      if (entry.name.starts_with("ema/")) bytes += entry.bytes;
    return bytes;
  };
  EXPECT_EQ(of_ema(), parameters) << "what the unfinished fit needs";
  learner->purge();
  EXPECT_EQ(of_ema(), 0);
  EXPECT_EQ(tracked(), before);
  (void)learner->resume({std::make_shared<Ema>()});
  const auto kept = std::make_shared<Ema>(EmaOptions{.restore = false});
  auto other = make(folder, 1, {kept});
  (void)other->fit(1);
  EXPECT_FALSE(kept->tensors().empty());
  other->purge();
  EXPECT_TRUE(kept->tensors().empty());
}

TEST(AveragedWeights, SaveBestEndsWithTheAveragesThatItValidated) {
  const TempDir folder;
  for (const bool averages_first : {true, false}) {
    auto learner = make(folder);
    const auto best = std::make_shared<SaveBest>();
    const auto ema = std::make_shared<Ema>(EmaOptions{.decay = 0.7});
    std::vector<CallbackPtr> callbacks{best, ema};
    if (averages_first) std::swap(callbacks[0], callbacks[1]);
    const FitResult fit = learner->fit(8, {.lr = 0.3, .callbacks = callbacks});
    EXPECT_EQ(learner->validate().loss, *best->best()) << averages_first;
    EXPECT_GT(fit.restored_epoch, 0);
  }
}

TEST(AveragedWeights, OneCallbackOfAFitMayHaveThem) {
  const TempDir folder;
  auto learner = make(folder);
  try {
    (void)learner->fit(1, {.callbacks = {std::make_shared<Ema>(), std::make_shared<Swa>()}});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the callbacks ema and swa both put weights into the "
                                        "validation"));
  }
}

TEST(AveragedWeights, RefuseOptionsAndStatesThatAreNone) {
  EXPECT_THROW(Ema({.decay = 1}), ConfigError);
  EXPECT_THROW(Ema({.every = 0}), ConfigError);
  EXPECT_THROW(Ema({.warmup = -1}), ConfigError);
  EXPECT_THROW(Swa({.start = 1}), ConfigError);
  Ema ema;
  for (const char* state : {"", "{}", R"({"updates":1})", R"({"updates":-1,"epochs":0})"})
    EXPECT_THROW(ema.load_state(state), FormatError) << state;
}

// Any allocation may be refused: what is resumed then equals the undisturbed run.
TEST(AveragedWeights, SurviveRunningOutOfMemoryAnywhere) {
  const TempDir folder;
  const auto fresh = [&] {
    auto learner = make(folder, 1, callbacks_of("ema"));
    (void)learner->validate();  // what is made once
    torch::manual_seed(5);
    return learner;
  };
  auto straight = fresh();
  (void)straight->fit(2, {.lr = 0.05});
  const torch::Tensor expected = flat(straight->model());
  constexpr uint64_t kStride = 7;  // not every allocation, so that the test takes seconds
  uint64_t failures = 0;
  for (uint64_t k = 1;; k += kStride) {
    auto learner = fresh();
    host::fail_at(k);
    try {
      (void)learner->fit(2, {.lr = 0.05});
      host::fail_at(0);
      break;
    } catch (const OutOfMemory&) {
      host::fail_at(0);
    }
    ++failures;
    (void)(learner->can_resume() ? learner->resume() : learner->fit(2, {.lr = 0.05}));
    ASSERT_TRUE(torch::equal(flat(learner->model()), expected)) << k;
  }
  EXPECT_GT(failures, 20U);
}

}  // namespace
}  // namespace tare::testing

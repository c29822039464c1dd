// Callbacks that change or measure a fit, in real fits: rates, gradients, batch norms, plans, logs.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <tuple>

#include "callback/events_of.h"
#include "learner/every_allocation.h"
#include "learner/zoo.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/csv_log.h"
#include "tare/callback/freeze_batch_norm.h"
#include "tare/callback/gradient_norm.h"
#include "tare/callback/jsonl_log.h"
#include "tare/callback/progress.h"
#include "tare/callback/reduce_on_plateau.h"
#include "tare/callback/saving.h"
#include "tare/callback/stop_file.h"
#include "tare/callback/tensorboard.h"
#include "tare/callback/throughput.h"
#include "tare/optim/optimizer_set.h"
#include "tare/train/train_state.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

LearnerOptions without_workers(const TempDir& folder) {
  at::set_num_threads(1);
  LearnerOptions options = quiet(folder);
  options.workers = 0;
  return options;
}

/// Notes the rates of all steps, as the optimizer has them.
class Rates final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "rates"; }
  Action after_step(FitContext& c) override {
    all.push_back(c.learner.optimizer().groups().front().lr);
    EXPECT_EQ(c.lr, c.learner.optimizer().groups().back().lr);
    return Action::proceed;
  }
  std::vector<double> all;
};

CallbackPtr each_epoch_half() {
  return std::make_shared<ReduceOnPlateau>(ReduceOnPlateauOptions{
      .monitor = {.figure = "train_loss", .min_delta = 100}, .factor = 0.5, .patience = 0});
}

TEST(ReduceOnPlateau, MultipliesTheRatesOfTheScheduleAlsoAfterAResume) {
  const TempDir folder;
  const auto fit = [&](const std::vector<CallbackPtr>& callbacks) {
    Learner learner(make_net(), split_points(96), without_workers(folder));
    (void)learner.fit(4, {.lr = 0.1, .schedule = {.kind = "linear"}, .callbacks = callbacks});
  };
  const auto plain = std::make_shared<Rates>(), halved = std::make_shared<Rates>();
  fit({plain});
  fit({halved, each_epoch_half(),
       std::make_shared<KeepCheckpoints>(KeepCheckpointsOptions{.last = 9})});
  ASSERT_EQ(halved->all.size(), 24U);
  const std::vector<double> factors{1, 1, 0.5, 0.25};  // the first epoch is the best
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(halved->all[i], plain->all[i] * factors[i / 6]) << i;

  Learner resumed(make_net(7), split_points(96), without_workers(folder));
  ASSERT_TRUE(resumed.load("epoch-3").resumable);
  const auto rest = std::make_shared<Rates>();
  (void)resumed.resume({rest, each_epoch_half()});
  ASSERT_EQ(rest->all.size(), 6U);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(rest->all[i], halved->all[18 + i]) << i;
}

TEST(ReduceOnPlateau, LowersTheRatesOfSeveralOptimizers) {
  const TempDir folder;
  LearnerOptions options = without_workers(folder);
  options.optimizers = {{.name = "body", .parameters = {"first", "norm", "second"}},
                        {.name = "head", .parameters = {"head"}}};
  Learner learner(make_net(), split_points(96), options);
  struct PartRates final : Callback {
    [[nodiscard]] std::string name() const override { return "part_rates"; }
    Action after_step(FitContext& c) override {
      auto& set = dynamic_cast<OptimizerSet&>(c.learner.optimizer());
      all.push_back(set.part("body").groups().front().lr);
      all.push_back(set.part("head").groups().front().lr);
      return Action::proceed;
    }
    std::vector<double> all;
  };
  const auto rates = std::make_shared<PartRates>();
  (void)learner.fit(3, {.lr = 0.1, .callbacks = {rates, each_epoch_half()}});
  ASSERT_EQ(rates->all.size(), 36U);
  EXPECT_EQ(rates->all[0], 0.1);
  EXPECT_EQ(rates->all[34], 0.05);
  EXPECT_EQ(rates->all[35], 0.05);
}

/// Computes the norms of gradients by hand.
class NormsByHand final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "norms_by_hand"; }
  Action after_backward(FitContext& c) override {
    double squares = 0;
    for (const auto& parameter : c.learner.model().parameters())
      squares += parameter.tensor.grad().to(torch::kDouble).square().sum().item<double>();
    all.push_back(std::sqrt(squares));
    return Action::proceed;
  }
  std::vector<double> all;
};

TEST(GradientNorm, HasMeanAndLargestOfEachEpochBeforeClipping) {
  const TempDir folder;
  LearnerOptions options = without_workers(folder);
  options.clip.norm = 0.01;
  Learner learner(make_net(), split_points(96), options);
  const auto hand = std::make_shared<NormsByHand>();
  const FitResult fit = learner.fit(2, {.callbacks = {std::make_shared<GradientNorm>(), hand}});
  ASSERT_EQ(hand->all.size(), 12U);
  constexpr double kRounding = 1e-5;  // sums of float32
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    const std::vector<double> norms(hand->all.begin() + static_cast<int64_t>(6 * epoch),
                                    hand->all.begin() + static_cast<int64_t>(6 * epoch + 6));
    const auto& metrics = fit.epochs[epoch].metrics;
    ASSERT_EQ(metrics.size(), 3U);
    EXPECT_EQ(metrics[1].name, "grad_norm_mean");
    EXPECT_NEAR(metrics[1].value, std::accumulate(norms.begin(), norms.end(), 0.0) / 6, kRounding);
    EXPECT_EQ(metrics[2].name, "grad_norm_max");
    EXPECT_NEAR(metrics[2].value, *std::ranges::max_element(norms), kRounding);
  }
}

TEST(GradientNorm, RefusesStepsInTheBackward) {
  const TempDir folder;
  LearnerOptions options = without_workers(folder);
  options.step_in_backward = true;
  Learner learner(make_net(), split_points(), options);
  try {
    (void)learner.fit(1, {.callbacks = {std::make_shared<GradientNorm>()}});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("which step_in_backward frees"));
  }
}

TEST(FreezeBatchNorm, KeepsTheStatisticsAndTrainsTheWeights) {
  const TempDir folder;
  const auto buffers = [](Learner& learner) {
    std::vector<torch::Tensor> all;
    for (const auto& buffer : learner.model().buffers()) all.push_back(buffer.tensor.clone());
    return all;
  };
  const auto fit = [&](const FreezeBatchNormOptions& options, bool frozen) {
    Learner learner(make_net(), split_points(), without_workers(folder));
    if (frozen) learner.freeze_to(-1, {.norms = false});
    const auto before = buffers(learner);
    const auto gamma = learner.model().parameters()[2].tensor.detach().clone();
    (void)learner.fit(2, {.callbacks = {std::make_shared<FreezeBatchNorm>(options)}});
    EXPECT_EQ(learner.model().parameters()[2].name, "norm.weight");
    EXPECT_EQ(torch::equal(learner.model().parameters()[2].tensor, gamma), frozen);
    const auto after = buffers(learner);
    return std::ranges::equal(before, after,
                              [](const auto& a, const auto& b) { return torch::equal(a, b); });
  };
  EXPECT_TRUE(fit({}, false));
  EXPECT_FALSE(fit({.frozen_only = true}, false)) << "its weights are trained";
  EXPECT_TRUE(fit({.frozen_only = true}, true));
}

TEST(StopFile, EndsARealFitWithARow) {
  const TempDir folder;
  Learner learner(make_net(), split_points(96), without_workers(folder));
  const auto make = std::make_shared<AfterBatch>([&] { std::ofstream(folder / "stop") << ""; });
  const FitResult fit = learner.fit(5, {.callbacks = {make, std::make_shared<StopFile>()}});
  EXPECT_EQ(fit.steps, 1);
  EXPECT_EQ(fit.epochs.size(), 1U);
  EXPECT_EQ(fit.reason, StopReason::callback);
}

TEST(TimedSave, WritesACheckpointThatResumes) {
  const TempDir folder;
  const auto saves = std::make_shared<TimedSave>(TimedSaveOptions{.minutes = 1e-12});
  Learner learner(make_net(), split_points(96), without_workers(folder));
  (void)learner.fit(1, {.callbacks = {saves}});
  const auto newest = newest_checkpoint(folder.path(), Autosave::names());
  ASSERT_TRUE(newest);
  EXPECT_TRUE(newest->unfinished) << "the epoch was not closed";
  EXPECT_EQ(newest->saves, 6);
}

std::vector<CallbackPtr> named(const std::string& name) {
  if (name == "ema") return {std::make_shared<Ema>()};
  if (name == "swa") return {std::make_shared<Swa>()};
  if (name == "gradient_norm") return {std::make_shared<GradientNorm>()};
  if (name == "freeze_batch_norm") return {std::make_shared<FreezeBatchNorm>()};
  if (name == "timed_save")
    return {std::make_shared<TimedSave>(TimedSaveOptions{.minutes = 1e-12})};
  if (name == "throughput") return {std::make_shared<Throughput>(ThroughputOptions{.flops = true})};
  if (name == "keep_checkpoints") return {std::make_shared<KeepCheckpoints>()};
  return {std::make_shared<TensorBoard>(TensorBoardOptions{.histograms = true}),
          std::make_shared<JsonlLog>()};
}

class PlanWith : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(
    Callbacks, PlanWith,
    ::testing::Combine(::testing::Values("mlp", "convnet", "resnet9"),
                       ::testing::Values("ema", "swa", "gradient_norm", "freeze_batch_norm",
                                         "timed_save", "keep_checkpoints", "throughput", "logs")));

TEST_P(PlanWith, IsWhatTheFitAllocatesToTheByte) {
  const TempDir folder;
  const auto [model, callback] = GetParam();
  const Zoo zoo(model);
  LearnerOptions options = without_workers(folder);
  options.callbacks = named(callback);
  Learner learner(zoo.model(), {.train = zoo.set(40, 1), .valid = zoo.set(20, 2)}, options);
  const MemoryPlan plan = learner.plan({.advice = false});
  ASSERT_TRUE(plan.known()) << plan.reason;
  EXPECT_EQ(plan.method, "meta") << plan.reason;
  EXPECT_EQ(plan.categories.total(), plan.peak_bytes);
  const memory::PeakScope scope(c10::kCPU);
  (void)learner.fit(2);
  EXPECT_EQ(plan.peak_bytes, scope.peak_above_start_bytes()) << plan.str();
}

TEST(PlanWithEma, AveragesTakeAsMuchAsTheWeights) {
  const TempDir folder;
  const Zoo zoo("mlp");
  const auto peak = [&](std::vector<CallbackPtr> callbacks) {
    LearnerOptions options = without_workers(folder);
    options.callbacks = std::move(callbacks);
    Learner learner(zoo.model(), {.train = zoo.set(40, 1)}, options);
    const int64_t weights = learner.ledger().bytes(c10::kCPU)[Category::parameters];
    return std::vector<int64_t>{learner.plan({.advice = false}).peak_bytes, weights};
  };
  const auto without = peak({}), with = peak({std::make_shared<Ema>()});
  EXPECT_EQ(with[0] - without[0], with[1] + 4) << "and the scalar of an update";
}

TEST(TensorBoard, OfARealFitContinuesAfterAResume) {
  const TempDir straight_folder, folder;
  const auto log = [] {
    return std::make_shared<TensorBoard>(
        TensorBoardOptions{.every = 1, .histograms = true, .gradients = true});
  };
  const char* const file = "tensorboard/events.out.tfevents.tare";
  Learner straight(make_net(), split_points(96), without_workers(straight_folder));
  torch::manual_seed(5);
  (void)straight.fit(3, {.callbacks = {log()}});
  auto expected = events_of(straight_folder / file);

  struct SaveAt final : Callback {
    [[nodiscard]] std::string name() const override { return "save_at"; }
    Action after_batch(FitContext& c) override {
      if (c.step == 8) c.learner.save("eight");
      return c.step == 11 ? Action::stop_fit : Action::proceed;
    }
  };
  Learner first(make_net(), split_points(96), without_workers(folder));
  torch::manual_seed(5);
  (void)first.fit(3, {.callbacks = {std::make_shared<SaveAt>(), log()}});
  Learner second(make_net(3), split_points(96), without_workers(folder));
  ASSERT_TRUE(second.load("eight").resumable);
  (void)second.resume({log()});
  auto seen = events_of(folder / file);
  EXPECT_THAT(steps_of(seen.at("epoch/train_loss")), ElementsAre(6, 12, 18));
  for (const char* differs :
       {"memory/allocated_mib", "memory/peak_mib", "throughput/samples_per_s"}) {
    EXPECT_EQ(steps_of(seen.at(differs)), steps_of(expected.at(differs)));
    seen.erase(differs);
    expected.erase(differs);
  }
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(seen.contains("weights/head.bias"));
  EXPECT_THAT(steps_of(seen.at("gradients/head.bias")), ElementsAre(0, 6, 12));
}

/// Returns how often `part` is in the text.
size_t count_of(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Logs, HaveTheColumnsOfCallbacksThatStandBehindThem) {
  const TempDir folder;
  LearnerOptions options = without_workers(folder);
  std::ostringstream table;
  options.callbacks = {std::make_shared<CsvLog>(), std::make_shared<Progress>(table),
                       std::make_shared<JsonlLog>(), std::make_shared<TensorBoard>()};
  Learner learner(make_net(), split_points(96), options);
  const FitResult fit = learner.fit(2, {.callbacks = {std::make_shared<GradientNorm>()}});
  ASSERT_EQ(fit.epochs.size(), 2U);
  EXPECT_THAT(io::read_text(folder / "history.csv"),
              HasSubstr("accuracy,grad_norm_mean,grad_norm_max,seconds\n"));
  EXPECT_THAT(table.str(), HasSubstr("grad_norm_mean"));
  EXPECT_EQ(count_of(io::read_text(folder / "log.jsonl"), "\"grad_norm_max\""), 2U);
  const auto events = events_of(folder / "tensorboard/events.out.tfevents.tare");
  ASSERT_TRUE(events.contains("epoch/grad_norm_mean"));
  EXPECT_THAT(steps_of(events.at("epoch/grad_norm_mean")), ElementsAre(6, 12));
}

TEST(Logs, InFrontOfWhatSavesEpochsHaveTheirRowInItsCheckpoints) {
  const TempDir folder;
  const auto callbacks = [] {
    return std::vector<CallbackPtr>{std::make_shared<CsvLog>(), std::make_shared<GradientNorm>(),
                                    std::make_shared<KeepCheckpoints>()};
  };
  Learner learner(make_net(), split_points(96), without_workers(folder));
  (void)learner.fit(3, {.callbacks = callbacks()});
  const std::string whole = io::read_text(folder / "history.csv");
  Learner resumed(make_net(7), split_points(96), without_workers(folder));
  ASSERT_TRUE(resumed.load("epoch-2").resumable);
  (void)resumed.resume(callbacks());
  const std::string again = io::read_text(folder / "history.csv");
  EXPECT_EQ(count_of(again, "\n"), 4U) << again;
  EXPECT_THAT(again, StartsWith(whole.substr(0, whole.find("\n3,"))));
}

}  // namespace
}  // namespace tare::testing

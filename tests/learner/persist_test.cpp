// Saving, loading, resuming and exporting a Learner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "learner/fixture.h"
#include "support/budget.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/callback/csv_log.h"
#include "tare/callback/monitor.h"
#include "tare/inference/predictor.h"
#include "tare/memory/oom.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

// Saves once, in the event and at the step that it is given.
struct SaveAt final : Callback {
  SaveAt(int64_t s, bool at_epoch_end) : step(s), at_epoch(at_epoch_end) {}
  [[nodiscard]] std::string name() const override { return "save_at"; }
  Action after_batch(FitContext& c) override {
    if (!at_epoch && c.step == step) c.learner.save("middle");
    return Action::proceed;
  }
  Action after_epoch(FitContext& c) override {
    if (at_epoch && c.step == step) c.learner.save("middle");
    return Action::proceed;
  }
  int64_t step;
  bool at_epoch;
};

class ResumeAt : public ::testing::TestWithParam<std::pair<int64_t, bool>> {};

TEST_P(ResumeAt, EqualsTheStraightRunBitForBit) {
  const auto [step, at_epoch] = GetParam();
  const TempDir folder;
  Learner straight(make_net(), split_points(), quiet(folder));
  torch::manual_seed(9);
  const auto whole = straight.fit_one_cycle(
      3, {.max_lr = 0.01, .callbacks = {std::make_shared<SaveAt>(step, at_epoch)}});

  Learner fresh(make_net(77), split_points(), quiet(folder));
  torch::manual_seed(1234);
  const LoadReport report = fresh.load("middle");
  EXPECT_TRUE(report.optimizer_loaded);
  ASSERT_TRUE(report.resumable);
  const auto rest = fresh.resume();
  EXPECT_TRUE(torch::equal(flat(straight.model()), flat(fresh.model())));
  ASSERT_EQ(rest.epochs.size(), whole.epochs.size());
  for (size_t i = 0; i < whole.epochs.size(); ++i) {
    EXPECT_EQ(rest.epochs[i].train_loss, whole.epochs[i].train_loss) << i;
    EXPECT_EQ(rest.epochs[i].valid_loss, whole.epochs[i].valid_loss) << i;
    EXPECT_EQ(rest.epochs[i].samples, whole.epochs[i].samples) << i;
  }
  const auto a = straight.optimizer().state(), b = fresh.optimizer().state();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(torch::equal(a[i].tensor, b[i].tensor)) << a[i].name;
  torch::manual_seed(3);
  const double next = fresh.fit(1).epochs[0].train_loss;
  torch::manual_seed(3);
  EXPECT_EQ(straight.fit(1).epochs[0].train_loss, next) << "and so does the next fit";
}

INSTANTIATE_TEST_SUITE_P(MidScheduleAndBetweenEpochs, ResumeAt,
                         ::testing::Values(std::pair<int64_t, bool>{1, false},
                                           std::pair<int64_t, bool>{8, false},
                                           std::pair<int64_t, bool>{6, false},
                                           std::pair<int64_t, bool>{6, true},
                                           std::pair<int64_t, bool>{17, false}));

TEST(Save, AfterAFitLoadsIntoANewLearner) {
  const TempDir folder;
  Learner first(make_net(), split_points(), quiet(folder));
  first.fit(2);
  first.save("done");
  Learner second(make_net(5), split_points(), quiet(folder));
  const LoadReport report = second.load("done");
  EXPECT_FALSE(report.resumable);
  EXPECT_TRUE(report.fresh.empty());
  EXPECT_EQ(second.history().size(), 2U);
  EXPECT_THROW(second.resume(), StateError);
  torch::manual_seed(4);
  const auto a = first.fit(1);
  second.load("done");
  torch::manual_seed(4);
  const auto b = second.fit(1);
  EXPECT_EQ(a.epochs[0].train_loss, b.epochs[0].train_loss);
}

TEST(Save, ThatRunsOutOfMemorySaysSoAndLeavesNoFile) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  try {
    const BudgetScope budget(1024);  // the state of a random generator has 5,056 bytes
    learner.save("whole");
    FAIL() << "was written";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what_without_backtrace(),
                ::testing::HasSubstr("the checkpoint 'whole' was not written, because its copies, "
                                     "such as the states of random generators, do not fit beside "
                                     "the training: raise the budget"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  learner.save("whole");
  EXPECT_TRUE(std::filesystem::exists(folder / "whole"));
}

TEST(Load, WithoutTheOptimizerDropsThePresentOne) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  learner.save("a");
  ASSERT_FALSE(learner.optimizer().state().empty());
  const LoadReport report = learner.load("a", {.with_opt = false});
  EXPECT_FALSE(report.optimizer_loaded);
  EXPECT_TRUE(learner.optimizer().state().empty());
}

TEST(Load, RefusesWhatDoesNotFitAndChangesNothing) {
  const TempDir folder;
  Learner other(torch::nn::Linear(kFeatures, kClasses), split_points(), quiet(folder));
  other.save("other");
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  const auto before = flat(learner.model());
  EXPECT_THROW(learner.load("other"), FormatError);
  EXPECT_THROW(learner.load("absent"), IoError);
  EXPECT_THROW(learner.load("../escape"), Error);
  EXPECT_TRUE(torch::equal(before, flat(learner.model())));
  EXPECT_FALSE(learner.optimizer().state().empty());
  const LoadReport report = learner.load("other", {.with_opt = false, .strict = false});
  EXPECT_FALSE(report.fresh.empty());
  EXPECT_FALSE(report.ignored.empty());
}

/// A body and a head for so many classes.
torch::nn::Sequential with_head(int64_t classes) {
  return torch::nn::Sequential(torch::nn::Linear(kFeatures, 4), torch::nn::ReLU(),
                               torch::nn::Linear(4, classes));
}

TEST(Load, NotStrictTakesTheOptimizerStateThatFits) {
  const TempDir folder;
  Learner first(with_head(kClasses + 2), split_points(), quiet(folder));
  (void)first.fit(1, {.callbacks = {std::make_shared<SaveAt>(6, true)}});
  first.save("done");
  Learner second(with_head(kClasses), split_points(), quiet(folder));
  second.fit(1);
  EXPECT_THAT(outcome_of([&] { (void)second.load("done"); }),
              ::testing::HasSubstr("strict = false takes what fits, of the optimizer too"));
  for (const char* name : {"done", "middle"}) {
    const LoadReport report = second.load(name, {.strict = false});
    EXPECT_TRUE(report.optimizer_loaded);
    EXPECT_THAT(report.fresh, ::testing::UnorderedElementsAre("2.weight", "2.bias"));
    EXPECT_THAT(report.optimizer_fresh, ::testing::UnorderedElementsAre("2.weight", "2.bias"));
    const auto mine = second.optimizer().state(), saved = first.optimizer().state();
    for (const auto& entry : saved) {
      const auto own = std::ranges::find(mine, entry.name, &NamedTensor::name);
      if (own == mine.end()) continue;
      if (entry.name.find("/2.") == std::string::npos)
        EXPECT_TRUE(torch::equal(own->tensor, entry.tensor)) << entry.name;
      else
        EXPECT_EQ(own->tensor.abs().sum().item<double>(), 0) << entry.name;
    }
  }
  EXPECT_EQ(second.fit(1).steps, 6);
}

TEST(Load, RefusesAFitOfOtherLayerGroups) {
  const TempDir folder;
  Learner saved(make_net(), split_points(), quiet(folder));
  saved.fit(1, {.callbacks = {std::make_shared<SaveAt>(2, false)}});
  Learner halves(Model(make_net(), {{"body", {"first", "norm", "second"}}, {"head", {"head"}}}),
                 split_points(), quiet(folder));
  const auto before = flat(halves.model());
  const std::string outcome = outcome_of([&] { halves.load("middle"); });
  EXPECT_NE(outcome.find("state.fit.rates: is for another number of layer groups"),
            std::string::npos)
      << outcome;
  EXPECT_TRUE(torch::equal(before, flat(halves.model())));
  EXPECT_FALSE(halves.load("middle", {.with_opt = false}).resumable);
}

TEST(Load, RefusesADamagedCheckpoint) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  learner.save("a");
  const auto file = folder.path() / "a" / "model.safetensors";
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(-9, std::ios::end);
  const char byte = static_cast<char>(stream.peek() ^ 4);
  stream.seekp(-9, std::ios::end);
  stream.put(byte);
  stream.close();
  const auto before = flat(learner.model());
  EXPECT_THROW(learner.load("a"), FormatError);
  EXPECT_TRUE(torch::equal(before, flat(learner.model())));
}

TEST(Load, RefusesAnotherOptimizersStateBeforeAnythingChanges) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.optimizer = {.kind = "sgd", .lr = 0.01};
  Learner sgd(make_net(), split_points(), options);
  sgd.fit(1);
  sgd.save("sgd");
  Learner adamw(make_net(3), split_points(), quiet(folder));
  adamw.fit(1);
  const auto before = flat(adamw.model());
  EXPECT_THROW(adamw.load("sgd"), ConfigError);
  EXPECT_TRUE(torch::equal(before, flat(adamw.model())));
  adamw.load("sgd", {.with_opt = false});
  EXPECT_TRUE(torch::equal(flat(sgd.model()), flat(adamw.model())));
}

TEST(SaveBest, BringsTheBestWeightsBack) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  // A rate that makes later epochs worse.
  const auto result = learner.fit(6, {.lr = 0.3, .callbacks = {std::make_shared<SaveBest>()}});
  double best = 1e9;
  for (const auto& row : result.epochs) best = std::min(best, row.valid_loss);
  EXPECT_NEAR(learner.validate().loss, best, 1e-6);
}

TEST(CsvLog, HoldsEveryEpochAlsoAfterAResume) {
  const TempDir folder;
  const auto read = [&] {
    std::ifstream stream(folder / "history.csv");
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line.substr(0, line.rfind(',')));
    return lines;
  };
  Learner straight(make_net(), split_points(), quiet(folder));
  torch::manual_seed(2);
  straight.fit(3, {.callbacks = {std::make_shared<CsvLog>(), std::make_shared<SaveAt>(8, false)}});
  const auto whole = read();
  ASSERT_EQ(whole.size(), 4U);
  EXPECT_EQ(whole[0], "epoch,train_loss,valid_loss,accuracy");
  Learner fresh(make_net(6), split_points(), quiet(folder));
  fresh.load("middle");
  fresh.resume({std::make_shared<CsvLog>()});
  EXPECT_EQ(read(), whole);
}

TEST(Export, RoundTripsThroughTheRegistry) {
  const TempDir folder;
  const auto images = torch::randint(0, 255, {24, 1, 16, 16}, torch::kUInt8);
  const Transforms pipeline{Normalise{.mean = {0.1}, .std = {0.3}}, Shift{.pixels = 1}};
  const DatasetPtr raw = tensor_dataset(images, torch::arange(24) % 10);
  LearnerOptions options = quiet(folder);
  Learner learner(
      models::make("convnet", {.sample_shape = {1, 16, 16}}),
      {.train = transformed(raw, pipeline), .valid = transformed(raw, pipeline.deterministic())},
      options);
  learner.fit(1);
  const auto expected = learner.get_preds().outputs;
  learner.export_to(folder / "net.tare");
  Predictor predictor(folder / "net.tare");
  EXPECT_TRUE(torch::equal(predictor.predict(images.slice(0, 0, 16)), expected.slice(0, 0, 16)));
  EXPECT_EQ(predictor.manifest().activation, "softmax");
  EXPECT_FALSE(predictor.manifest().transforms.random());

  auto loaded =
      load_learner(folder / "net.tare", {.test = raw, .device = test_device(), .batch = 16});
  EXPECT_TRUE(torch::equal(loaded->get_preds(Split::test).outputs, expected));
  EXPECT_EQ(loaded->validate(Split::test).samples, 24);
  EXPECT_THROW(loaded->fit(1), StateError);
  loaded->export_to(folder / "again.tare", {.destroy = true});
  EXPECT_TRUE(loaded->destroyed());
  EXPECT_EQ(Predictor(folder / "again.tare").manifest().transforms,
            predictor.manifest().transforms);
}

TEST(Export, ABundleKeepsTheNameOfItsLossButNoFunction) {
  const TempDir folder;
  const auto exported = [&](Loss loss) {
    LearnerOptions options = quiet(folder);
    options.loss = std::move(loss);
    Learner learner(models::make("mlp", {.sample_shape = {8}}), split_points(), std::move(options));
    learner.export_to(folder / "net.tare", {.destroy = true});
  };
  const DatasetPtr test = split_points().test;
  exported("cross_entropy");
  const double expected = load_learner(folder / "net.tare", {.test = test, .device = test_device()})
                              ->validate(Split::test)
                              .loss;

  const LossFunction own = [](const at::Tensor& out, const at::Tensor& y) {
    return torch::cross_entropy_loss(out, y);
  };
  exported(own);
  auto loaded = load_learner(folder / "net.tare", {.test = test, .device = test_device()});
  EXPECT_EQ(loaded->get_preds(Split::test).outputs.size(0), test->size());
  EXPECT_THROW(loaded->validate(Split::test), StateError);
  EXPECT_NO_THROW(
      load_learner(folder / "net.tare", {.test = test, .loss = own, .device = test_device()})
          ->validate(Split::test));
  EXPECT_GT(expected, 0);
}

TEST(Export, OfAModuleOutsideTheRegistryFillsItAgain) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  learner.export_to(folder / "net.tare");
  EXPECT_THROW((void)load_learner(folder / "net.tare"), ConfigError);
  auto loaded = load_learner(folder / "net.tare", Model(make_net(50)),
                             {.test = split_points().test, .device = test_device()});
  EXPECT_TRUE(torch::equal(flat(learner.model()), flat(loaded->model())));
}

}  // namespace
}  // namespace tare::testing

// Every mean is weighted by what was counted: labels of -100 change no figure, whatever the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "tare/base/error.h"
#include "tare/callback/csv_log.h"

namespace tare::testing {
namespace {

namespace F = torch::nn::functional;

constexpr double kCountRounding = 1e-6;  // float32 means in another order

// The first 20 labels and every fourth of the rest are left out: batches without any label, and
// batches with different numbers of them.
DatasetPtr with_ignored(int64_t n, uint64_t seed) {
  const DatasetPtr whole = points(n, seed);
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  const Batch batch = whole->get({.indices = all});
  auto target = batch.target().clone();
  target.slice(0, 0, 20).fill_(kIgnoredLabel);
  target.slice(0, 20, n, 4).fill_(kIgnoredLabel);
  return tensor_dataset(batch.input(), target);
}

LearnerOptions fixed_order(const TempDir& folder, int64_t batch) {
  LearnerOptions options = quiet(folder);
  options.batch = batch;
  options.shuffle = false;
  options.metrics = {"accuracy", "error_rate"};
  return options;
}

// Without dropout and batch norm, and with a rate of 0, each batch sees the same weights.
Model still_net() {
  torch::manual_seed(3);
  return {torch::nn::Sequential(torch::nn::Linear(kFeatures, 16), torch::nn::ReLU(),
                                torch::nn::Linear(16, kClasses))};
}

class Ignored : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Batches, Ignored, ::testing::Values(1, 7, 16, 90));

TEST_P(Ignored, LabelsChangeNoFigureOfAnyBatch) {
  const TempDir folder;
  LearnerOptions options = fixed_order(folder, GetParam());
  options.optimizer = {.kind = "sgd", .lr = 1e-12, .momentum = 0};
  const DatasetPtr data = with_ignored(90, 11);
  Learner learner(still_net(), {.train = data, .valid = data}, options);
  const Predictions raw = learner.get_preds(Split::train, {.activation = false, .losses = true});
  const auto counts = raw.targets.ne(kIgnoredLabel);
  const double loss = F::cross_entropy(raw.outputs, raw.targets).item<double>();
  const double right = raw.outputs.argmax(1).eq(raw.targets).sum().item<double>();
  const double accuracy = right / counts.sum().item<double>();

  const EpochRow row = learner.fit(1, {.callbacks = {std::make_shared<CsvLog>()}}).epochs.at(0);
  EXPECT_NEAR(row.train_loss, loss, kCountRounding);
  EXPECT_NEAR(row.valid_loss, loss, kCountRounding);
  EXPECT_EQ(row.samples, 90);
  EXPECT_NEAR(row.metrics.at(0).value, accuracy, 1e-12);
  EXPECT_NEAR(row.metrics.at(1).value, 1 - accuracy, 1e-12);
  const Evaluation seen = learner.validate();
  EXPECT_EQ(seen.samples, 90);
  EXPECT_EQ(seen.counted, counts.sum().item<int64_t>());
  EXPECT_NEAR(raw.losses.sum().item<double>() / static_cast<double>(seen.counted), loss,
              kCountRounding);
}

TEST_P(Ignored, LabelsInPartsOfABatch) {
  const TempDir folder;
  LearnerOptions options = fixed_order(folder, 90);
  options.micro_batch = GetParam();
  options.optimizer = {.kind = "sgd", .lr = 1e-12, .momentum = 0};
  const DatasetPtr data = with_ignored(90, 11);
  Learner learner(still_net(), {.train = data, .valid = data}, options);
  const Predictions raw = learner.get_preds(Split::train, {.activation = false});
  const double loss = F::cross_entropy(raw.outputs, raw.targets).item<double>();
  const EpochRow row = learner.fit(1).epochs.at(0);
  EXPECT_NEAR(row.train_loss, loss, kCountRounding);
  EXPECT_NEAR(row.valid_loss, loss, kCountRounding);
}

Loss weighted() { return {"cross_entropy", CrossEntropyOptions{.class_weights = {0.3, 2, 0}}}; }

// The mean over the whole split, as torch weighs it.
double weighted_mean(const Predictions& raw) {
  const auto weight = torch::tensor({0.3f, 2.0f, 0.0f});
  return F::cross_entropy(raw.outputs, raw.targets, F::CrossEntropyFuncOptions().weight(weight))
      .item<double>();
}

// One of the three classes weighs nothing, so that some batches have no loss.
TEST_P(Ignored, LabelsBesideClassWeightsInBatchesAndInParts) {
  for (const bool parts : {false, true}) {
    const TempDir folder;
    LearnerOptions options = fixed_order(folder, parts ? 90 : GetParam());
    if (parts) options.micro_batch = GetParam();
    options.loss = weighted();
    options.optimizer = {.kind = "sgd", .lr = 1e-12, .momentum = 0};
    const DatasetPtr data = with_ignored(90, 11);
    Learner learner(still_net(), {.train = data, .valid = data}, options);
    const Predictions raw = learner.get_preds(Split::train, {.activation = false, .losses = true});
    const double loss = weighted_mean(raw);
    const EpochRow row = learner.fit(1).epochs.at(0);
    EXPECT_NEAR(row.train_loss, loss, kCountRounding) << parts;
    EXPECT_NEAR(row.valid_loss, loss, kCountRounding) << parts;
    const Evaluation seen = learner.validate();
    const double wanted =
        0.3 * raw.targets.eq(0).sum().item<double>() + 2.0 * raw.targets.eq(1).sum().item<double>();
    EXPECT_NEAR(seen.counted, wanted, 1e-9);
    EXPECT_NEAR(raw.losses.sum().item<double>() / seen.counted, loss, kCountRounding);
  }
}

TEST(Counted, ClassWeightsGiveOneGradientInPartsAndAsAWhole) {
  const auto after = [](std::optional<int64_t> micro_batch) {
    const TempDir folder;
    LearnerOptions options = fixed_order(folder, 90);
    options.micro_batch = micro_batch;
    options.loss = weighted();
    options.optimizer = {.kind = "sgd", .lr = 0.1, .weight_decay = 0, .momentum = 0};
    Learner learner(still_net(), {.train = with_ignored(90, 11)}, options);
    learner.fit(3);
    return flat(learner.model());
  };
  const auto whole = after({});
  EXPECT_TRUE(torch::allclose(whole, after(7), kCountRounding, kCountRounding));
  EXPECT_TRUE(torch::allclose(whole, after(1), kCountRounding, kCountRounding));
}

TEST(Counted, ClassWeightsResumeInsideAnEpochToTheirMean) {
  const TempDir folder;
  LearnerOptions options = fixed_order(folder, 16);
  options.loss = weighted();
  const DatasetPtr data = with_ignored(90, 11);
  Learner straight(still_net(), {.train = data}, options);
  const double wanted = straight.fit(1).epochs.at(0).train_loss;

  struct Stop final : Callback {
    [[nodiscard]] std::string name() const override { return "stop"; }
    Action after_batch(FitContext& context) override {
      if (context.batch == 3) context.learner.save("inside");
      return Action::proceed;
    }
  };
  Learner saving(still_net(), {.train = data}, options);
  saving.fit(1, {.callbacks = {std::make_shared<Stop>()}});
  Learner resumed(still_net(), {.train = data}, options);
  ASSERT_TRUE(resumed.load("inside").resumable);
  EXPECT_EQ(resumed.resume().epochs.at(0).train_loss, wanted);
}

TEST(Counted, ClassWeightsOfAnotherNumberOfClassesEndTheFitBeforeItsFirstStep) {
  const TempDir folder;
  LearnerOptions options = fixed_order(folder, 16);
  options.loss = {"cross_entropy", CrossEntropyOptions{.class_weights = {1, 2}}};
  Learner learner(still_net(), {.train = points(90, 11)}, options);
  const auto before = flat(learner.model());
  try {
    learner.fit(1);
    FAIL() << "two weights for three classes were accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("each of the 3 classes"));
  }
  EXPECT_TRUE(torch::equal(before, flat(learner.model())));
}

TEST(Counted, ABatchWithoutAnyLabelMovesNothingAndHasNoNan) {
  const TempDir folder;
  LearnerOptions options = fixed_order(folder, 10);
  options.optimizer = {.kind = "sgd", .lr = 0.1, .weight_decay = 0, .momentum = 0};
  const auto none =
      tensor_dataset(torch::randn({10, kFeatures}), torch::full({10}, kIgnoredLabel, torch::kLong));
  Learner learner(still_net(), {.train = none, .valid = none}, options);
  const auto before = flat(learner.model());
  const FitResult result = learner.fit(2);
  EXPECT_EQ(result.steps, 2);
  EXPECT_TRUE(torch::equal(before, flat(learner.model())));
  EXPECT_TRUE(std::isnan(result.epochs.at(0).train_loss)) << "a mean of nothing";
  EXPECT_TRUE(std::isnan(result.epochs.at(0).metrics.at(0).value));
}

// Sequences whose batches have different lengths: 30 of 2 tokens, then 10 of 6.
class Sequences final : public Dataset {
 public:
  [[nodiscard]] int64_t size() const override { return 40; }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return {kFeatures}; }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    const int64_t tokens = request.indices[0] < 30 ? 2 : 6;
    const auto n = static_cast<int64_t>(request.indices.size());
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(request.indices[0]));
    const auto input = torch::empty({n, kFeatures, tokens}).normal_(0, 1, generator);
    return {input, input.argmax(1).remainder(kClasses)};
  }
};

struct PerTokenImpl : torch::nn::Module {
  PerTokenImpl() { conv = register_module("conv", torch::nn::Conv1d(kFeatures, kClasses, 1)); }
  torch::Tensor forward(const torch::Tensor& x) { return conv(x); }
  torch::nn::Conv1d conv{nullptr};
};
TORCH_MODULE(PerToken);

TEST(Counted, TokensWeighSequencesOfDifferentLengths) {
  const TempDir folder;
  const auto data = std::make_shared<Sequences>();
  Learner learner(PerToken(), {.train = data, .valid = data}, fixed_order(folder, 10));
  double sum = 0;
  const torch::NoGradGuard no_grad;
  for (int64_t first = 0; first < 40; first += 10) {
    std::vector<int64_t> indices(10);
    std::iota(indices.begin(), indices.end(), first);
    const Batch batch = data->get({.indices = indices});
    sum += F::cross_entropy(learner.model().forward(batch.input()), batch.target(),
                            F::CrossEntropyFuncOptions().reduction(torch::kSum))
               .item<double>();
  }
  const Evaluation seen = learner.validate();
  EXPECT_EQ(seen.counted, 30 * 2 + 10 * 6);
  EXPECT_NEAR(seen.loss, sum / 120, kCountRounding);
}

TEST(Counted, AFunctionAndATaskSayWhatTheirMeanIsOver) {
  const TempDir folder;
  const DatasetPtr data = with_ignored(90, 11);
  const auto count = [](const at::Tensor& target) {
    return target.ne(kIgnoredLabel).sum().item<int64_t>();
  };
  const auto mean = [](const at::Tensor& output, const at::Tensor& target) {
    return F::cross_entropy(output, target, F::CrossEntropyFuncOptions().reduction(torch::kSum)) /
           target.ne(kIgnoredLabel).sum().clamp_min(1);
  };
  const auto evaluated = [&](LearnerOptions options) {
    Learner learner(still_net(), {.train = data, .valid = data}, std::move(options));
    return learner.validate();
  };
  LearnerOptions named = fixed_order(folder, 16), function = named, task = named;
  named.metrics.clear();
  const double expected = evaluated(named).loss;
  function.loss = {mean, count};
  function.metrics = {Metric("mean", mean, count)};
  const Evaluation by_function = evaluated(function);
  EXPECT_NEAR(by_function.loss, expected, kCountRounding);
  EXPECT_NEAR(by_function.metrics.at(0).value, expected, kCountRounding);
  task.task = {.step =
                   [&](Model& model, const Batch& batch) {
                     const auto output = model.forward(batch.input());
                     return StepResult{mean(output, batch.target()), output};
                   },
               .counted = [&](const Batch& batch) { return count(batch.target()); }};
  EXPECT_NEAR(evaluated(task).loss, expected, kCountRounding);
  task.micro_batch = 3;
  EXPECT_NEAR(evaluated(task).loss, expected, kCountRounding);
}

}  // namespace
}  // namespace tare::testing

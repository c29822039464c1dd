// Models of several inputs or outputs, data of several targets, and losses of whole batches.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "support/budget.h"
#include "support/outcome.h"
#include "tare/inference/predictor.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kWide = 512;

/// Two inputs that share their first layer; two classes.
struct SiameseImpl : torch::nn::Module {
  SiameseImpl() {
    body = register_module("body", torch::nn::Linear(kWide, 16));
    head = register_module("head", torch::nn::Linear(16, 2));
  }
  torch::Tensor forward(torch::Tensor left, torch::Tensor right) {
    return head((torch::relu(body(left)) - torch::relu(body(right))).abs());
  }
  torch::nn::Linear body{nullptr}, head{nullptr};
};
TORCH_MODULE(Siamese);

/// One input, two outputs of different sizes.
struct ForkedImpl : torch::nn::Module {
  ForkedImpl() {
    body = register_module("body", torch::nn::Linear(kFeatures, 8));
    one = register_module("one", torch::nn::Linear(8, 1));
    three = register_module("three", torch::nn::Linear(8, 3));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    x = torch::relu(body(x));
    return {one(x), three(x)};
  }
  torch::nn::Linear body{nullptr}, one{nullptr}, three{nullptr};
};
TORCH_MODULE(Forked);

/// A forward of the whole batch, which finds its inputs by name.
struct ByNameImpl : torch::nn::Module {
  ByNameImpl() { body = register_module("body", Siamese()); }
  torch::Tensor forward(const Batch& batch) {
    return body->forward(batch.input("left"), batch.input("right"));
  }
  Siamese body{nullptr};
};
TORCH_MODULE(ByName);

/// Its weights are the same each time.
template <class Holder>
Holder seeded() {
  torch::manual_seed(3);
  return Holder();
}

Model siamese() {
  static const bool added = [] {
    models::add({.name = "test_siamese",
                 .summary = "two inputs",
                 .sample_shape = {kWide},
                 .make = [](const ModelOptions&) { return Model(Siamese()); }});
    return true;
  }();
  static_cast<void>(added);
  torch::manual_seed(3);
  return models::make("test_siamese", {.classes = 2});
}

DatasetPtr pairs(int64_t n, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto left = torch::empty({n, kWide}).normal_(0, 1, generator);
  const auto same = torch::arange(n) % 2;
  const auto right = torch::where(same.unsqueeze(1) == 1, left, -left);
  return tensor_dataset({{"left", left}, {"right", right}}, {{"same", same}});
}

Splits split_pairs() { return {.train = pairs(96, 1), .valid = pairs(40, 2), .test = pairs(8, 3)}; }

struct TensorScene {
  TempDir folder;
  LearnerOptions options = quiet(folder);
  TensorScene() {
    at::set_num_threads(1);
    options.batch = 32;
    options.workers = 0;
  }
};

TEST(Tensors, AModelOfTwoInputsTrainsAsItIs) {
  TensorScene s;
  Learner learner(seeded<Siamese>(), split_pairs(), s.options);
  const FitResult result = learner.fit(3, {.lr = 1e-2});
  EXPECT_GT(result.epochs.back().metrics[0].value, 0.9);

  LearnerOptions by_hand = s.options;
  by_hand.task.step = [](Model& model, const Batch& batch) -> StepResult {
    auto& net = model.as<SiameseImpl>();
    const auto output = net.forward(batch.inputs[0].tensor, batch.inputs[1].tensor);
    return {torch::cross_entropy_loss(output, batch.target("same")), output};
  };
  Learner other(seeded<Siamese>(), split_pairs(), by_hand);
  other.fit(3, {.lr = 1e-2});
  EXPECT_TRUE(torch::equal(flat(learner.model()), flat(other.model())));
}

TEST(Tensors, AForwardOfTheBatchFindsItsInputsByName) {
  TensorScene s;
  Learner two(seeded<Siamese>(), split_pairs(), s.options);
  Learner by_name(seeded<ByName>(), split_pairs(), s.options);
  two.fit(1);
  by_name.fit(1);
  EXPECT_TRUE(torch::equal(flat(two.model()), flat(by_name.model())));
}

TEST(Tensors, MicroBatchesCutEveryTensor) {
  TensorScene s;
  s.options.optimizer = {.kind = "sgd"};
  Learner whole(seeded<Siamese>(), split_pairs(), s.options);
  s.options.micro_batch = 12;
  Learner cut(seeded<Siamese>(), split_pairs(), s.options);
  const auto a = whole.fit(2, {.lr = 1e-2}), b = cut.fit(2, {.lr = 1e-2});
  EXPECT_TRUE(torch::allclose(flat(whole.model()), flat(cut.model()), 1e-4, 1e-6));
  EXPECT_NEAR(a.epochs.back().valid_loss, b.epochs.back().valid_loss, 1e-5);
}

void expect_as_planned(Learner& learner) {
  const MemoryPlan plan = learner.plan({.advice = false});
  ASSERT_TRUE(plan.known()) << plan.reason;
  const memory::PeakScope scope(c10::kCPU);
  learner.fit(1);
  EXPECT_EQ(plan.peak_bytes, scope.peak_above_start_bytes()) << plan.str();
}

TEST(Tensors, ThePlanIsExact) {
  TensorScene s;
  Learner whole(siamese(), split_pairs(), s.options);
  expect_as_planned(whole);
  expect_as_planned(whole);
  s.options.micro_batch = 12;
  Learner cut(siamese(), split_pairs(), s.options);
  expect_as_planned(cut);
}

TEST(Tensors, ABudgetCutsTheBatch) {
  TensorScene s;
  Learner free(siamese(), split_pairs(), s.options);
  const int64_t peak = free.plan({.advice = false}).peak_bytes;
  Learner tight(siamese(), split_pairs(), s.options);
  free.fit(1);
  const BudgetScope budget(tracked() + peak * 7 / 10);
  const FitResult result = tight.fit(1);
  EXPECT_EQ(result.reason, StopReason::finished);
  EXPECT_TRUE(torch::allclose(flat(free.model()), flat(tight.model()), 1e-3, 1e-4));
}

/// The names of what a ledger lists as the batch.
struct BatchNames final : Callback {
  [[nodiscard]] std::string name() const override { return "names"; }
  Action after_loss(FitContext&) override {
    names.clear();
    const Ledger ledger = learner->ledger();
    for (const auto& entry : ledger.entries())
      if (entry.category == Category::batch) names.push_back(entry.name);
    return Action::proceed;
  }
  const Learner* learner = nullptr;
  std::vector<std::string> names{};
};

TEST(Tensors, TheLedgerNamesThem) {
  TensorScene s;
  const auto seen = std::make_shared<BatchNames>();
  s.options.callbacks = {seen};
  Learner learner(seeded<Siamese>(), split_pairs(), s.options);
  seen->learner = &learner;
  learner.fit(1);
  EXPECT_THAT(seen->names, ElementsAre("left", "right", "same"));
}

DatasetPtr measured(int64_t n, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto input = torch::empty({n, kFeatures}).normal_(0, 1, generator);
  const auto age = input.sum(1, true), size = input.narrow(1, 0, 3) * 2;
  return tensor_dataset({{"input", input}}, {{"age", age}, {"size", size}});
}

TEST(Tensors, TheMeanOfTwoTargetsIsOverAllOfTheirElements) {
  TensorScene s;
  s.options.loss = "mse";
  s.options.metrics = {"mae", "rmse"};
  Learner learner(seeded<Forked>(), {.train = measured(64, 1), .valid = measured(20, 2)},
                  s.options);
  const Evaluation before = learner.validate();
  const Predictions all = learner.get_preds(Split::valid, {.losses = true});
  const auto one = (all.outputs - all.targets).square(),
             three = (all.more_outputs.at(0) - all.more_targets.at(0)).square();
  EXPECT_NEAR(before.loss, torch::cat({one, three}, 1).mean().item<double>(), 1e-6);
  EXPECT_EQ(before.counted, 80);
  EXPECT_TRUE(torch::allclose(all.losses, (one.mean(1) + three.mean(1)) / 2));
  std::vector<std::string> names;
  for (const auto& metric : before.metrics) names.push_back(metric.name);
  EXPECT_THAT(names, ElementsAre("mae.age", "mae.size", "rmse.age", "rmse.size"));
  EXPECT_NEAR(before.metrics[2].value, std::sqrt(one.mean().item<double>()), 1e-6);
  const FitResult result = learner.fit(20, {.lr = 3e-2});
  EXPECT_LT(result.epochs.back().valid_loss, before.loss / 4);
}

TEST(Tensors, LabelsThatAreLeftOutWeighInPartsAsInTheWhole) {
  TensorScene s;
  auto generator = at::detail::createCPUGenerator(4);
  const auto input = torch::empty({32, kFeatures}).normal_(0, 1, generator);
  auto first = torch::zeros({32}, torch::kLong), second = torch::arange(32) % 3;
  second.narrow(0, 5, 20).fill_(kIgnoredLabel);
  const DatasetPtr data =
      tensor_dataset({{"input", input}}, {{"first", first}, {"second", second}});
  s.options.metrics = {};
  s.options.optimizer = {.kind = "sgd"};
  Learner whole(seeded<Forked>(), {.train = data, .valid = data}, s.options);
  s.options.micro_batch = 7;
  Learner cut(seeded<Forked>(), {.train = data, .valid = data}, s.options);
  EXPECT_EQ(whole.validate().counted, 44);
  EXPECT_NEAR(whole.validate().loss, cut.validate().loss, 1e-6);
  whole.fit(2, {.lr = 0.1});
  cut.fit(2, {.lr = 0.1});
  EXPECT_TRUE(torch::allclose(flat(whole.model()), flat(cut.model()), 1e-4, 1e-6));
}

TEST(Tensors, ALossOfTheBatchSeesWeightsOfSamples) {
  TensorScene s;
  auto generator = at::detail::createCPUGenerator(4);
  const auto input = torch::empty({32, kFeatures}).normal_(0, 1, generator);
  const auto weight = (torch::arange(32) % 4 == 0).to(torch::kFloat);
  const DatasetPtr data =
      tensor_dataset({{"input", input}}, {{"label", torch::arange(32) % 3}, {"weight", weight}});
  s.options.metrics = {};
  s.options.loss = Loss::of_batch(
      [](const Outputs& outputs, const Batch& batch) {
        const auto each = torch::nn::functional::cross_entropy(
            outputs[1], batch.target("label"),
            torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
        const auto& weights = batch.target("weight");
        return (each * weights).sum() / weights.sum().clamp_min(1);
      },
      [](const Batch& batch) { return batch.target("weight").sum().item<int64_t>(); });
  Learner learner(seeded<Forked>(), {.train = data, .valid = data}, s.options);
  const auto output = learner.get_preds().more_outputs.at(0);
  const auto chosen = torch::arange(0, 32, 4);
  const double expected =
      torch::cross_entropy_loss(output.index_select(0, chosen), (chosen % 3)).item<double>();
  EXPECT_NEAR(learner.validate().loss, expected, 1e-6);
  s.options.micro_batch = 5;
  Learner cut(seeded<Forked>(), {.train = data, .valid = data}, s.options);
  EXPECT_NEAR(cut.validate().loss, expected, 1e-6);
  learner.fit(2, {.lr = 0.1});
  cut.fit(2, {.lr = 0.1});
  EXPECT_TRUE(torch::allclose(flat(learner.model()), flat(cut.model()), 1e-4, 1e-6));
}

TEST(Tensors, ABundleHoldsEveryInput) {
  TensorScene s;
  Learner learner(siamese(), split_pairs(), s.options);
  learner.fit(1);
  const auto expected = learner.get_preds(Split::test).outputs;
  const auto path = s.folder / "pair.tare";
  learner.export_to(path);
  const Bundle bundle = open_bundle(path);
  EXPECT_THAT(
      bundle.manifest().more_inputs,
      ElementsAre(BundleInput{.name = "right", .dtype = "float32", .sample_shape = {kWide}}));
  Predictor predictor(path);
  const Batch batch = get_all(*pairs(8, 3));
  EXPECT_TRUE(torch::allclose(predictor.predict(batch).front(), expected));
  EXPECT_THAT(outcome_of([&] { (void)predictor.predict(batch.input()); }), HasSubstr("2 inputs"));
  Batch narrow = batch;
  narrow.inputs[1].tensor = batch.inputs[1].tensor.narrow(1, 0, 5);
  EXPECT_THAT(outcome_of([&] { (void)predictor.predict(narrow); }), HasSubstr("right"));
  const auto loaded = load_learner(path, {.test = pairs(8, 3), .device = test_device()});
  EXPECT_TRUE(torch::allclose(loaded->get_preds(Split::test).outputs, expected));
}

TEST(Tensors, AResumedFitEqualsTheStraightOne) {
  TensorScene s;
  Learner straight(seeded<Siamese>(), split_pairs(), s.options);
  straight.fit(3);
  struct Stop final : Callback {
    [[nodiscard]] std::string name() const override { return "stop"; }
    Action after_batch(FitContext& c) override {
      if (c.step == 4) {
        c.learner.save("half");
        throw std::runtime_error("stop");
      }
      return Action::proceed;
    }
  };
  Learner stopped(seeded<Siamese>(), split_pairs(), s.options);
  EXPECT_THROW(stopped.fit(3, {.callbacks = {std::make_shared<Stop>()}}), std::runtime_error);
  Learner resumed(seeded<Siamese>(), split_pairs(), s.options);
  resumed.load("half");
  resumed.resume();
  EXPECT_TRUE(torch::equal(flat(straight.model()), flat(resumed.model())));
}

TEST(Tensors, MistakesAreNamed) {
  TensorScene s;
  const auto message = [&](auto holder, const Splits& data) {
    return outcome_of([&] {
      Learner learner(std::move(holder), data, s.options);
      learner.fit(1);
    });
  };
  EXPECT_THAT(message(make_net(), split_pairs()),
              HasSubstr("a batch of 1 input, as many as the module's forward has parameters"));
  EXPECT_THAT(message(make_net(), split_pairs()), HasSubstr("2: left, right"));
  EXPECT_THAT(message(seeded<Siamese>(), split_points()), HasSubstr("a batch of 2 inputs"));
  EXPECT_THAT(message(seeded<Forked>(), split_points()),
              HasSubstr("as many outputs of the model as targets of the data, 1"));
  const Batch batch = get_all(*pairs(4, 1));
  EXPECT_THAT(outcome_of([&] { (void)batch.input("lefft"); }), HasSubstr("did you mean \"left\""));
  EXPECT_THAT(outcome_of([&] { (void)batch.target("left"); }), HasSubstr("no target 'left'"));
}

}  // namespace
}  // namespace tare::testing

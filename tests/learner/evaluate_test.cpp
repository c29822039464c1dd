// Validation and predictions of a Learner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "learner/fixture.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

TEST(Validate, EqualsTheWholeSplitAtOnce) {
  const TempDir folder;
  Splits data = split_points(48, 37);  // a last batch that is not full
  Learner learner(make_net(), data, quiet(folder));
  learner.fit(2);
  const Evaluation result = learner.validate();
  const Predictions raw = learner.get_preds(Split::valid, {.activation = false});
  const double loss = torch::nn::functional::cross_entropy(raw.outputs, raw.targets).item<double>();
  const double accuracy =
      raw.outputs.argmax(1).eq(raw.targets).to(torch::kDouble).mean().item<double>();
  constexpr double kRounding = 1e-6;  // float32 means in another order
  EXPECT_NEAR(result.loss, loss, kRounding);
  EXPECT_NEAR(result.metrics.at(0).value, accuracy, kRounding);
  EXPECT_EQ(result.samples, 37);
}

TEST(GetPreds, GivesTheSplitInItsOrderWithActivationAndLosses) {
  const TempDir folder;
  Splits data = split_points();
  Learner learner(make_net(), data, quiet(folder));
  const Predictions p = learner.get_preds(Split::train, {.activation = true, .losses = true});
  std::vector<int64_t> all(90);
  std::iota(all.begin(), all.end(), 0);
  const Batch whole = data.train->get({.indices = all});
  EXPECT_TRUE(torch::equal(p.targets, whole.target()));
  EXPECT_TRUE(torch::allclose(p.outputs.sum(1), torch::ones(90)));
  const auto raw = learner.get_preds(Split::train, {.activation = false}).outputs;
  EXPECT_TRUE(torch::allclose(torch::softmax(raw, 1), p.outputs));
  const auto losses = torch::nn::functional::cross_entropy(
      raw, whole.target(),
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
  EXPECT_TRUE(torch::allclose(losses, p.losses));
  EXPECT_FALSE(learner.get_preds(Split::train).losses.defined());
}

/// Counts the batches that it gives.
class CountedData : public Dataset {
 public:
  explicit CountedData(DatasetPtr base) : base_(std::move(base)) {}
  [[nodiscard]] int64_t size() const override { return base_->size(); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    ++batches;
    return base_->get(request);
  }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return base_->sample_shape(); }
  mutable std::atomic<int64_t> batches = 0;

 private:
  DatasetPtr base_;
};

TEST(Evaluate, GivesFiguresAndPredictionsInOnePass) {
  const TempDir folder;
  Splits data = split_points(48, 37);
  const auto valid = std::make_shared<CountedData>(data.valid);
  data.valid = valid;
  for (const std::optional<int64_t> micro_batch : {std::optional<int64_t>{}, {5}}) {
    LearnerOptions options = quiet(folder);
    options.micro_batch = micro_batch;
    Learner learner(make_net(), data, options);
    const Evaluation figures = learner.validate();
    const Predictions predictions = learner.get_preds(Split::valid, {.losses = true});
    valid->batches = 0;
    const EvaluatedPredictions both = learner.evaluate(Split::valid, {.losses = true});
    EXPECT_EQ(valid->batches, 3);
    EXPECT_EQ(both.figures.loss, figures.loss);
    EXPECT_EQ(both.figures.metrics.at(0).value, figures.metrics.at(0).value);
    EXPECT_EQ(both.figures.samples, 37);
    EXPECT_TRUE(torch::equal(both.predictions.outputs, predictions.outputs));
    EXPECT_TRUE(torch::equal(both.predictions.targets, predictions.targets));
    EXPECT_TRUE(torch::equal(both.predictions.losses, predictions.losses));
    EXPECT_FALSE(learner.evaluate().predictions.losses.defined());
  }
}

TEST(Evaluate, TakesATasksPredictionsFromItsOwnFunction) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.task.step = [](Model& model, const Batch& batch) {
    const auto output = model.forward(batch.input());
    return StepResult{torch::nn::functional::cross_entropy(output, batch.target()), output};
  };
  options.task.predict = [](Model& model, const Batch& batch) {
    return model.forward(batch.input()) * 2;
  };
  Learner learner(make_net(), split_points(), options);
  const auto both = learner.evaluate(Split::valid, {.activation = false});
  EXPECT_EQ(both.figures.loss, learner.validate().loss);
  const auto expected = learner.get_preds(Split::valid, {.activation = false});
  EXPECT_TRUE(torch::equal(both.predictions.outputs, expected.outputs));
}

TEST(Evaluate, RefusesLossesThatThereAreNot) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.loss = LossFunction([](const at::Tensor& out, const at::Tensor& y) {
    return torch::nn::functional::cross_entropy(out, y);
  });
  Learner learner(make_net(), split_points(), options);
  EXPECT_THROW((void)learner.evaluate(Split::valid, {.losses = true}), StateError);
  EXPECT_NO_THROW((void)learner.evaluate());
}

TEST(GetPreds, HasNoSideEffect) {
  const TempDir folder;
  Net net = make_net();
  Learner learner(net, split_points(), quiet(folder));
  net->train(true);
  net->norm->train(false);  // a submodule with a mode of its own
  const auto rng = at::detail::getDefaultCPUGenerator().get_state();
  const auto weights = flat(learner.model());
  const int64_t bytes = tracked();
  { const auto result = learner.get_preds(); }
  learner.validate();
  EXPECT_TRUE(net->is_training());
  EXPECT_FALSE(net->norm->is_training());
  EXPECT_TRUE(net->second->is_training());
  EXPECT_TRUE(torch::equal(rng, at::detail::getDefaultCPUGenerator().get_state()));
  EXPECT_TRUE(torch::equal(weights, flat(learner.model())));
  EXPECT_EQ(tracked(), bytes) << "no optimizer, no outputs are left";
}

// Batches of 7, 7, ... and 2 samples, whole and in parts of 3, are one split.
TEST(Validate, MetricsAreThoseOfTheWholeSplit) {
  for (const auto& name : metric_names()) {
    if (name == "top_5_accuracy") continue;  // the model has three classes
    const auto of_values = {"mae", "mse", "r2", "rmse"};
    if (std::ranges::find(of_values, name) != of_values.end()) continue;
    const TempDir folder;
    LearnerOptions options = quiet(folder);
    options.workers = 0;
    options.metrics = {name == "top_k" ? Metric(name, TopKOptions{.k = 2}) : Metric(name)};
    std::vector<double> values;
    for (const auto& [batch, part] : {std::pair(37, 37), std::pair(7, 7), std::pair(7, 3)}) {
      options.batch = batch;
      options.micro_batch = part;
      Learner learner(make_net(), {.valid = points(37, 3)}, options);
      const Evaluation figures = learner.validate();
      values.push_back(figures.metrics.at(0).value);
      for (const auto& entry : learner.ledger().entries())
        EXPECT_NE(entry.name, name) << "the state is freed";
    }
    EXPECT_NEAR(values[1], values[0], 1e-6) << name;
    EXPECT_NEAR(values[2], values[0], 1e-6) << name;
  }
}

/// The highest output, of which lower is better; a maximum is no sum.
class Highest final : public StatefulMetric {
 public:
  void update(const at::Tensor& output, const at::Tensor&) override { take(output.max()); }
  void merge(const StatefulMetric& other) override {
    take(static_cast<const Highest&>(other).highest_);
  }
  [[nodiscard]] double value() const override { return number(highest_); }
  [[nodiscard]] std::vector<at::Tensor*> state() override { return {&highest_}; }
  [[nodiscard]] bool lower_is_better() const override { return true; }

 private:
  void take(const at::Tensor& more) {
    highest_ = highest_.defined() ? at::maximum(highest_, more) : more;
  }
  at::Tensor highest_;
};

TEST(Validate, AMetricWithAStateIsMergedAsItSays) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.batch = 7;
  options.micro_batch = 3;
  options.metrics = {Metric("highest", Highest())};
  Learner learner(make_net(), split_points(), options);
  const double highest =
      learner.get_preds(Split::valid, {.activation = false}).outputs.max().item<double>();
  EXPECT_NEAR(learner.validate().metrics.at(0).value, highest, 1e-6);
  EXPECT_EQ(learner.validate().metrics.at(0).lower_is_better, true);
  learner.fit(1);
  EXPECT_EQ(learner.history().back().metrics.at(0).name, "highest");
}

TEST(Validate, SaysWhatIsMissing) {
  const TempDir folder;
  Learner learner(make_net(), {.train = points(20, 1)}, quiet(folder));
  EXPECT_THROW(learner.validate(), StateError);
  EXPECT_THROW(learner.get_preds(Split::test), StateError);
  const FitResult result = learner.fit(1);
  EXPECT_TRUE(std::isnan(result.epochs[0].valid_loss)) << "a fit without validation data is fine";
}

TEST(Validate, RefusesLabelsThatTheModelCannotGive) {
  const TempDir folder;
  const auto input = torch::randn({20, kFeatures});
  const DatasetPtr wrong = tensor_dataset(input, torch::full({20}, kClasses, torch::kLong));
  Learner learner(make_net(), {.train = wrong, .valid = wrong}, quiet(folder));
  EXPECT_THROW(learner.fit(1), ConfigError);
  EXPECT_THROW(learner.validate(), ConfigError);
}

TEST(Summary, CountsAndTouchesNothing) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  const auto before = flat(learner.model());
  learner.freeze({.norms = false});
  const std::string text = learner.summary();
  const int64_t total = 8 * 16 + 16 + 2 * 16 + 16 * 16 + 16 + 16 * 3 + 3;
  EXPECT_NE(text.find(std::to_string(total)), std::string::npos) << text;
  EXPECT_NE(text.find("51"), std::string::npos) << text;
  EXPECT_NE(text.find("[1,16]"), std::string::npos) << text << "the output of a layer";
  EXPECT_NE(text.find("layer groups: first, norm, second, head"), std::string::npos) << text;
  EXPECT_TRUE(torch::equal(before, flat(learner.model())));
}

/// Its forward skips one module.
struct PartlySeenImpl : torch::nn::Module {
  PartlySeenImpl() {
    head = register_module("head", torch::nn::Linear(kFeatures, kClasses));
    unused = register_module("unused", torch::nn::Linear(7, 5));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(x); }
  torch::nn::Linear head{nullptr}, unused{nullptr};
};
TORCH_MODULE(PartlySeen);

TEST(Summary, MarksModulesThatTheForwardDoesNotReach) {
  const TempDir folder;
  const std::string missing = "?: no operator of the forward took a parameter of this module";
  const std::string partly = Learner(PartlySeen(), split_points(), quiet(folder)).summary();
  EXPECT_THAT(partly, ::testing::ContainsRegex("unused +weight.5,7. bias.5. +\\? "));
  EXPECT_THAT(partly, ::testing::ContainsRegex("head +[^ ]+ [^ ]+ +.1,3. "));
  EXPECT_THAT(partly, ::testing::HasSubstr("\n" + missing));
  const std::string whole = Learner(make_net(), split_points(), quiet(folder)).summary();
  EXPECT_THAT(whole, ::testing::Not(::testing::HasSubstr("?")));
}

/// Two inputs, each with a layer of its own.
struct TwoInputsImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& table) {
    return head(x) + side(table);
  }
  torch::nn::Linear head = register_module("head", torch::nn::Linear(kFeatures, kClasses));
  torch::nn::Linear side = register_module("side", torch::nn::Linear(2, kClasses));
};
TORCH_MODULE(TwoInputs);

TEST(Summary, ShowsEveryInputAndWhatATaskComputes) {
  const TempDir folder;
  Batch pairs;
  pairs.inputs = {{"row", torch::randn({20, kFeatures})}, {"table", torch::randn({20, 2})}};
  pairs.targets = {{"class", torch::zeros({20}, torch::kLong)}};
  const DatasetPtr data = tensor_dataset(pairs.inputs, pairs.targets);
  const std::string plain = Learner(TwoInputs(), {.train = data}, quiet(folder)).summary();
  EXPECT_THAT(plain, ::testing::HasSubstr("sample row [8], table [2], batch "));
  EXPECT_THAT(plain, ::testing::ContainsRegex("side +[^ ]+ [^ ]+ +.1,3. "));
  LearnerOptions options = quiet(folder);
  TwoInputs net;
  options.task.step = [net](Model&, const Batch& batch) mutable {
    const auto out = net->head(batch.inputs[0].tensor);
    return StepResult{torch::nn::functional::cross_entropy(out, batch.target()), {out}};
  };
  const std::string task = Learner(net, {.train = data}, options).summary();
  EXPECT_THAT(task, ::testing::ContainsRegex("head +[^ ]+ [^ ]+ +.1,3. "));
  EXPECT_THAT(task, ::testing::ContainsRegex("side +[^ ]+ [^ ]+ +\\? "));
}

}  // namespace
}  // namespace tare::testing

// Bad input to the C++ interface, one row a mistake: the type of its exception, what the message
// says, and that the Learner and its folder are as before.
#include "learner/mistakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/callback/monitor.h"
#include "tare/config/field.h"
#include "tare/inference/predictor.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

CallbackPtr fail_on_nan() {
  return std::make_shared<StopOnNan>(StopOnNanOptions{.fail = true, .where = "phase head"});
}

DatasetPtr with_nan(int64_t count) {
  auto input = torch::randn({count, kFeatures});
  input[0][0] = std::nan("");
  return tensor_dataset(input, torch::arange(count) % kClasses);
}

std::vector<Mistake> mistakes_that_diverge() {
  return {
      {"NanInTheData",
       "DivergedError",
       {"[phase head] the loss is nan in epoch 1, step 1; lower the learning rate"},
       [](Bench& b) {
         b.options.batch = 32;
         b.fit(with_nan(32), {fail_on_nan()});
       }},
      {"NanInBfloat16OnTheHost",
       "DivergedError",
       {"the loss is nan in epoch 1, step 1; use precision fp32, because convolutions of small"},
       [](Bench& b) {
         b.options.batch = 32;
         b.options.precision = "bf16";
         b.fit(with_nan(32));
       }},
      {"NanInTheValidationData",
       "DivergedError",
       {"[phase head] the valid_loss is nan in epoch 1"},
       [](Bench& b) {
         Learner learner(make_net(), {.train = points(48, 1), .valid = with_nan(32)}, b.options);
         learner.fit(1, {.callbacks = {fail_on_nan()}});
       }},
      {"RateThatDiverges",
       "DivergedError",
       {"[phase head] the loss is ", "in epoch 1, step 2;"},
       [](Bench& b) {
         Learner learner(make_net(), {.train = points(48, 1)}, b.options);
         learner.fit(1, {.lr = 1e30, .callbacks = {fail_on_nan()}});
       }},
      {"RateThatIsNoNumber",
       "ConfigError",
       {"a learning rate must be finite and > 0, got .nan"},
       [](Bench& b) {
         Learner(make_net(), {.train = points(48, 1)}, b.options).fit(1, {.lr = std::nan("")});
       }},
      {"RateThatIsInfinite",
       "ConfigError",
       {"a learning rate must be finite and > 0, got .inf"},
       [](Bench& b) {
         Learner(make_net(), {.train = points(48, 1)}, b.options)
             .fit(1, {.lr = std::numeric_limits<double>::infinity()});
       }},
  };
}

/// Notes the state that it is given, under a name that others may have too.
class CountedCallback final : public Callback {
 public:
  explicit CountedCallback(std::string state) : state_(std::move(state)) {}
  [[nodiscard]] std::string name() const override { return "counted"; }
  [[nodiscard]] std::string state() const override { return state_; }
  void load_state(const std::string& text) override { state_ = text; }

 private:
  std::string state_;
};

CallbackPtr counted(const char* state) { return std::make_shared<CountedCallback>(state); }

at::Tensor loss_of_each(const at::Tensor& out, const at::Tensor& target) {
  return torch::nll_loss(torch::log_softmax(out, 1), target, {}, at::Reduction::None);
}

std::vector<Mistake> mistakes_of_two_at_once() {
  return {
      {"TwoCallbacksOfOneName",
       "ConfigError",
       {"[learner.fit] two callbacks that have a state are named 'counted'", "name() of its own"},
       [](Bench& b) {
         b.options.callbacks = {counted("1")};
         b.fit(points(48, 1), {counted("2")});
       }},
      {"TwoCallbacksOfOneNameOfALearner",
       "ConfigError",
       {"[learner] two callbacks that have a state are named 'counted'"},
       [](Bench& b) {
         b.options.callbacks = {counted("1"), counted("2")};
         b.fit(points(48, 1));
       }},
      {"OneMetricTwice",
       "ConfigError",
       {"[learner] two metrics are named 'accuracy'", "omit one"},
       [](Bench& b) {
         b.options.metrics = {"accuracy", "accuracy"};
         b.fit(points(48, 1));
       }},
      {"OptimizerBesideAFactory",
       "ConfigError",
       {"[learner] optimizer is without effect beside optimizer_factory; give its options to"},
       [](Bench& b) {
         b.options.optimizer.lr = 0.1;
         b.options.optimizer_factory = [](std::vector<ParameterGroup> groups) {
           return make_optimizer({}, std::move(groups));
         };
         b.fit(points(48, 1));
       }},
  };
}

std::vector<Mistake> mistakes_in_functions() {
  return {
      {"LossThatIsNoScalar",
       "ShapeError",
       {"[learner.loss] expected a scalar from the loss function", "got float32 [16]"},
       [](Bench& b) {
         b.options.loss = LossFunction(loss_of_each);
         b.fit(points(48, 1));
       }},
      {"LossThatIsNoScalarInValidation",
       "ShapeError",
       {"[learner.loss] expected a scalar from the loss function", "got float32 [16]"},
       [](Bench& b) {
         b.options.loss = LossFunction(loss_of_each);
         (void)Learner(make_net(), {.valid = points(48, 1)}, b.options).validate();
       }},
      {"TaskWhoseLossIsNoScalar",
       "ShapeError",
       {"[learner.loss] expected a scalar from the task's step", "got float32 [16]"},
       [](Bench& b) {
         b.options.task.step = [](Model& model, const Batch& batch) -> StepResult {
           const auto output = model.forward(batch);
           return {loss_of_each(output.front(), batch.target()), output};
         };
         b.fit(points(48, 1));
       }},
      {"MetricOfMoreClassesThanTheModel",
       "ShapeError",
       {"[metric.top_5_accuracy] expected output", "at least 5 classes"},
       [](Bench& b) {
         b.options.metrics = {"accuracy", "top_5_accuracy"};
         b.options.callbacks = {at(Event::before_batch, 1, [](FitContext&) {
           throw StateError("test", "a step was taken", "check the metrics before");
         })};
         Learner(make_net(), split_points(), b.options).fit(1);
       }},
      {"MetricOfMoreThanTheModelsClasses",
       "ConfigError",
       {"[metric] top_k.k is more than the model has classes, got 4"},
       [](Bench& b) {
         b.options.metrics = {Metric("top_k", TopKOptions{.k = 4})};
         b.options.callbacks = {at(Event::before_batch, 1, [](FitContext&) {
           throw StateError("test", "a step was taken", "check the metrics before");
         })};
         Learner(make_net(), split_points(), b.options).fit(1);
       }},
      {"MetricOfValuesOnLabels",
       "ShapeError",
       {"[metric.mae] expected floating-point target"},
       [](Bench& b) {
         b.options.metrics = {"mae"};
         b.options.callbacks = {at(Event::before_batch, 1, [](FitContext&) {
           throw StateError("test", "a step was taken", "check the metrics before");
         })};
         Learner(make_net(), split_points(), b.options).fit(1);
       }},
  };
}

std::vector<Mistake> mistakes_in_first_micro_batches() {
  return {
      {"FirstMicroBatchAboveTheBatch",
       "ConfigError",
       {"[learner.fit] first_micro_batch must not be larger than the batch", "got 17", "1 to 16"},
       [](Bench& b) {
         Learner(make_net(), {.train = points(48, 1)}, b.options).fit(1, {.first_micro_batch = 17});
       }},
      {"FirstValidationMicroBatchAboveTheBatch",
       "ConfigError",
       {"[learner.fit] first_validation_micro_batch must not be larger", "got -1"},
       [](Bench& b) {
         Learner(make_net(), {.train = points(48, 1)}, b.options)
             .fit(1, {.first_validation_micro_batch = -1});
       }},
      {"FirstMicroBatchOfPredictions",
       "ConfigError",
       {"[learner.get_preds] first_micro_batch must not be larger", "got 900"},
       [](Bench& b) {
         Learner learner(make_net(), {.valid = points(48, 1)}, b.options);
         (void)learner.get_preds(Split::valid, {.first_micro_batch = 900});
       }},
      {"FirstMicroBatchOfAValidation",
       "ConfigError",
       {"[learner.validate] first_micro_batch must not be larger", "got 17"},
       [](Bench& b) {
         Learner learner(make_net(), {.valid = points(48, 1)}, b.options);
         (void)learner.validate(Split::valid, 17);
       }},
  };
}

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& part :
       {mistakes_about_devices(), mistakes_about_data(), mistakes_that_diverge(),
        mistakes_in_options(), mistakes_of_two_at_once(), mistakes_in_functions(),
        mistakes_in_first_micro_batches(), mistakes_about_models(), mistakes_with_files()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

class LearnerMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(LearnerMistakes, IsATypedExceptionThatLeavesNothing) {
  const Mistake& mistake = GetParam();
  const int64_t before = tracked();
  {
    Bench bench;
    const std::string outcome = outcome_of([&] { mistake.make(bench); });
    EXPECT_THAT(outcome, ::testing::StartsWith(mistake.type + ": ["));
    EXPECT_THAT(outcome, ::testing::Not(HasSubstr("\n")));
    for (const auto& piece : mistake.pieces) EXPECT_THAT(outcome, HasSubstr(piece));
    EXPECT_TRUE(fs::is_empty(bench.folder.path())) << "something was written";
  }
  EXPECT_EQ(tracked(), before) << "a tensor outlived the exception";
}

INSTANTIATE_TEST_SUITE_P(All, LearnerMistakes, ::testing::ValuesIn(mistakes()),
                         [](const auto& row) { return row.param.name; });

/// Returns the error of a Learner's options, or of a fit with them.
std::optional<ConfigError> error_of(const std::function<void(LearnerOptions&)>& change,
                                    int64_t epochs = 1, int64_t samples = 48) {
  Bench bench;
  bench.options.metrics = {};
  change(bench.options);
  try {
    Learner(make_net(), {.train = points(samples, 1)}, bench.options).fit(epochs);
  } catch (const ConfigError& error) {
    return error;
  }
  return std::nullopt;
}

TEST(LearnerMistake, InOneOptionNamesTheOptionAndWhatIsAllowed) {
  struct Row {
    std::string field, allowed, got;
    std::function<void(LearnerOptions&)> change{};
    int64_t epochs = 1, samples = 48;
  };
  const auto none = [](LearnerOptions&) {};
  for (const Row& row : std::vector<Row>{
           {"batch", "", "0", [](auto& o) { o.batch = 0; }},
           {"batch", "1 to 15", "16", none, 1, 15},
           {"epochs", "", "0", none, 0},
           {"epochs", "", "1000000001", none, kMostEpochs + 1},
           {"micro_batch", "1 to 16", "17", [](auto& o) { o.micro_batch = 17; }},
           {"precision", "fp32, bf16, fp16, bf16-true", "fp8",
            [](auto& o) { o.precision = "fp8"; }},
           {"frozen_weights", "as_is, fp8", "fp4", [](auto& o) { o.frozen_weights = "fp4"; }},
           {"loss", listed(loss_names()), "mze", [](auto& o) { o.loss = "mze"; }},
           {"metrics", listed(metric_names()), "mze", [](auto& o) { o.metrics = {"mze"}; }},
           {"metrics", "each name once", "mae",
            [](auto& o) {
              o.metrics = {"mae", "mae"};
            }},
           {"callbacks", "one of a name", "counted",
            [](auto& o) {
              o.callbacks = {counted("1"), counted("2")};
            }},
           {"clip", "none", "norm 2",
            [](auto& o) {
              o.step_in_backward = true;
              o.clip.norm = 2;
            }},
           {"offload", "a model with blocks", "", [](auto& o) { o.offload = {"all"}; }}}) {
    const auto error = error_of(row.change, row.epochs, row.samples);
    ASSERT_TRUE(error) << row.field;
    EXPECT_EQ(error->field(), row.field) << error->what();
    EXPECT_EQ(error->allowed(), row.allowed) << error->what();
    EXPECT_EQ(error->got(), row.got) << error->what();
  }
}

TEST(LearnerMistake, CallbacksWithoutAStateMayShareAName) {
  const Bench bench;
  Learner learner(make_net(), {.train = points(48, 1)}, bench.options);
  const auto other = std::make_shared<CountedCallback>("");
  EXPECT_EQ(learner.fit(1, {.callbacks = {counted(""), other, counted("1")}}).steps, 3);
  // A state that comes during the fit is refused when it would be saved.
  const auto late = at(Event::before_batch, 1, [&](FitContext& c) {
    other->load_state("2");
    c.learner.save("both");
  });
  EXPECT_THAT(outcome_of([&] {
                (void)learner.fit(1, {.callbacks = {other, late, counted("1")}});
              }),
              HasSubstr("[learner.save] two callbacks that have a state are named 'counted'"));
}

TEST(LearnerMistake, MetricsOfOtherTargetsThanTheTrainingsAreNotCheckedBefore) {
  const Bench bench;
  LearnerOptions options = bench.options;
  options.loss = LossFunction([](const at::Tensor& out, const at::Tensor& target) {
    return torch::cross_entropy_loss(out, target);  // of labels or of probabilities
  });
  options.metrics = {"accuracy"};
  const auto soft = torch::softmax(torch::randn({48, kClasses}), 1);
  Learner learner(
      make_net(),
      {.train = tensor_dataset(torch::randn({48, kFeatures}), soft), .valid = points(30, 12)},
      options);
  EXPECT_EQ(learner.fit(1).epochs.front().metrics.front().name, "accuracy");
}

TEST(LearnerMistake, InALaterBatchKeepsWhatWasLearnedBefore) {
  const Bench bench;
  Learner learner(make_net(), {.train = points(48, 1)}, bench.options);
  torch::Tensor after_two_steps;
  const auto spoil = at(Event::before_batch, 2, [&](FitContext& c) {
    after_two_steps = flat(learner.model());
    c.data.set_target(torch::full_like(c.data.target(), kClasses));
  });
  EXPECT_THROW(learner.fit(1, {.callbacks = {spoil}}), ConfigError);
  EXPECT_TRUE(torch::equal(flat(learner.model()), after_two_steps));
  EXPECT_EQ(learner.resume().steps, 1);
}

TEST(LearnerMistake, LabelsThatTheLossLeavesOutAreNone) {
  const Bench bench;
  Learner learner(make_net(), {.train = points(48, 1)}, bench.options);
  const auto mask = at(Event::before_batch, 1, [](FitContext& c) { c.data.target()[0] = -100; });
  EXPECT_EQ(learner.fit(1, {.callbacks = {mask}}).reason, StopReason::finished);
}

TEST(LearnerMistake, ImagesOfAnotherShapeThanTheBundles) {
  const Bench bench;
  Learner learner(models::make("mlp", {.classes = 3, .sample_shape = {1, 4, 4}, .hidden = {8}}),
                  {.train = tensor_dataset(torch::zeros({4, 1, 4, 4}))}, bench.options);
  learner.export_to(bench.folder / "m.tare");
  Predictor predictor(bench.folder / "m.tare");
  for (const auto& [shape, got] :
       {std::pair<std::vector<int64_t>, std::string>{{2, 3, 4, 4}, "[2, 3, 4, 4]"},
        {{2, 1, 5, 4}, "[2, 1, 5, 4]"}}) {
    const std::string outcome =
        outcome_of([&, size = shape] { (void)predictor.predict(torch::zeros(size)); });
    EXPECT_THAT(outcome, ::testing::StartsWith("ShapeError: [predictor.predict]"));
    EXPECT_THAT(outcome, HasSubstr("[batch, 1, 4, 4]"));
    EXPECT_THAT(outcome, HasSubstr(got));
  }
}

}  // namespace
}  // namespace tare::testing

// Tests that an error of LibTorch becomes one typed line with stage, layer, operands and advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/state.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/callback/monitor.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// As outcome_of(), which knows no errors of the Learner's own.
std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ComputeError& error) {
    return std::string("ComputeError: ") + error.what();
  }
  return "accepted";
}

// A net with a fault: a forward of the test's making.
struct FaultyImpl : torch::nn::Module {
  explicit FaultyImpl(std::function<torch::Tensor(FaultyImpl&, torch::Tensor)> f)
      : body(register_module("body", torch::nn::Sequential(torch::nn::Linear(kFeatures, 16),
                                                           torch::nn::Linear(16, 16)))),
        conv(register_module("conv", torch::nn::Conv2d(3, 4, 1))),
        words(register_module("words", torch::nn::Embedding(10, kClasses))),
        norm(register_module("norm", torch::nn::BatchNorm1d(16))),
        lstm(register_module("lstm", torch::nn::LSTM(kFeatures, kClasses))),
        head(register_module("head", torch::nn::Linear(16, kClasses))),
        fault(std::move(f)) {}
  torch::Tensor forward(const torch::Tensor& x) { return fault(*this, x); }
  torch::nn::Sequential body;
  torch::nn::Conv2d conv;
  torch::nn::Embedding words;
  torch::nn::BatchNorm1d norm;
  torch::nn::LSTM lstm;
  torch::nn::Linear head;
  std::function<torch::Tensor(FaultyImpl&, torch::Tensor)> fault;
};
TORCH_MODULE(Faulty);

using Fault = std::function<torch::Tensor(FaultyImpl&, torch::Tensor)>;

struct FaultyModel {
  const char* name;
  Fault fault;
  std::vector<std::string> pieces;
};
void PrintTo(const FaultyModel& c, std::ostream* out) { *out << c.name; }

class Refused : public ::testing::TestWithParam<FaultyModel> {};

TEST_P(Refused, IsOneLineThatNamesStageLayerOperandsAndAdvice) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.drop_last = true;
  Learner learner(Faulty(GetParam().fault), split_points(), options);
  learner.optimizer().prepare();  // as the fit does
  const State before = capture(learner);
  const std::string outcome = failure_of([&] { (void)learner.fit(1); });
  EXPECT_THAT(outcome, StartsWith("ComputeError: [learner.fit] "));
  EXPECT_THAT(outcome, Not(HasSubstr("\n")));
  EXPECT_THAT(outcome, Not(HasSubstr("frame #")));
  for (const auto& piece : GetParam().pieces) EXPECT_THAT(outcome, HasSubstr(piece));
  EXPECT_TRUE(capture(learner) == before) << "the search for the layer changes nothing";
}

INSTANTIATE_TEST_SUITE_P(
    InAFit, Refused,
    ::testing::Values(
        FaultyModel{
            "Features",
            [](FaultyImpl& n, torch::Tensor x) { return n.head(n.body->forward(x.slice(1, 1))); },
            {"forward of 'body.0' (Linear) failed for bias float32 [16], input float32 [16, 7], "
             "operand float32 [8, 16]: ",
             "mat1 and mat2 shapes cannot be multiplied", "number of input features"}},
        FaultyModel{
            "Dtype",
            [](FaultyImpl& n, torch::Tensor x) {
              return n.head(n.body->forward(x.to(torch::kByte)));
            },
            {"forward of 'body.0' (Linear) failed for bias float32 [16], input uint8 [16, 8]",
             ".to(torch::kFloat)"}},
        FaultyModel{
            "Pictures",
            [](FaultyImpl& n, torch::Tensor x) {
              return n.conv(x.slice(1, 0, 3).to(torch::kByte).view({16, 3, 1, 1}));
            },
            {"'conv' (Conv2d) failed for input uint8 [16, 3, 1, 1]", "transformed(data, {})"}},
        FaultyModel{
            "Channels",
            [](FaultyImpl& n, torch::Tensor x) {
              return n.conv(x.view({16, 2, 2, 2}));
            },
            {"'conv' (Conv2d) failed for input float32 [16, 2, 2, 2], weight float32 [4, 3, 1, 1]",
             "number of input channels"}},
        FaultyModel{"Tokens",
                    [](FaultyImpl& n, torch::Tensor x) {
                      return n.words(torch::full({x.size(0)}, 10, torch::kLong)) + 0 * x.sum();
                    },
                    {"'words' (Embedding)", "a token is not below"}},
        FaultyModel{"FloatTokens",
                    [](FaultyImpl& n, torch::Tensor x) { return n.words(x); },
                    {"'words' (Embedding)", ".to(torch::kLong)"}},
        FaultyModel{"Recurrent",
                    [](FaultyImpl& n, torch::Tensor x) {
                      return std::get<0>(n.lstm->forward(x.slice(1, 1).unsqueeze(0))).squeeze(0);
                    },
                    {"input.size(-1) must be equal to input_size", "make the layer's input size"}},
        FaultyModel{
            "View",
            [](FaultyImpl& n, torch::Tensor x) {
              return n.body->forward(x).view({16, 5, 3});
            },
            {"forward in view, after 'body.1' failed for input float32 [16, 16]: shape '[16, 5, "
             "3]' is invalid for input of size 256",
             "x.flatten(1)"}},
        FaultyModel{
            "BatchNormOfOneSample",
            [](FaultyImpl& n, torch::Tensor x) {
              return n.head(n.norm(n.body->forward(x).mean(0, true))).expand({16, kClasses});
            },
            {"forward of 'norm' (BatchNorm1d)", "more than 1 value per channel", "drop_last"}},
        FaultyModel{
            "NothingToTrain",
            [](FaultyImpl& n, torch::Tensor x) { return n.head(n.body->forward(x)).detach(); },
            {"backward failed: element 0 of tensors does not require grad", "register_module()"}},
        FaultyModel{"InPlace",
                    [](FaultyImpl& n, torch::Tensor x) {
                      auto y = torch::sigmoid(n.body->forward(x));
                      auto z = n.head(y * y);
                      y.add_(1);
                      return z;
                    },
                    {"backward failed: one of the variables needed for gradient computation",
                     "replace the in-place operation"}}),
    [](const auto& refused) { return refused.param.name; });

TEST(ComputeError, NestsWhatLibTorchThrewAndKeepsItsParts) {
  const TempDir folder;
  Learner learner(Faulty(Fault([](FaultyImpl& n, torch::Tensor x) { return n.head(x); })),
                  split_points(), quiet(folder));
  try {
    (void)learner.validate();
    FAIL();
  } catch (const ComputeError& error) {
    EXPECT_THAT(error.what(), StartsWith("[learner.validate] forward of 'head' (Linear)"));
    EXPECT_EQ(error.stage(), ComputeError::Stage::forward);
    EXPECT_EQ(error.operation().name, "addmm");
    EXPECT_EQ(error.operation().module, "head");
    EXPECT_THROW(std::rethrow_if_nested(error), c10::Error);
  }
  EXPECT_THAT(failure_of([&] { (void)learner.get_preds(); }), HasSubstr("[learner.get_preds]"));
}

TEST(ComputeError, OfALossIsNamed) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.metrics.clear();
  options.loss = LossFunction(
      [](const at::Tensor& output, const at::Tensor& target) { return (output - target).mean(); });
  Learner learner(make_net(), split_points(), options);
  EXPECT_THAT(
      failure_of([&] { (void)learner.fit(1); }),
      AllOf(StartsWith("ComputeError: [learner.fit] loss failed for output float32 [16, 3], "
                       "target int64 [16]: The size of tensor a"),
            HasSubstr("make the operands' sizes equal")));
}

TEST(ComputeError, OfAMetricIsNamedAtTheFirstBatch) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.metrics = {{"own", [](const at::Tensor& output, const at::Tensor& target) {
                        return (output - target).mean();
                      }}};
  struct Batches final : Callback {
    [[nodiscard]] std::string name() const override { return "batches"; }
    Action after_batch(FitContext&) override { return ++seen, Action::proceed; }
    int seen = 0;
  };
  const auto batches = std::make_shared<Batches>();
  options.callbacks = {batches};
  Learner learner(make_net(), split_points(), options);
  const auto is_explained =
      AllOf(HasSubstr("metric 'own' failed for output float32 [16, 3], target int64 [16]: The size "
                      "of tensor a"),
            HasSubstr("make the operands' sizes equal"), Not(HasSubstr("frame #")));
  EXPECT_THAT(failure_of([&] { (void)learner.fit(1); }),
              AllOf(StartsWith("ComputeError: [learner.fit] "), is_explained));
  EXPECT_EQ(batches->seen, 0);
  EXPECT_THAT(failure_of([&] { (void)learner.validate(); }),
              AllOf(StartsWith("ComputeError: [learner.validate] "), is_explained));
}

TEST(ComputeError, OfAMetricThatIsNoScalarComesAtTheFirstBatch) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.metrics = {{"rows", [](const at::Tensor& output, const at::Tensor&) { return output; }}};
  Learner learner(make_net(), split_points(), options);
  EXPECT_THAT(outcome_of([&] { (void)learner.fit(1); }),
              HasSubstr("[metric.rows] expected a scalar from the metric function, got float32 ["));
  EXPECT_EQ(learner.history().size(), 0U);
}

TEST(ComputeError, IsMadeOfAnErrorOfOneDnn) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.precision = "fp16";
  Learner learner(Faulty(Fault([](FaultyImpl& n, torch::Tensor x) {
                    return std::get<0>(n.lstm(x.view({1, x.size(0), kFeatures}))).squeeze(0);
                  })),
                  split_points(), options);
  const std::string outcome = failure_of([&] { (void)learner.fit(1); });
  if (outcome == "accepted") GTEST_SKIP() << "this processor computes an LSTM in float16";
  EXPECT_THAT(outcome, AllOf(StartsWith("ComputeError: [learner.fit] forward "),
                             HasSubstr("could not create a primitive"),
                             HasSubstr("use the precision fp32")));
}

TEST(ComputeError, IsNoneForErrorsOfTheUsersCode) {
  const TempDir folder;
  Learner learner(Faulty(Fault([](FaultyImpl&, torch::Tensor) -> torch::Tensor {
                    throw std::out_of_range("of the user");
                  })),
                  split_points(), quiet(folder));
  EXPECT_THROW((void)learner.fit(1), std::out_of_range);
}

std::string log_of(const std::function<void()>& work) {
  ::testing::internal::CaptureStderr();
  work();
  return ::testing::internal::GetCapturedStderr();
}

TEST(ForgottenRegistration, OfALayerIsNamedOnce) {
  struct NetImpl : torch::nn::Module {
    NetImpl() : forgotten(kFeatures, 16) {
      head = register_module("head", torch::nn::Linear(16, kClasses));
    }
    torch::Tensor forward(const torch::Tensor& x) { return head(torch::relu(forgotten(x))); }
    torch::nn::Linear forgotten, head{nullptr};
  };
  const TempDir folder;
  Learner learner(Model(torch::nn::ModuleHolder<NetImpl>(std::make_shared<NetImpl>())),
                  split_points(), quiet(folder));
  EXPECT_THAT(log_of([&] { (void)learner.fit(2); }),
              AllOf(HasSubstr("no parameters of the model: "), HasSubstr("float32 [16, 8]"),
                    HasSubstr("register_module()")));
  EXPECT_THAT(log_of([&] { (void)learner.fit(1); }), Not(HasSubstr("register_module()")));
  Learner whole(make_net(), split_points(), quiet(folder));
  EXPECT_THAT(log_of([&] { (void)whole.fit(1); }), Not(HasSubstr("register_module()")));
}

TEST(ForgottenRegistration, OfEveryLayerIsAnError) {
  struct NetImpl : torch::nn::Module {
    torch::Tensor forward(const torch::Tensor& x) { return head(x); }
    torch::nn::Linear head = torch::nn::Linear(kFeatures, kClasses);
  };
  const TempDir folder;
  Learner learner(Model(torch::nn::ModuleHolder<NetImpl>(std::make_shared<NetImpl>())),
                  split_points(), quiet(folder));
  EXPECT_THAT(outcome_of([&] { (void)learner.fit(1); }),
              AllOf(HasSubstr("without a parameter of the model"), HasSubstr("register_module()")));
}

TEST(ForgottenRegistration, ParametersThatTheOptimizerLacksAreNamed) {
  const TempDir folder;
  Net net = make_net();
  Learner learner(net, split_points(), quiet(folder));
  learner.freeze();
  (void)learner.optimizer();
  net->second->weight.set_requires_grad(true);
  EXPECT_THAT(log_of([&] { (void)learner.fit(1); }),
              HasSubstr("the optimizer does not have these parameters, so they are not trained: "
                        "second.weight"));
}

TEST(StopOnNanByDefault, EndsAFitThatDivergesBeforeTheStep) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  auto input = torch::randn({32, kFeatures});
  input[20][0] = std::nan("");
  options.shuffle = false;
  const Splits data{.train = tensor_dataset(input, torch::arange(32) % kClasses)};
  Learner learner(make_net(), data, options);
  EXPECT_THAT(outcome_of([&] { (void)learner.fit(1); }),
              StartsWith("DivergedError: [learner.fit] the loss is nan in epoch 1, step 2;"));
  EXPECT_TRUE(torch::isfinite(flat(learner.model())).all().item<bool>());
  EXPECT_TRUE(learner.can_resume());

  options.stop_on_nan = false;
  Learner continuing(make_net(), data, options);
  EXPECT_EQ(continuing.fit(1).steps, 2);

  options.stop_on_nan = true;
  Learner asked(make_net(), data, options);
  const FitResult stopped = asked.fit(1, {.callbacks = {std::make_shared<StopOnNan>()}});
  EXPECT_EQ(stopped.steps, 1) << "a callback of one's own comes first, and does not fail";
}

TEST(StopOnNanByDefault, ReadsTheMeanOfTheValidation) {
  const TempDir folder;
  auto input = torch::randn({32, kFeatures});
  input[20][0] = std::nan("");
  Learner learner(
      make_net(),
      {.train = points(48, 1), .valid = tensor_dataset(input, torch::arange(32) % kClasses)},
      quiet(folder));
  EXPECT_THAT(outcome_of([&] { (void)learner.fit(1); }),
              StartsWith("DivergedError: [learner.fit] the valid_loss is nan in epoch 1, step 3;"));
}

}  // namespace
}  // namespace tare::testing

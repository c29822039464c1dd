// Mixed precision: what is computed in which type, overflows, checkpoints, bundles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/inference/predictor.h"
#include "tare/memory/native_types.h"
#include "tare/model/precision.h"
#include "tare/model/registry.h"
#include "tare/train/interrupt.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

LearnerOptions in(const std::string& precision, const TempDir& folder) {
  LearnerOptions options = quiet(folder);
  options.precision = precision;
  options.optimizer.lr = 1e-2;
  return options;
}

// Notes the types that a step computes with.
struct Types final : Callback {
  [[nodiscard]] std::string name() const override { return "types"; }
  Action after_loss(FitContext& c) override {
    input = c.data.input().scalar_type();
    output = c.output().scalar_type();
    loss = c.loss.scalar_type();
    return Action::proceed;
  }
  Action after_backward(FitContext& c) override {
    gradient = c.learner.model().parameters().front().tensor.grad().scalar_type();
    return Action::proceed;
  }
  torch::ScalarType input{}, output{}, loss{}, gradient{};
};

// Notes the type that its first layer gives.
struct SpyImpl : NetImpl {
  torch::Tensor forward(const torch::Tensor& x) {
    inner = first(x).scalar_type();
    return NetImpl::forward(x);
  }
  torch::ScalarType inner{};
};
TORCH_MODULE(Spy);

class PrecisionOf : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static bool is_true_half() { return std::string(GetParam()) == "bf16-true"; }
  TempDir folder_;
};

TEST_P(PrecisionOf, ComputesInIt) {
  torch::manual_seed(1);
  Spy net;
  Learner learner(net, split_points(), in(GetParam(), folder_));
  const auto types = std::make_shared<Types>();
  learner.fit(1, {.callbacks = {types}});
  const auto half = std::string(GetParam()) == "fp16" ? torch::kHalf : torch::kBFloat16;
  EXPECT_EQ(net->inner, half);
  EXPECT_EQ(types->output, torch::kFloat);
  EXPECT_EQ(types->loss, torch::kFloat);
  const auto weights = is_true_half() ? torch::kBFloat16 : torch::kFloat;
  EXPECT_EQ(types->input, weights);
  EXPECT_EQ(types->gradient, weights);
  EXPECT_EQ(net->first->weight.scalar_type(), weights);
  EXPECT_EQ(net->norm->weight.scalar_type(), torch::kFloat) << "batch norm";
  EXPECT_EQ(net->norm->running_var.scalar_type(), torch::kFloat);
  EXPECT_FALSE(AutocastState::of(c10::kCPU).enabled);
}

TEST_P(PrecisionOf, Learns) {
  Learner learner(make_net(), split_points(), in(GetParam(), folder_));
  learner.fit(10);
  const Evaluation found = learner.validate();
  EXPECT_GT(found.metrics.front().value, 0.8) << "of three classes";
  const Predictions predictions = learner.get_preds();
  EXPECT_EQ(predictions.outputs.scalar_type(), torch::kFloat);
  EXPECT_NEAR(predictions.outputs.sum(1).mean().item<double>(), 1, 1e-5);
}

TEST_P(PrecisionOf, HoldsNoCastWeightsAfterAFit) {
  Learner learner(make_net(), split_points(), in(GetParam(), folder_));
  learner.fit(1);
  learner.purge();
  const int64_t before = tracked();
  learner.fit(1);
  learner.purge();
  EXPECT_EQ(tracked(), before);
}

TEST_P(PrecisionOf, ResumesBitForBit) {
  const auto run = [&](bool stop) {
    auto learner = std::make_unique<Learner>(make_net(), split_points(), in(GetParam(), folder_));
    torch::manual_seed(3);
    struct Stop final : Callback {
      [[nodiscard]] std::string name() const override { return "stop"; }
      Action after_step(FitContext& c) override {
        if (c.step != 7) return Action::proceed;
        c.learner.save("middle");
        throw std::runtime_error("stop");
      }
    };
    if (!stop) {
      learner->fit(3);
    } else {
      EXPECT_THROW(learner->fit(3, {.callbacks = {std::make_shared<Stop>()}}), std::runtime_error);
      learner = std::make_unique<Learner>(make_net(9), split_points(), in(GetParam(), folder_));
      learner->load("middle");
      learner->resume();
    }
    return capture(*learner);
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_P(PrecisionOf, ExportsABundleThatPredictsInFloat32) {
  const auto path = folder_.path() / "model.tare";
  Learner learner(models::make("mlp", {.classes = kClasses, .sample_shape = {kFeatures}}),
                  split_points(), in(GetParam(), folder_));
  learner.fit(5);
  const torch::Tensor here = learner.get_preds(Split::test).outputs;
  learner.export_to(path);
  const auto loaded = load_learner(path, {.test = learner.data().test});
  const torch::Tensor there = loaded->get_preds(Split::test).outputs;
  EXPECT_EQ(loaded->model().parameters().front().tensor.scalar_type(), torch::kFloat);
  constexpr double kSixteenBits = 0.05;  // eight bits of mantissa in each product
  EXPECT_LT((here - there).abs().max().item<double>(), kSixteenBits);
  Predictor predictor(path);  // on the stored weights
  const torch::Tensor mapped = predictor.predict(get_all(*learner.data().test).input());
  EXPECT_EQ(mapped.scalar_type(), torch::kFloat);
  EXPECT_LT((here - mapped).abs().max().item<double>(), kSixteenBits);
}

INSTANTIATE_TEST_SUITE_P(Half, PrecisionOf, ::testing::Values("bf16", "fp16", "bf16-true"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Precision, CheckpointsLoadAcrossTypesWithTheirOptimizer) {
  TempDir folder;
  for (const char* from : {"fp32", "bf16-true"}) {
    for (const char* to : {"fp32", "bf16-true"}) {
      Learner writer(make_net(), split_points(), in(from, folder));
      writer.fit(1);
      writer.save("state");
      Learner reader(make_net(9), split_points(), in(to, folder));
      EXPECT_TRUE(reader.load("state").optimizer_loaded) << from << " to " << to;
      constexpr double kEightBits = 1.0 / 256;
      const auto error = (flat(writer.model()) - flat(reader.model())).abs();
      EXPECT_LE(error.max().item<double>(),
                kEightBits * flat(writer.model()).abs().max().item<double>());
      reader.fit(1);
    }
  }
}

// Its gradients overflow float16 until the scale has come down.
at::Tensor steep_loss(const at::Tensor& output, const at::Tensor& target) {
  return torch::cross_entropy_loss(output, target) * 64;
}

TEST(Precision, LeavesOutStepsWhoseGradientsOverflow) {
  TempDir folder;
  auto options = in("fp16", folder);
  options.loss = LossFunction(steep_loss);
  options.metrics = {};
  struct Watch final : Callback {
    [[nodiscard]] std::string name() const override { return "watch"; }
    Action before_batch(FitContext& c) override {
      before = flat(c.learner.model());
      stepped = false;
      return Action::proceed;
    }
    Action after_step(FitContext&) override {
      stepped = true;
      return Action::proceed;
    }
    Action after_batch(FitContext& c) override {
      steps += stepped ? 1 : 0;
      left_out += stepped ? 0 : 1;
      if (left_out == stop_at) {
        request_interrupt();
        stop_at = 0;
      }
      if (!stepped) unchanged = unchanged && torch::equal(before, flat(c.learner.model()));
      return Action::proceed;
    }
    torch::Tensor before;
    bool stepped = false, unchanged = true;
    int64_t steps = 0, left_out = 0, stop_at = 2;
  };
  const auto watch = std::make_shared<Watch>();
  Learner learner(models::make("mlp", {.classes = kClasses, .sample_shape = {kFeatures}}),
                  split_points(), std::move(options));
  const FitResult stopped = learner.fit(3, {.callbacks = {watch}});
  EXPECT_EQ(stopped.reason, StopReason::interrupted);
  EXPECT_EQ(stopped.overflows, 2);
  learner.save("stopped");
  learner.load("stopped");
  const FitResult fit = learner.resume({watch});
  EXPECT_GT(fit.overflows, 2);
  EXPECT_EQ(fit.overflows, watch->left_out) << "also those before the resume";
  EXPECT_EQ(stopped.steps + fit.steps, watch->steps);
  EXPECT_GT(fit.steps, fit.overflows) << "the scale did not come down";
  EXPECT_TRUE(watch->unchanged);
}

TEST(Precision, RefusesAnUnknownName) {
  TempDir folder;
  try {
    const Learner learner(make_net(), split_points(), in("fp8", folder));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("precision must be fp32, bf16, fp16 or bf16-true, got 'fp8'"));
  }
}

TEST(Precision, SaysWhereTheProcessorHasNoInstructionsForIt) {
  const bool bf16 = memory::processor_computes(c10::kBFloat16);
  EXPECT_EQ(slow_precision(Precision::fp32), "");
  EXPECT_EQ(slow_precision(Precision::bf16).empty(), bf16);
  EXPECT_EQ(slow_precision(Precision::bf16_true).empty(), bf16);
  EXPECT_EQ(slow_precision(Precision::fp16).empty(), memory::processor_computes(c10::kHalf));
  if (!bf16) {
    EXPECT_THAT(
        slow_precision(Precision::bf16_true),
        ::testing::ContainsRegex("precision: bf16-true is slow here: .* takes [0-9.]+ times"));
  }
}

TEST(Precision, IsWarnedOfAtMostOnceInAProcess) {
  TempDir folder;
  warn_of_slow_precision(Precision::bf16);
  ::testing::internal::CaptureStderr();
  const Learner learner(make_net(), split_points(), in("bf16", folder));
  warn_of_slow_precision(Precision::bf16);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Precision, IsWarnedOfInAPlanForACardWithoutInstructionsForIt) {
  TempDir folder;
  Learner learner(make_net(), split_points(), in("bf16-true", folder));
  const auto net = [] { return Model(make_net()); };
  ::testing::internal::CaptureStderr();
  (void)learner.plan({.device = "cuda:L4", .model = net});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  (void)learner.plan({.device = "cuda:T4", .model = net});
  (void)learner.plan({.device = "cuda:T4", .model = net});
  const std::string warned = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(warned, HasSubstr("precision: bf16-true is slow on cuda:T4"));
  EXPECT_EQ(warned.find("is slow on"), warned.rfind("is slow on"));
}

}  // namespace
}  // namespace tare::testing

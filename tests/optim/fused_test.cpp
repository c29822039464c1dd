// The fused optimizers against torch::optim, and what a step allocates.
#include <gmock/gmock.h>

#include "optim/support.h"
#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"

namespace tare {
namespace {

using testing::backward;
using testing::difference_to_torch;
using testing::kSteps;
using testing::kTolerance;
using testing::make_for;
using testing::make_net;
using testing::Net;
using testing::train;

OptimizerOptions fused_options(const std::string& kind, double lr, double weight_decay,
                               double momentum = 0.9, bool nesterov = false) {
  return {.kind = kind,
          .lr = lr,
          .weight_decay = weight_decay,
          .momentum = momentum,
          .nesterov = nesterov,
          .decay_norm_and_bias = true};
}

TEST(FusedOptimizer, SgdEqualsTorch) {
  using torch::optim::SGD;
  using torch::optim::SGDOptions;
  EXPECT_LT(difference_to_torch<SGD>(fused_options("sgd", 0.01, 0, 0), SGDOptions(0.01)),
            kTolerance);
  EXPECT_LT(difference_to_torch<SGD>(fused_options("sgd", 0.01, 1e-3),
                                     SGDOptions(0.01).momentum(0.9).weight_decay(1e-3)),
            kTolerance);
  EXPECT_LT(
      difference_to_torch<SGD>(fused_options("sgd", 0.01, 1e-3, 0.9, true),
                               SGDOptions(0.01).momentum(0.9).weight_decay(1e-3).nesterov(true)),
      kTolerance);
}

TEST(FusedOptimizer, AdamEqualsTorch) {
  const auto theirs = torch::optim::AdamOptions(1e-3).weight_decay(1e-2);
  EXPECT_LT(difference_to_torch<torch::optim::Adam>(fused_options("adam", 1e-3, 1e-2), theirs),
            kTolerance);
}

TEST(FusedOptimizer, AdamWEqualsTorch) {
  const auto theirs = torch::optim::AdamWOptions(1e-3).weight_decay(1e-2);
  EXPECT_LT(difference_to_torch<torch::optim::AdamW>(fused_options("adamw", 1e-3, 1e-2), theirs),
            kTolerance);
}

TEST(FusedOptimizer, FirstMomentumStepIsThePlainGradient) {
  Net net = make_net();
  const auto before = net->fc->weight.detach().clone();
  const auto optimizer = make_for(net, fused_options("sgd", 0.5, 0));
  backward(net, 0);
  optimizer->step();
  EXPECT_TRUE(torch::allclose(net->fc->weight, before - 0.5 * net->fc->weight.grad(), 0, 1e-7));
}

class Allocations : public ::testing::TestWithParam<OptimizerOptions> {};

TEST_P(Allocations, StepAllocatesNothingAfterPrepare) {
  ASSERT_TRUE(memory::host_allocator::installed());
  Net net = make_net();
  const auto optimizer = make_for(net, GetParam());
  backward(net, 0);
  optimizer->prepare();
  for (int step = 0; step < 3; ++step) {
    const uint64_t births = memory::host_allocator::counters().births;
    optimizer->step();
    EXPECT_EQ(memory::host_allocator::counters().births, births);
  }
}

TEST_P(Allocations, PrepareThatFailsChangesNothing) {
  Net net = make_net();
  const auto optimizer = make_for(net, GetParam());
  backward(net, 0);
  const auto before = net->fc->weight.detach().clone();
  int64_t failures = 0;
  for (uint64_t k = 1;; ++k) {
    memory::host_allocator::fail_at(k);
    try {
      optimizer->step();
      break;
    } catch (const c10::OutOfMemoryError&) {
      ++failures;
      EXPECT_TRUE(optimizer->state().empty());
      EXPECT_TRUE(torch::equal(net->fc->weight, before));
    }
  }
  memory::host_allocator::fail_at(0);
  EXPECT_EQ(failures, static_cast<int64_t>(optimizer->state().size()));
  EXPECT_FALSE(torch::equal(net->fc->weight, before));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Allocations,
    ::testing::Values(fused_options("sgd", 0.1, 1e-2, 0), fused_options("sgd", 0.1, 1e-2),
                      fused_options("adam", 1e-3, 1e-2), fused_options("adamw", 1e-3, 1e-2),
                      fused_options("nadam", 1e-3, 1e-2), fused_options("rmsprop", 1e-3, 1e-2),
                      OptimizerOptions{.kind = "adadelta"}, OptimizerOptions{.kind = "adagrad"},
                      OptimizerOptions{.kind = "lion"}, OptimizerOptions{.kind = "adamw8bit"},
                      testing::all_of_8_bits()));

TEST(FusedOptimizer, ParameterWithoutGradientIsLeftAlone) {
  Net net = make_net();
  const auto optimizer = make_for(net, fused_options("adamw", 1e-2, 0.5));
  train(net, *optimizer, 2);
  const auto weight = net->fc->weight.detach().clone(), bias = net->fc->bias.detach().clone();
  optimizer->zero_grad();
  backward(net, 2);
  net->fc->weight.mutable_grad().reset();
  optimizer->step();
  EXPECT_TRUE(torch::equal(net->fc->weight, weight));
  EXPECT_FALSE(torch::equal(net->fc->bias, bias));
  for (const auto& [name, tensor] : optimizer->state()) {
    if (name == "step/fc.weight") {
      EXPECT_EQ(tensor.item<float>(), 2);
    }
    if (name == "step/fc.bias") {
      EXPECT_EQ(tensor.item<float>(), 3);
    }
  }
}

TEST(FusedOptimizer, GradientLaidOutOtherwiseIsAppliedElementByElement) {
  Net a = make_net(), b = make_net();
  const auto optimizer = make_for(a, fused_options("sgd", 1, 0, 0));
  backward(a, 0);
  backward(b, 0);
  auto& gradient = a->fc->weight.mutable_grad();
  gradient = gradient.t().contiguous().t();
  ASSERT_NE(gradient.strides(), a->fc->weight.strides());
  optimizer->step();
  EXPECT_TRUE(torch::allclose(a->fc->weight, b->fc->weight - b->fc->weight.grad(), 0, 1e-7));
}

TEST(FusedOptimizer, StepsParametersOfSeveralTypes) {
  Net net = make_net();
  net->fc->weight.set_data(net->fc->weight.to(torch::kDouble));
  const auto optimizer = make_for(net, fused_options("adamw", 1e-2, 0));
  for (auto& p : net->parameters()) p.mutable_grad() = torch::ones_like(p);
  const auto weight = net->fc->weight.detach().clone(), bias = net->fc->bias.detach().clone();
  optimizer->step();
  EXPECT_NEAR((weight - net->fc->weight).mean().item<double>(), 1e-2, 1e-6);
  EXPECT_NEAR((bias - net->fc->bias).mean().item<double>(), 1e-2, 1e-6);
}

class SixteenBits : public ::testing::TestWithParam<OptimizerOptions> {};

/// Returns how far five steps move a weight of many elements, which begins at 1.
torch::Tensor moved(const OptimizerOptions& options, c10::ScalarType type) {
  torch::nn::Linear layer(torch::nn::LinearOptions(50, 8).bias(false));
  layer->to(type);
  const c10::NoGradGuard no_grad;
  torch::Tensor& weight = layer->weight;
  weight.fill_(1);
  const auto optimizer = make_optimizer(options, make_groups(Model(layer), options));
  for (int step = 0; step < 5; ++step) {
    weight.mutable_grad() = torch::linspace(0.5, 1.5, 400).view({8, 50}).to(type);
    optimizer->step();
  }
  return (1 - weight.to(torch::kFloat)).detach();
}

TEST_P(SixteenBits, StepAsFloat32ButForRounding) {
  const torch::Tensor expected = moved(GetParam(), torch::kFloat);
  EXPECT_GT(expected.min().item<float>(), 0.05F) << "each element moves";
  EXPECT_TRUE(torch::allclose(moved(GetParam(), torch::kBFloat16), expected, 0.1, 0.02));
  EXPECT_TRUE(torch::allclose(moved(GetParam(), torch::kHalf), expected, 0.02, 0.003));
}

INSTANTIATE_TEST_SUITE_P(
    Of, SixteenBits,
    ::testing::Values(OptimizerOptions{.kind = "sgd", .lr = 0.1, .momentum = 0},
                      OptimizerOptions{.kind = "sgd", .lr = 0.05},
                      OptimizerOptions{.kind = "sgd", .lr = 0.05, .nesterov = true},
                      OptimizerOptions{.kind = "adam", .lr = 0.05},
                      OptimizerOptions{.kind = "adamw", .lr = 0.05},
                      OptimizerOptions{.kind = "nadam", .lr = 0.05},
                      OptimizerOptions{.kind = "rmsprop", .lr = 0.05},
                      OptimizerOptions{.kind = "adagrad", .lr = 0.05},
                      OptimizerOptions{.kind = "lion", .lr = 0.05}, testing::all_of_8_bits(0.05),
                      OptimizerOptions{.kind = "adadelta", .lr = 1, .eps = 0.01}),
    [](const auto& options) { return options.param.kind + "_" + std::to_string(options.index); });

TEST(FusedOptimizer, MomentumMayComeAndGo) {
  Net net = make_net();
  const auto optimizer = make_for(net, fused_options("sgd", 0.01, 0, 0));
  train(net, *optimizer, 1);
  EXPECT_TRUE(optimizer->state().empty());
  for (auto& group : optimizer->groups()) group.momentum = 0.9;
  train(net, *optimizer, 1);
  EXPECT_EQ(optimizer->state().size(), 6u);
}

TEST(FusedOptimizer, StepKeepsNoGradientAlive) {
  Net net = make_net();
  const auto optimizer = make_for(net, fused_options("adamw", 1e-3, 0));
  train(net, *optimizer, 1);
  const int64_t with = memory::host_allocator::counters().live_blocks;
  optimizer->zero_grad();
  EXPECT_EQ(memory::host_allocator::counters().live_blocks, with - 6);
  EXPECT_FALSE(net->fc->weight.grad().defined());
}

TEST(FusedOptimizer, RefusesWrongOptions) {
  EXPECT_THROW((void)make_optimizer({.kind = "adamm"}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.lr = 0}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.weight_decay = -1}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.momentum = 1}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.kind = "adam", .nesterov = true}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.kind = "sgd", .beta2 = 0.9}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.kind = "sgd", .eps = 1e-8}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.kind = "adadelta", .momentum = 0.9}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.kind = "adagrad", .beta2 = 0.9}, {}), ConfigError);
  EXPECT_THROW((void)make_optimizer({.kind = "sgd", .momentum = 0, .nesterov = true}, {}),
               ConfigError);
}

TEST(FusedOptimizer, RefusesAParameterWithHoles) {
  const auto holes = torch::zeros({4, 4}).slice(1, 0, 2).requires_grad_(true);
  std::vector<ParameterGroup> groups(1);
  groups[0].parameters.push_back({.name = "w", .tensor = holes});
  EXPECT_THROW((void)make_optimizer({}, groups), ConfigError);
}

}  // namespace
}  // namespace tare

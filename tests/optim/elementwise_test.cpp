// NAdam, RMSprop, Adadelta and Adagrad: against torch::optim where it has them, else against the
// formulas of PyTorch's documentation, computed in double precision for one weight.

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <vector>

#include "optim/support.h"
#include "tare/base/error.h"

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

OptimizerOptions options(const std::string& kind, double lr, double weight_decay = 0,
                         std::optional<double> momentum = {}) {
  return {.kind = kind,
          .lr = lr,
          .weight_decay = weight_decay,
          .momentum = momentum,
          .decay_norm_and_bias = true};
}

TEST(ElementwiseOptimizer, RmsPropEqualsTorch) {
  using torch::optim::RMSprop;
  using torch::optim::RMSpropOptions;
  EXPECT_LT(difference_to_torch<RMSprop>(options("rmsprop", 1e-3), RMSpropOptions(1e-3)),
            kTolerance);
  EXPECT_LT(difference_to_torch<RMSprop>(options("rmsprop", 1e-3, 1e-2, 0.9),
                                         RMSpropOptions(1e-3).weight_decay(1e-2).momentum(0.9)),
            10 * kTolerance)
      << "momentum adds up ten steps";
}

TEST(ElementwiseOptimizer, AdagradEqualsTorch) {
  EXPECT_LT(
      difference_to_torch<torch::optim::Adagrad>(
          options("adagrad", 1e-2, 1e-2), torch::optim::AdagradOptions(1e-2).weight_decay(1e-2)),
      kTolerance);
}

/// The gradients of one weight, some of them large, small and zero.
std::vector<double> gradients() {
  std::vector<double> all;
  for (int i = 0; i < 60; ++i)
    all.push_back(i % 7 == 3 ? 0 : std::sin(i) * std::pow(10, i % 4 - 2));
  return all;
}

/// The weight after each step, which starts at 0.5.
std::vector<double> weights(const OptimizerOptions& options, at::ScalarType type,
                            bool with_tensors = false) {
  const auto weight = torch::full({1}, 0.5, type).requires_grad_(true);
  std::vector<ParameterGroup> groups(1);
  groups[0] = {.parameters = {{.name = "w", .tensor = weight}},
               .lr = options.lr,
               .momentum = momentum_of(options),
               .weight_decay = options.weight_decay};
  const auto optimizer = make_optimizer(options, groups, with_tensors);
  std::vector<double> all;
  for (const double gradient : gradients()) {
    weight.mutable_grad() = torch::full({1}, gradient, type);
    optimizer->step();
    all.push_back(weight.item<double>());
  }
  return all;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance) << "step " << i + 1;
}

// https://docs.pytorch.org/docs/stable/generated/torch.optim.NAdam.html
std::vector<double> nadam(double lr, double decay) {
  const double b1 = 0.9, b2 = 0.999, eps = 1e-8, psi = 0.004;
  double w = 0.5, m = 0, v = 0, product = 1;
  std::vector<double> all;
  for (const double gradient : gradients()) {
    const auto t = static_cast<double>(all.size() + 1);
    const double g = gradient + decay * w;
    const double mu = b1 * (1 - 0.5 * std::pow(0.96, t * psi));
    const double next = b1 * (1 - 0.5 * std::pow(0.96, (t + 1) * psi));
    product *= mu;
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    const double m_hat = next * m / (1 - product * next) + (1 - mu) * g / (1 - product);
    w -= lr * m_hat / (std::sqrt(v / (1 - std::pow(b2, t))) + eps);
    all.push_back(w);
  }
  return all;
}

// https://docs.pytorch.org/docs/stable/generated/torch.optim.Adadelta.html
std::vector<double> adadelta(double lr, double decay) {
  const double rho = 0.9, eps = 1e-6;
  double w = 0.5, v = 0, u = 0;
  std::vector<double> all;
  for (const double gradient : gradients()) {
    const double g = gradient + decay * w;
    v = rho * v + (1 - rho) * g * g;
    const double delta = std::sqrt(u + eps) / std::sqrt(v + eps) * g;
    u = rho * u + (1 - rho) * delta * delta;
    w -= lr * delta;
    all.push_back(w);
  }
  return all;
}

// Chen et al. 2023, algorithm 2.
std::vector<double> lion(double lr, double decay) {
  double w = 0.5, m = 0;
  std::vector<double> all;
  for (const double g : gradients()) {
    const double direction = 0.9 * m + (1 - 0.9) * g;
    w = w * (1 - lr * decay) - lr * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
    m = 0.99 * m + (1 - 0.99) * g;
    all.push_back(w);
  }
  return all;
}

TEST(ElementwiseOptimizer, LionIsItsFormula) {
  expect_near(weights(options("lion", 1e-3), at::kDouble), lion(1e-3, 0), 1e-12);
  expect_near(weights(options("lion", 1e-3, 0.1), at::kFloat), lion(1e-3, 0.1), 1e-5);
}

TEST(ElementwiseOptimizer, LionShowsAGradientThatIsNoNumber) {
  for (const bool with_tensors : {false, true}) {
    const auto weight = torch::full({1}, 0.5).requires_grad_(true);
    std::vector<ParameterGroup> groups(1);
    groups[0] = {.parameters = {{.name = "w", .tensor = weight}}, .lr = 0.1, .momentum = 0.9};
    const auto optimizer = make_optimizer(options("lion", 0.1), groups, with_tensors);
    weight.mutable_grad() = torch::full({1}, std::nan(""));
    optimizer->step();
    EXPECT_TRUE(weight.isnan().item<bool>()) << with_tensors;
  }
}

TEST(ElementwiseOptimizer, NadamIsItsFormula) {
  // The product of momenta is kept as float32, as PyTorch does.
  expect_near(weights(options("nadam", 1e-2), at::kDouble), nadam(1e-2, 0), 1e-7);
  expect_near(weights(options("nadam", 1e-2, 0.1), at::kFloat), nadam(1e-2, 0.1), 1e-5);
}

TEST(ElementwiseOptimizer, AdadeltaIsItsFormula) {
  expect_near(weights(options("adadelta", 1), at::kDouble), adadelta(1, 0), 1e-12);
  expect_near(weights(options("adadelta", 0.5, 0.1), at::kFloat), adadelta(0.5, 0.1), 1e-5);
}

// Compares the computation by tensors, which other devices use, with the loop over memory.
TEST(ElementwiseOptimizer, TensorsGiveWhatTheWalkOverMemoryGives) {
  for (const auto& some : {options("nadam", 1e-2, 0.1), options("rmsprop", 1e-2, 0.1),
                           options("rmsprop", 1e-2, 0, 0.9), options("adadelta", 1, 0.1),
                           options("adagrad", 1e-2, 0.1), options("lion", 1e-2, 0.1)}) {
    SCOPED_TRACE(some.kind);
    // NAdam's factors are float32 where they are on the device with its step.
    const double tolerance = some.kind == "nadam" ? 1e-5 : 1e-12;
    expect_near(weights(some, at::kDouble, true), weights(some, at::kDouble), tolerance);
  }
}

TEST(ElementwiseOptimizer, StepsHalfPrecisionAndOneParameterAlone) {
  for (const auto& kind : optimizer_kinds()) {
    if (kind.starts_with("adam") || kind == "sgd" || kind == "muon") continue;
    SCOPED_TRACE(kind);
    const std::map<std::string, double> rates{{"adadelta", 1}, {"lion", 1.0 / 128}};
    const auto some = options(kind, rates.contains(kind) ? rates.at(kind) : 1e-2);
    expect_near(weights(some, at::kBFloat16), weights(some, at::kDouble), 0.05);
    Net a = make_net(), b = make_net();
    const auto whole = make_for(a, some), single = make_for(b, some);
    EXPECT_EQ(whole->kind(), kind);
    EXPECT_TRUE(whole->steps_atomically());
    single->prepare();
    for (int64_t i = 0; i < 3; ++i) {
      whole->zero_grad();
      single->zero_grad();
      backward(a, i);
      backward(b, i);
      whole->step();
      for (const auto& group : single->groups())
        for (const auto& parameter : group.parameters) single->step_one(parameter.tensor);
    }
    EXPECT_EQ(testing::largest_difference(a, b), 0);
  }
}

}  // namespace
}  // namespace tare

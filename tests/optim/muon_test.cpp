// Muon: which parameters it steps as matrices, and how. Its numbers are compared with PyTorch's in
// tests/learner/optimizer_parity_test.cpp.
#include <gmock/gmock.h>

#include <cmath>

#include "optim/support.h"
#include "tare/base/error.h"
#include "tare/optim/optimizer.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

OptimizerOptions muon(const std::string& own = "{}") {
  OptimizerOptions options{.kind = "muon", .lr = 0.01, .weight_decay = 0};
  options.options.node = config::parse_text(own, "options");
  return options;
}

/// Returns the names of what has the state of a matrix.
std::vector<std::string> matrices(testing::Net& net, const OptimizerOptions& options) {
  const auto optimizer = testing::make_for(net, options);
  optimizer->prepare();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer->state())
    if (name.starts_with("momentum_buffer/")) names.push_back(name.substr(name.find('/') + 1));
  return names;
}

TEST(Muon, StepsMatricesAndLeavesTheRestToAdamW) {
  using ::testing::UnorderedElementsAre;
  testing::Net net = testing::make_net();
  EXPECT_THAT(matrices(net, muon()), UnorderedElementsAre("fc.weight"));
  EXPECT_THAT(matrices(net, muon("{convolutions: true}")),
              UnorderedElementsAre("fc.weight", "conv.weight"));
  EXPECT_THAT(matrices(net, muon("{convolutions: true, adamw: [fc]}")),
              UnorderedElementsAre("conv.weight"));
}

/// Returns what one step subtracts from a matrix of 6 rows and 3 columns, over the rate.
torch::Tensor matrix_update(const OptimizerOptions& options) {
  torch::manual_seed(3);
  const auto weight = torch::zeros({6, 3}).requires_grad_(true);
  std::vector<ParameterGroup> groups(1);
  groups[0] = {.parameters = {{.name = "w", .tensor = weight}},
               .lr = options.lr,
               .momentum = momentum_of(options)};
  const auto optimizer = make_optimizer(options, groups);
  for (int i = 0; i < 2; ++i) {
    weight.mutable_grad() = torch::randn({6, 3});
    const torch::NoGradGuard no_grad;
    weight.zero_();
    optimizer->step();
  }
  return weight.detach() / -options.lr;
}

TEST(Muon, UpdatesAreAboutOrthogonal) {
  const auto update = matrix_update(muon("{adjust_lr: original}")) / std::sqrt(2);
  const auto singular = torch::linalg_svdvals(update, std::nullopt);
  EXPECT_GT(singular.min().item<double>(), 0.6) << singular;
  EXPECT_LT(singular.max().item<double>(), 1.3) << singular;
}

TEST(Muon, EveryOptionOfItsOwnChangesTheStep) {
  const auto usual = matrix_update(muon());
  for (const char* own :
       {"{nesterov_momentum: false}", "{ns_steps: 3}", "{float32: true}", "{adamw: [w]}"})
    EXPECT_FALSE(torch::equal(matrix_update(muon(own)), usual)) << own;
  EXPECT_LT((matrix_update(muon("{float32: true}")) - usual).abs().max().item<double>(), 0.02);
  const auto factor = [&](const std::string& rule) {
    return (matrix_update(muon("{adjust_lr: " + rule + "}")).norm() / usual.norm()).item<double>();
  };
  const double by_default = 0.2 * std::sqrt(6);
  EXPECT_NEAR(factor("match_rms_adamw"), 1, 1e-6);
  EXPECT_NEAR(factor("original"), std::sqrt(2) / by_default, 1e-5);
  EXPECT_NEAR(factor("spectral_unclamped"), std::sqrt(2) / by_default, 1e-5);
  const auto by_adamw = matrix_update(muon("{adamw: [w]}"));
  const auto slower = matrix_update(muon("{adamw: [w], adamw_lr: 0.5}"));
  EXPECT_TRUE(torch::allclose(slower * 2, by_adamw));
  EXPECT_FALSE(torch::equal(matrix_update(muon("{adamw: [w], adamw_momentum: 0.5}")), by_adamw));
}

TEST(Muon, RefusesOptionsThatItDoesNotHave) {
  const auto problem = [](const std::string& own) -> std::string {
    try {
      (void)matrix_update(muon(own));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(problem("{steps: 3}"), HasSubstr("ns_steps"));
  EXPECT_THAT(problem("{ns_steps: 100}"), HasSubstr("99"));
  EXPECT_THAT(problem("{adjust_lr: none}"), HasSubstr("match_rms_adamw"));
}

TEST(Muon, WarnsOfANameThatNoParameterHas) {
  ::testing::internal::CaptureStderr();
  (void)matrix_update(muon("{adamw: [haed]}"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("'haed'"));
}

TEST(Muon, StepsOneParameterAlone) {
  testing::Net a = testing::make_net(), b = testing::make_net();
  const auto options = muon("{convolutions: true}");
  const auto whole = testing::make_for(a, options), single = testing::make_for(b, options);
  EXPECT_FALSE(whole->steps_atomically()) << "its products take memory";
  for (int64_t i = 0; i < 3; ++i) {
    whole->zero_grad();
    single->zero_grad();
    testing::backward(a, i);
    testing::backward(b, i);
    whole->step();
    for (const auto& group : single->groups())
      for (const auto& parameter : group.parameters) single->step_one(parameter.tensor);
  }
  EXPECT_EQ(testing::largest_difference(a, b), 0);
}

}  // namespace
}  // namespace tare

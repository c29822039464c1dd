// How the scale of gradients follows overflows.
#include "tare/optim/grad_scaler.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "support/test_device.h"
#include "tare/base/error.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

/// Parameters with these gradients, one of each type.
std::vector<ParameterGroup> groups_with(double gradient) {
  ParameterGroup group;
  for (const auto type : {torch::kFloat, torch::kHalf, torch::kBFloat16}) {
    const auto options = torch::dtype(type).device(testing::test_device());
    auto tensor = torch::zeros({3}, options).set_requires_grad(true);
    tensor.mutable_grad() = torch::full({3}, gradient, options);
    group.parameters.push_back({.name = "p", .tensor = tensor});
  }
  group.parameters.push_back({.name = "without", .tensor = torch::zeros({1})});
  return {group};
}

TEST(GradScaler, DividesGradientsOfEveryTypeByTheScale) {
  GradScaler scaler;
  scaler.restore(8, 0);
  const auto groups = groups_with(4);
  EXPECT_TRUE(scaler.unscale(groups));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(groups[0].parameters[i].tensor.grad().sum().item<double>(), 1.5) << i;
}

TEST(GradScaler, SeesOneGradientThatIsNotFinite) {
  const GradScaler scaler;
  for (size_t i = 0; i < 3; ++i) {
    for (const double bad :
         {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      const auto groups = groups_with(1);
      groups[0].parameters[i].tensor.mutable_grad()[1] = bad;
      EXPECT_FALSE(scaler.unscale(groups)) << i;
    }
  }
}

TEST(GradScaler, HalvesAfterAnOverflowAndDoublesAfter2000FiniteSteps) {
  GradScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536);
  for (int i = 0; i < 1999; ++i) scaler.update(true);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 32768);
  for (int i = 0; i < 1999; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_EQ(scaler.finite_steps(), 1999);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(scaler.finite_steps(), 0);
}

TEST(GradScaler, GivesUpWhenNoScaleHelps) {
  GradScaler scaler;
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) scaler.update(false);
      },
      StateError);
  EXPECT_GT(scaler.scale(), 0);
}

TEST(GradScaler, TakesMetaTensorsOfAPlanForFinite) {
  const plan::MetaScope scope;
  ParameterGroup group;
  auto tensor = torch::zeros({3}, torch::kMeta).set_requires_grad(true);
  tensor.mutable_grad() = torch::zeros({3}, torch::kMeta);
  group.parameters.push_back({.name = "p", .tensor = tensor});
  EXPECT_TRUE(GradScaler().unscale({group}));
}

}  // namespace
}  // namespace tare

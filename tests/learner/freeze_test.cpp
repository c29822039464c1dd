// Tests the effect of freezing on weights, gradients and optimizer state.
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

std::vector<std::string> trainable(Learner& learner) {
  std::vector<std::string> names;
  for (const auto& p : learner.model().parameters()) {
    if (p.tensor.requires_grad()) names.push_back(p.name);
  }
  return names;
}

TEST(Freeze, LeavesTheLastGroupAndTheNormsTrainable) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  const FreezeReport report = learner.freeze();
  EXPECT_EQ(trainable(learner),
            (std::vector<std::string>{"norm.weight", "norm.bias", "head.weight", "head.bias"}));
  EXPECT_EQ(report.trainable, 16 + 16 + 16 * kClasses + kClasses);
  learner.freeze({.norms = false});
  EXPECT_EQ(trainable(learner), (std::vector<std::string>{"head.weight", "head.bias"}));
  EXPECT_EQ(learner.unfreeze().frozen, 0);
}

TEST(Freeze, FrozenWeightsDoNotMoveAndTheirGradientsAreGone) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  auto first = learner.model().parameters()[0].tensor;
  first.mutable_grad() = torch::ones_like(first);
  const FreezeReport report = learner.freeze({.norms = false});
  EXPECT_EQ(report.gradient_bytes, static_cast<int64_t>(first.nbytes()));
  EXPECT_FALSE(first.grad().defined());
  const auto before = first.clone();
  learner.fit(2);
  EXPECT_TRUE(torch::equal(before, first));
}

TEST(Freeze, KeepsStateOfWhatStaysFreesItOfWhatDoesNot) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  const auto state_of = [&](const std::string& name) {
    for (const auto& [key, tensor] : learner.optimizer().state()) {
      if (key == name) return tensor.clone();
    }
    return torch::Tensor();
  };
  const auto head = state_of("exp_avg/head.weight");
  ASSERT_TRUE(head.defined());
  const int64_t before = tracked();
  const FreezeReport report = learner.freeze({.norms = false});
  EXPECT_GT(report.state_bytes, 0);
  EXPECT_EQ(report.state_kept, 2);
  EXPECT_EQ(before - tracked(), report.state_bytes + report.gradient_bytes);
  EXPECT_TRUE(torch::equal(head, state_of("exp_avg/head.weight")));
  EXPECT_FALSE(state_of("exp_avg/first.weight").defined());
  EXPECT_GT(learner.unfreeze().state_fresh, 0);
  EXPECT_TRUE(torch::equal(head, state_of("exp_avg/head.weight")));
  learner.fit(1);
}

TEST(Freeze, CountsFromBothEndsAndRefusesTheRest) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.freeze_to(2, {.norms = false});
  EXPECT_EQ(trainable(learner).front(), "second.weight");
  learner.freeze_to(-2, {.norms = false});
  EXPECT_EQ(trainable(learner).front(), "second.weight");
  EXPECT_THROW(learner.freeze_to(4), ConfigError);
  EXPECT_THROW(learner.freeze_to(-5), ConfigError);
  Learner single(torch::nn::Linear(kFeatures, kClasses), split_points(), quiet(folder));
  EXPECT_THROW(single.freeze(), StateError);
}

}  // namespace
}  // namespace tare::testing

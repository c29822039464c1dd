// Parameter groups by layer and by decay.
#include <gmock/gmock.h>

#include "optim/support.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using testing::make_net;
using testing::Net;

std::vector<std::string> names(const ParameterGroup& group) {
  std::vector<std::string> all;
  for (const auto& p : group.parameters) all.push_back(p.name);
  return all;
}

TEST(MakeGroups, SplitsEachLayerGroupByDecay) {
  const Model model(make_net(), {{"body", {"conv", "norm"}}, {"head", {"fc"}}});
  const auto groups = make_groups(model, {.lr = 0.5, .weight_decay = 0.25, .momentum = 0.75});
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].name, "body");
  EXPECT_EQ(groups[1].name, "body (no decay)");
  EXPECT_THAT(names(groups[0]), ElementsAre("conv.weight"));
  EXPECT_THAT(names(groups[1]), ElementsAre("conv.bias", "norm.weight", "norm.bias"));
  EXPECT_THAT(names(groups[2]), ElementsAre("fc.weight"));
  EXPECT_THAT(names(groups[3]), ElementsAre("fc.bias"));
  for (size_t i = 0; i < groups.size(); ++i) {
    EXPECT_EQ(groups[i].layer_group, static_cast<int64_t>(i / 2));
    EXPECT_EQ(groups[i].decay, i % 2 == 0);
    EXPECT_EQ(groups[i].weight_decay, i % 2 == 0 ? 0.25 : 0);
    EXPECT_EQ(groups[i].lr, 0.5);
    EXPECT_EQ(groups[i].momentum, 0.75);
  }
}

TEST(MakeGroups, OneGroupWhereAllAreEqual) {
  const Model model(make_net(), {{"all", {"conv", "norm", "fc"}}});
  for (const OptimizerOptions& options :
       {OptimizerOptions{.decay_norm_and_bias = true}, OptimizerOptions{.weight_decay = 0}}) {
    const auto groups = make_groups(model, options);
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_THAT(names(groups[0]), ElementsAre("conv.weight", "conv.bias", "norm.weight",
                                              "norm.bias", "fc.weight", "fc.bias"));
  }
}

TEST(MakeGroups, LeavesOutFrozenParametersAndEmptyGroups) {
  Net net = make_net();
  for (auto& p : net->conv->parameters()) p.set_requires_grad(false);
  net->fc->bias.set_requires_grad(false);
  const auto groups = make_groups(Model(net), {});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(names(groups[0]), ElementsAre("norm.weight", "norm.bias"));
  EXPECT_FALSE(groups[0].decay);
  EXPECT_THAT(names(groups[1]), ElementsAre("fc.weight"));
}

}  // namespace
}  // namespace tare

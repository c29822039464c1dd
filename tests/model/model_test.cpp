// Models: their tensors, groups and devices.
#include "tare/model/model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tare/base/error.h"

namespace tare {
namespace {

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    linear = register_module("linear", torch::nn::Linear(4, 4));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})));
  }
  torch::Tensor forward(torch::Tensor x) { return norm(linear(x)); }
  torch::nn::Linear linear{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    body = register_module("body", Block());
    head = register_module("head", torch::nn::Linear(4, 2));
    scale = register_parameter("scale", torch::ones({1}));
    count = register_buffer("count", torch::zeros({}));
  }
  torch::Tensor forward(torch::Tensor x) { return head(body(x)) * scale; }
  Block body{nullptr};
  torch::nn::Linear head{nullptr};
  torch::Tensor scale, count;
};
TORCH_MODULE(Net);

struct TwoInputsImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor a, torch::Tensor b) { return a + b; }
};
TORCH_MODULE(TwoInputs);

TEST(Model, ListsParametersWithKindAndGroup) {
  const Model model(Net{});
  std::vector<std::string> names;
  for (const auto& p : model.parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "body.linear.weight", "body.linear.bias",
                                             "body.norm.weight", "body.norm.bias", "head.weight",
                                             "head.bias"}));
  EXPECT_EQ(model.parameters()[1].kind, ParameterKind::weight);
  EXPECT_EQ(model.parameters()[2].kind, ParameterKind::bias);
  EXPECT_EQ(model.parameters()[3].kind, ParameterKind::norm);
  EXPECT_EQ(model.parameters()[4].kind, ParameterKind::norm) << "the bias of a normalisation layer";
  EXPECT_EQ(model.layer_groups().size(), 3U) << "self, body, head";
  EXPECT_EQ(model.parameters()[5].group, 2);
  ASSERT_EQ(model.buffers().size(), 1U);
  EXPECT_EQ(model.buffers()[0].name, "count");
  EXPECT_EQ(model.state().size(), 8U);
}

TEST(Model, ForwardIsTheModules) {
  Net net;
  Model model(net);
  const auto x = torch::rand({3, 4});
  EXPECT_TRUE(torch::equal(model.forward(x), net->forward(x)));
  EXPECT_EQ(&model.as<NetImpl>(), net.get());
  EXPECT_THROW((void)model.as<BlockImpl>(), std::bad_cast);
}

TEST(Model, TakesAsManyInputsAsItsForward) {
  const Model model(TwoInputs{});
  EXPECT_TRUE(model.has_forward());
  EXPECT_THROW((void)model.forward(torch::rand({1})), ShapeError);
  const Model none(TwoInputs{}.ptr(), Model::Forward());
  EXPECT_FALSE(none.has_forward());
  EXPECT_THROW((void)none.forward(torch::rand({1})), StateError);
}

TEST(Model, ChecksItsGroups) {
  EXPECT_THROW(Model(Net{}, {{"all", {"body", "head"}}}), ConfigError) << "scale is in none";
  EXPECT_THROW(Model(Net{}, {{"a", {"body", "head", "scale"}}, {"b", {"head.bias"}}}), ConfigError)
      << "in two";
  EXPECT_THROW(Model(Net{}, {{"a", {"body", "head", "scale", "tail"}}}), ConfigError)
      << "names nothing";
  EXPECT_THROW(Model(Net{}, {{"a", {"bod", "head", "scale", "ody"}}}), ConfigError)
      << "a prefix ends at a dot";
  const Model model(Net{}, {{"early", {"body.linear"}}, {"late", {"body.norm", "head", "scale"}}});
  EXPECT_EQ(model.parameters()[1].group, 0);
  EXPECT_EQ(model.parameters()[3].group, 1);
}

TEST(Model, ListsTiedTensorsOnce) {
  Net net;
  net->head->bias = net->head->register_parameter("other", net->head->weight);
  EXPECT_EQ(Model(net).parameters().size(), 7U);
}

struct LeftBehindImpl : torch::nn::Module {
  LeftBehindImpl() {
    linear = register_module("linear", torch::nn::Linear(4, 4));
    scale = register_parameter("scale", torch::ones({1}, torch::kMeta));
  }
  torch::Tensor forward(torch::Tensor x) { return linear(x) * scale; }
  torch::nn::Linear linear{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(LeftBehind);

struct MakesOneElsewhereImpl : torch::nn::Module {
  MakesOneElsewhereImpl() { linear = register_module("linear", torch::nn::Linear(4, 4)); }
  torch::Tensor forward(torch::Tensor x) {
    return linear(x).copy_(torch::ones({1, 4}, torch::kMeta));
  }
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(MakesOneElsewhere);

template <class Call>
std::string device_error(const Call& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

TEST(Model, AnOperationOverTwoDevicesNamesBothTensors) {
  const Model model(LeftBehind{});
  EXPECT_EQ(device_error([&] {
              (void)model.forward(torch::ones({2, 4}));
            }),
            "[model.forward] operands are on two devices: parameter 'scale' on meta and input on "
            "cpu; move one of them");
  const Model whole(Net{});
  EXPECT_EQ(device_error([&] {
              (void)whole.forward(torch::ones({2, 4}, torch::kMeta));
            }),
            "[model.forward] operands are on two devices: input on meta and parameter 'scale' on "
            "cpu; move one of them");
  const Model made(MakesOneElsewhere{});
  const std::string text = device_error([&] { (void)made.forward(torch::ones({1, 4})); });
  EXPECT_NE(text.find("a tensor that the forward makes is not on cpu"), std::string::npos) << text;
}

TEST(Model, WhatHasNoValuesCannotBeMoved) {
  Model model(LeftBehind{});
  EXPECT_EQ(device_error([&] { model.to(torch::kCPU); }),
            "[model.to] 'scale' is on meta and has no values to move to cpu; make it on a device");
}

TEST(Model, OtherErrorsOfAForwardStayAsTheyAre) {
  const Model model(Net{});
  EXPECT_THROW((void)model.forward(torch::ones({2, 3})), c10::Error);
}

TEST(Model, MovedAwayRefusesEveryCall) {
  Model model(Net{});
  const Model other = std::move(model);
  EXPECT_TRUE(model.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW((void)model.parameters(), StateError);
  EXPECT_THROW((void)model.forward(torch::rand({1, 4})), StateError);
  EXPECT_THROW(model.train(true), StateError);
  EXPECT_THROW((void)model.device(), StateError);
}

TEST(Model, AnEmptyHolderIsRefused) { EXPECT_THROW(Model(Net{nullptr}), ConfigError); }

TEST(EvaluationScope, GivesEverySubmoduleItsModeBack) {
  Net net;
  Model model(net);
  net->body->train(false);
  {
    const EvaluationScope scope(model);
    EXPECT_FALSE(net->is_training());
    EXPECT_FALSE(net->head->is_training());
  }
  EXPECT_TRUE(net->is_training());
  EXPECT_FALSE(net->body->is_training());
  EXPECT_FALSE(net->body->norm->is_training());
  EXPECT_TRUE(net->head->is_training());
}

}  // namespace
}  // namespace tare

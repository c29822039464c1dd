// Compares graphs with the models that they were made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interchange/modules.h"
#include "support/outcome.h"
#include "tare/interchange/fold_norms.h"
#include "tare/interchange/replay.h"

namespace tare::interchange {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::outcome_of;
using ::testing::StartsWith;

class ZooGraphs : public ::testing::TestWithParam<ZooCase> {};

TEST_P(ZooGraphs, ComputeWhatTheModelDoesToTheBit) {
  torch::manual_seed(1);
  at::set_num_threads(1);
  Model model = GetParam().made();
  const Graph graph = graph_of(model, GetParam().inputs);
  for (const AnySizes sizes : {AnySizes{1, 7}, AnySizes{4, 16}, AnySizes{7, 1}}) {
    const auto inputs = inputs_for(graph, sizes);
    EXPECT_EQ(difference(replay(graph, inputs).at(0), output_of(model, inputs)), 0)
        << sizes.batch << ' ' << sizes.length;
  }
}

TEST_P(ZooGraphs, HaveTheNamesOfTheModelAndNoOperatorOfTraining) {
  Model model = GetParam().made();
  const Graph graph = graph_of(model, GetParam().inputs);
  std::vector<std::string> names, expected;
  for (const Weight& weight : graph.weights) names.push_back(weight.name);
  for (const NamedTensor& tensor : model.state()) expected.push_back(tensor.name);
  EXPECT_EQ(names, expected);
  for (const Node& node : graph.nodes) EXPECT_THAT(node.str(), Not(HasSubstr("dropout")));
}

INSTANTIATE_TEST_SUITE_P(Models, ZooGraphs, ::testing::ValuesIn(zoo_cases()),
                         [](const auto& one) { return one.param.name; });

TEST(Graphs, LeaveTheModelAsItWas) {
  Model model = models::make("resnet9", {.sample_shape = {3, 32, 32}});
  model.train(true);
  std::vector<torch::Tensor> before;
  for (const NamedTensor& tensor : model.state()) before.push_back(tensor.tensor.clone());
  const Graph graph = trace_graph(model, {{.sample_shape = {3, 32, 32}}});
  EXPECT_TRUE(model.is_training());
  const auto after = model.state();
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_TRUE(after[i].tensor.device().is_cpu()) << after[i].name;
    EXPECT_TRUE(torch::equal(after[i].tensor, before[i])) << after[i].name;
    EXPECT_EQ(graph.weights[i].tensor.data_ptr(), after[i].tensor.data_ptr()) << "shared";
  }
  const torch::Tensor x = torch::rand({2, 3, 32, 32});
  model.forward(x).sum().backward();
  EXPECT_TRUE(model.parameters().front().tensor.grad().defined());
}

Graph graph_of_function(std::function<torch::Tensor(const torch::Tensor&)> function,
                        GraphInput input = {.sample_shape = {4}}) {
  Model model(Function(std::move(function)));
  return graph_of(model, {std::move(input)});
}

TEST(Graphs, FollowOperatorsInPlaceAndViews) {
  const auto function = [](const torch::Tensor& x) {
    torch::Tensor y = x * 2;
    y.relu_();
    y += 1;
    return y.view({-1, 2, 2}).flatten(1).contiguous().detach();
  };
  const Graph graph = graph_of_function(function);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.str());
  EXPECT_EQ(names, (std::vector<std::string>{"mul.Scalar", "relu", "add.Scalar", "reshape",
                                             "flatten.using_ints"}));
  const torch::Tensor x = torch::randn({3, 4});
  EXPECT_EQ(difference(replay(graph, {x}).at(0), function(x)), 0);
}

TEST(Graphs, HaveSizesThatDependOnSamplesAndLength) {
  const auto function = [](const torch::Tensor& x) {
    return torch::cat({x.flatten(), torch::zeros({3})}) + (x.size(0) * x.size(1) - x.size(1));
  };
  const Graph graph = graph_of_function(function, {.sample_shape = {9}, .length = 0});
  EXPECT_EQ(graph.values[graph.outputs.at(0)].sizes.at(0), (Size{.constant = 3, .product = 1}));
  for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{1, 4}, {6, 2}}) {
    const torch::Tensor x = torch::randn({batch, length});
    EXPECT_EQ(difference(replay(graph, {x}).at(0), function(x)), 0);
  }
}

TEST(Graphs, AreRefusedWithTheOperator) {
  const auto refusal = [](std::function<torch::Tensor(const torch::Tensor&)> function,
                          GraphInput input = {.sample_shape = {4}}) {
    return outcome_of([&] { (void)graph_of_function(std::move(function), std::move(input)); });
  };
  EXPECT_THAT(refusal([](const torch::Tensor& x) { return x.sum().item<float>() > 0 ? x : -x; }),
              HasSubstr("cannot be followed without values"));
  EXPECT_THAT(refusal([](const torch::Tensor& x) { return x / std::sqrt(x.size(0)); }),
              HasSubstr("operator div.Scalar takes another value for other numbers of samples"));
  EXPECT_THAT(refusal([](const torch::Tensor& x) {
                const torch::Tensor y = x.relu();
                return y + torch::rand_like(y);
              }),
              AllOf(HasSubstr("rand_like draws random numbers"), HasSubstr("behind relu")));
  EXPECT_THAT(refusal([](const torch::Tensor& x) { return x.size(0) > 2 ? x.relu() : x.tanh(); }),
              HasSubstr("calls other operators for other numbers of samples"));
  EXPECT_THAT(refusal([](const torch::Tensor& x) {
                return x.flatten().unsqueeze(0).expand({x.numel(), x.numel()}).reshape({-1});
              }),
              HasSubstr("otherwise than linearly"));
  EXPECT_THAT(refusal([](const torch::Tensor& x) {
                torch::Tensor y = x * 2;
                const torch::Tensor row = y.select(1, 0);
                row.zero_();
                return y;
              }),
              HasSubstr("changed in place through another view"));
  Function counting([](const torch::Tensor& x) { return x; });
  counting->function = [weight = counting->weight](const torch::Tensor& x) {
    weight.detach().add_(1);
    return x * weight;
  };
  Model model(counting);
  EXPECT_THAT(outcome_of([&] { (void)graph_of(model, {{.sample_shape = {4}}}); }),
              StartsWith("ConfigError: [export] "));
}

TEST(Graphs, RefuseInputsThatTheyDoNotDescribe) {
  const Graph graph = graph_of_function([](const torch::Tensor& x) { return x * 2; });
  EXPECT_THAT(outcome_of([&] {
                (void)replay(graph, {torch::rand({2, 5})});
              }),
              HasSubstr("[interchange.replay] expected input of shape [2, 4]"));
  EXPECT_THAT(outcome_of([&] { (void)replay(graph, {}); }), HasSubstr("1 inputs"));
}

TEST(Difference, IsAShareOfTheLargestMagnitude) {
  const torch::Tensor x = torch::tensor({1.0F, -4.0F});
  EXPECT_EQ(difference(x, x.clone()), 0);
  EXPECT_EQ(difference(torch::tensor({1.0F, -3.0F}), x), 0.25);
  EXPECT_EQ(difference(torch::tensor({0.0F, NAN}), torch::tensor({0.5F, NAN})), 0.5);
  EXPECT_EQ(difference(torch::tensor({NAN, -4.0F}), x), INFINITY);
  EXPECT_EQ(difference(torch::rand({3}), x), INFINITY);
}

TEST(FoldNorms, LeavesWhatTheGraphComputes) {
  int folded_in_all = 0;
  for (const ZooCase& one : zoo_cases()) {
    torch::manual_seed(5);
    Model model = one.made();
    for (const NamedTensor& buffer : model.buffers())  // as after a training
      if (buffer.tensor.is_floating_point()) buffer.tensor.detach().uniform_(0.5, 2);
    Graph graph = graph_of(model, one.inputs);
    const auto norms = [&] {
      return std::ranges::count(graph.nodes, std::string("aten::batch_norm"), &Node::op);
    };
    const auto before = norms();
    const size_t weights = graph.weights.size();
    const int64_t folded = fold_norms(graph);
    for (const Value& value : graph.values)
      EXPECT_EQ(plain_name(value.name), value.name) << "a file of PyTorch has it as an argument";
    folded_in_all += static_cast<int>(folded);
    EXPECT_EQ(norms(), before - folded) << one.name;
    if (one.name.starts_with("resnet") || one.name.starts_with("mobilenet")) {
      EXPECT_EQ(norms(), 0) << one.name;
      EXPECT_LE(graph.weights.size() + 4 * static_cast<size_t>(folded), weights) << one.name;
    }
    if (folded == 0) {
      EXPECT_EQ(graph.weights.size(), weights) << one.name;
    }
    const auto inputs = inputs_for(graph, {.batch = 3, .length = 5});
    EXPECT_LT(difference(replay(graph, inputs).front(), output_of(model, inputs)), 1e-5)
        << one.name;
  }
  EXPECT_GT(folded_in_all, 100);
}

/// Reads the output of a convolution in its norm and beside it.
struct TwiceImpl : torch::nn::Module {
  TwiceImpl()
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(2))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    const auto y = conv(x);
    return norm(y) + y;
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
};
TORCH_MODULE(Twice);

TEST(FoldNorms, LeavesANormWhoseInputIsReadElsewhere) {
  Model model{Twice()};
  Graph graph = graph_of(model, {{.sample_shape = {1, 8, 8}}});
  EXPECT_EQ(fold_norms(graph), 0);
}

}  // namespace
}  // namespace tare::interchange

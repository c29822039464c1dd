// Tests the promises of every model family.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <set>

#include "models/parameter_count.h"
#include "tare/base/error.h"
#include "tare/model/registry.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::parameter_count;

bool takes_tokens(const std::string& name) { return name == "gpt"; }
bool takes_sequences(const std::string& name) { return name == "lstm"; }

// Small versions of every family for [1, 28, 28] samples or 9 tokens, to keep the tests quick.
ModelOptions small(const std::string& name) {
  if (takes_tokens(name))
    return {.classes = 7, .sample_shape = {9}, .width = 16, .layers = 2, .heads = 4};
  if (takes_sequences(name)) return {.classes = 7, .sample_shape = {9}, .width = 16};
  ModelOptions options{.classes = 7, .sample_shape = {1, 28, 28}};
  if (name.starts_with("resnet") && name != "resnet9") options.width = 8;
  return options;
}

Batch samples(const std::string& name, int64_t count) {
  if (takes_tokens(name)) return torch::randint(7, {count, 9}, torch::kLong);
  if (takes_sequences(name))
    return {{{"text", torch::randint(256, {count, 9}, torch::kLong)},
             {"lengths", torch::arange(count, torch::kLong).remainder(9) + 1}},
            {}};
  return torch::randn({count, 1, 28, 28});
}

std::vector<std::string> group_names(const Model& model) {
  std::vector<std::string> all;
  for (const auto& group : model.layer_groups()) all.push_back(group.name);
  return all;
}

class Families : public ::testing::TestWithParam<std::string> {};

TEST_P(Families, GiveOneScoreForEachClass) {
  const Model model = models::make(GetParam(), small(GetParam()));
  std::vector<int64_t> wanted{3, 7};
  if (takes_tokens(GetParam())) wanted.push_back(9);  // at each place
  EXPECT_EQ(model.forward(samples(GetParam(), 3)).front().sizes(), torch::IntArrayRef(wanted));
}

TEST_P(Families, BuildWithTheirOwnSampleShape) {
  const auto shape = models::family(GetParam()).sample_shape;
  Model model = models::make(GetParam());
  model.train(false);
  std::vector<int64_t> batch{1};
  batch.insert(batch.end(), shape.begin(), shape.end());
  const torch::NoGradGuard no_grad;
  const bool is_text = takes_tokens(GetParam()) || takes_sequences(GetParam());
  Batch zeros(torch::zeros(batch, is_text ? torch::kLong : torch::kFloat));
  if (takes_sequences(GetParam()))
    zeros.inputs.push_back({"lengths", torch::ones({1}, torch::kLong)});
  EXPECT_EQ(model.forward(zeros).front().sizes().slice(0, 2), torch::IntArrayRef({1, 10}));
}

TEST_P(Families, RunThroughTheirGroupsFromInputToHead) {
  const Model model = models::make(GetParam(), small(GetParam()));
  const auto groups = static_cast<int64_t>(model.layer_groups().size());
  int64_t last = 0;
  std::set<int64_t> seen;
  for (const auto& p : model.parameters()) {
    EXPECT_GE(p.group, last) << p.name;
    last = p.group;
    seen.insert(p.group);
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), groups);
  EXPECT_EQ(last, groups - 1);
  const auto& head = models::family(GetParam()).head;
  EXPECT_EQ(model.layer_groups().back().name, head.empty() ? "ln_f" : head);
}

TEST_P(Families, LearnInAFewSteps) {
  torch::manual_seed(0);
  const Model model = models::make(GetParam(), small(GetParam()));
  const auto x = samples(GetParam(), 14);
  const auto y = takes_tokens(GetParam()) ? x.input() : torch::arange(14).remainder(7);
  std::vector<torch::Tensor> parameters;
  for (const auto& p : model.parameters()) parameters.push_back(p.tensor);
  const bool is_text = takes_tokens(GetParam()) || takes_sequences(GetParam());
  const double rate = is_text ? 2e-2 : 3e-3;
  torch::optim::AdamW optimizer(parameters, torch::optim::AdamWOptions(rate));
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    const auto loss = torch::cross_entropy_loss(model.forward(x).front(), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST_P(Families, DropOnlyWhileTraining) {
  ModelOptions options = small(GetParam());
  options.dropout = 0.5;
  Model model = models::make(GetParam(), options);
  const torch::NoGradGuard no_grad;
  const auto x = samples(GetParam(), 2);
  EXPECT_FALSE(torch::equal(model.forward(x).front(), model.forward(x).front()));
  model.train(false);
  EXPECT_TRUE(torch::equal(model.forward(x).front(), model.forward(x).front()));
}

TEST_P(Families, AreBuiltAgainFromTheirSpec) {
  ModelOptions options = small(GetParam());
  options.dropout = 0.25;
  const Model model = models::make(GetParam(), options);
  ASSERT_TRUE(model.spec().has_value());
  const Model again = models::make(*model.spec());
  ASSERT_EQ(again.state().size(), model.state().size());
  for (size_t i = 0; i < model.state().size(); ++i) {
    EXPECT_EQ(again.state()[i].name, model.state()[i].name);
    EXPECT_EQ(again.state()[i].tensor.sizes(), model.state()[i].tensor.sizes());
  }
}

TEST_P(Families, RefuseInputOfAnotherShape) {
  const Model model = models::make(GetParam(), small(GetParam()));
  EXPECT_THROW((void)model.forward(torch::zeros({2, 3, 28, 28})), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(All, Families, ::testing::ValuesIn(models::names()));

class ImageFamilies : public ::testing::TestWithParam<std::string> {};

TEST_P(ImageFamilies, TakeImagesOfAnySizeWithTheSameWeights) {
  Model model = models::make(GetParam(), small(GetParam()));
  model.train(false);
  const torch::NoGradGuard no_grad;
  for (const int64_t side : {8, 28, 41, 64}) {
    EXPECT_EQ(model.forward(torch::randn({2, 1, side, side + 1})).sizes(),
              torch::IntArrayRef({2, 7}))
        << side;
  }
}

TEST_P(ImageFamilies, RefuseASampleShapeThatIsNoImage) {
  EXPECT_THROW((void)models::make(GetParam(), {.sample_shape = {784}}), ConfigError);
  EXPECT_THROW((void)models::make(GetParam(), {.sample_shape = {0, 28, 28}}), ConfigError);
}

TEST_P(ImageFamilies, GrowWithTheirWidth) {
  const ModelOptions narrow{.sample_shape = {1, 28, 28}, .width = 4},
      wide{.sample_shape = {1, 28, 28}, .width = 8};
  const double ratio = static_cast<double>(parameter_count(models::make(GetParam(), wide))) /
                       static_cast<double>(parameter_count(models::make(GetParam(), narrow)));
  EXPECT_GT(ratio, 3);
  EXPECT_LT(ratio, 4);
}

INSTANTIATE_TEST_SUITE_P(All, ImageFamilies,
                         ::testing::Values("convnet", "resnet18", "resnet34", "resnet50",
                                           "resnet9"));

TEST(ModelFamilies, HaveTheGroupsOfTheDocumentation) {
  EXPECT_THAT(group_names(models::make("convnet")),
              ElementsAre("block1", "block2", "block3", "fc"));
  EXPECT_THAT(group_names(models::make("mlp")), ElementsAre("hidden0", "head"));
  EXPECT_THAT(group_names(models::make("resnet9")),
              ElementsAre("prep", "layer1", "layer2", "layer3", "fc"));
  EXPECT_THAT(group_names(models::make("resnet18")),
              ElementsAre("stem", "layer1", "layer2", "layer3", "layer4", "fc"));
}

TEST(ModelFamilies, HaveTheSizesOfTheDocumentation) {
  EXPECT_EQ(parameter_count(models::make("mlp")), 101'770);
  EXPECT_EQ(parameter_count(models::make("convnet")), 24'058);
  EXPECT_EQ(parameter_count(models::make("resnet9")), 103'810);
  EXPECT_EQ(parameter_count(models::make("resnet18")), 11'181'642);
  EXPECT_EQ(parameter_count(models::make("resnet34")), 21'289'802);
  const plan::MetaScope without_memory;
  EXPECT_EQ(parameter_count(models::make("resnet50")), 23'528'522);
  EXPECT_EQ(parameter_count(models::make("gpt")), 85'850'112);
}

TEST(Mlp, TakesItsHiddenLayersAndFlatSamples) {
  const Model model = models::make("mlp", {.classes = 3, .sample_shape = {64}, .hidden = {32, 16}});
  EXPECT_THAT(group_names(model), ElementsAre("hidden0", "hidden1", "head"));
  EXPECT_EQ(parameter_count(model), 64 * 32 + 32 + 32 * 16 + 16 + 16 * 3 + 3);
  EXPECT_EQ(model.forward(torch::zeros({5, 64})).sizes(), torch::IntArrayRef({5, 3}));
  EXPECT_THROW((void)models::make("mlp", {.hidden = {32, 0}}), ConfigError);
  EXPECT_THROW((void)models::make("mlp", {.sample_shape = {-1, 4}}), ConfigError);
}

TEST(Mlp, RefusesASampleShapeWithoutAProduct) {
  const std::vector<int64_t> shapes[] = {{0}, {-2, -3}, {3, 0, -1}, {int64_t{1} << 40, 1 << 30}};
  for (const auto& shape : shapes)
    EXPECT_THROW((void)models::make("mlp", {.sample_shape = shape}), ConfigError);
}

TEST(ModelFamilies, RefuseOptionsTheyDoNotTake) {
  try {
    (void)models::make("mlp", {.width = 8});
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("width is not an option of the model 'mlp'; allowed: "));
  }
  EXPECT_THROW((void)models::make("resnet9", {.hidden = {3}}), ConfigError);
  EXPECT_THROW((void)models::make("resnet9", {.dropout = 1}), ConfigError);
  EXPECT_THROW((void)models::make("resnet9", {.classes = 0}), ConfigError);
  EXPECT_THROW((void)models::make("resnet99"), ConfigError);
}

}  // namespace
}  // namespace tare

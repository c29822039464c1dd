// Tests the promises of every model family.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <set>

#include "models/parameter_count.h"
#include "models/tabular.h"
#include "tare/base/error.h"
#include "tare/config/field.h"
#include "tare/model/registry.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::parameter_count;

bool takes_tokens(const std::string& name) { return name == "gpt"; }
bool takes_sequences(const std::string& name) { return name == "lstm"; }
bool scores_pixels(const std::string& name) { return name == "unet"; }

config::OwnOptions own(const std::string& yaml) {
  return {.node = config::parse_text(yaml, "options")};
}

// Small versions of every family for [1, 28, 28] samples, 9 tokens or 5 columns, to keep the tests
// quick.
ModelOptions small(const std::string& name) {
  if (takes_tokens(name))
    return {.classes = 7, .sample_shape = {9}, .width = 16, .layers = 2, .heads = 4};
  if (takes_sequences(name)) return {.classes = 7, .sample_shape = {9}, .width = 16};
  if (name == "tabular")
    return {.classes = 7, .sample_shape = {5}, .options = own("categories: [4, 6]")};
  ModelOptions options{.classes = 7, .sample_shape = {1, 28, 28}};
  if (name == "vit") {
    options.width = 16, options.layers = 2, options.heads = 4;
    options.options = own("patch: 7");
  }
  if (name.starts_with("mobilenet") || name == "siamese" || scores_pixels(name)) options.width = 8;
  if (name.starts_with("resnet") && name != "resnet9") options.width = 8;
  return options;
}

Batch samples(const std::string& name, int64_t count) {
  if (takes_tokens(name)) return torch::randint(7, {count, 9}, torch::kLong);
  if (takes_sequences(name))
    return {{{"text", torch::randint(256, {count, 9}, torch::kLong)},
             {"lengths", torch::arange(count, torch::kLong).remainder(9) + 1}},
            {}};
  if (name == "tabular")
    return torch::cat({torch::randint(4, {count, 2}).to(torch::kFloat), torch::randn({count, 3})},
                      1);
  if (name == "siamese")
    return {
        {{"left", torch::randn({count, 1, 28, 28})}, {"right", torch::randn({count, 1, 28, 28})}},
        {}};
  return torch::randn({count, 1, 28, 28});
}

// Returns what a small model can learn of these samples: their number, the token itself, or how
// bright a pixel is.
torch::Tensor targets(const std::string& name, const Batch& x) {
  if (takes_tokens(name)) return x.input();
  if (scores_pixels(name)) return (x.input().squeeze(1) * 2 + 3).clamp(0, 6).to(torch::kLong);
  return torch::arange(x.size()).remainder(7);
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
  if (scores_pixels(GetParam())) wanted.insert(wanted.end(), {28, 28});
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
  if (GetParam() == "siamese") zeros.inputs.push_back({"right", torch::zeros(batch)});
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
  const std::string head = models::head_of(GetParam(), small(GetParam()));
  EXPECT_EQ(model.layer_groups().back().name, head.empty() ? "ln_f" : head);
}

TEST_P(Families, LearnInAFewSteps) {
  torch::manual_seed(0);
  const Model model = models::make(GetParam(), small(GetParam()));
  const auto x = samples(GetParam(), 14);
  const auto y = targets(GetParam(), x);
  std::vector<torch::Tensor> parameters;
  for (const auto& p : model.parameters()) parameters.push_back(p.tensor);
  const bool is_text = takes_tokens(GetParam()) || takes_sequences(GetParam());
  const double rate = is_text || GetParam() == "tabular" || scores_pixels(GetParam()) ? 2e-2 : 3e-3;
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

/// The families but for that whose layers stand in a file.
std::vector<std::string> families_of_layers() {
  std::vector<std::string> names = models::names();
  std::erase(names, "torchscript");
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, Families, ::testing::ValuesIn(families_of_layers()));

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

class WideFamilies : public ::testing::TestWithParam<std::string> {};

TEST_P(WideFamilies, GrowWithTheirWidth) {
  const ModelOptions narrow{.sample_shape = {1, 28, 28}, .width = 4},
      wide{.sample_shape = {1, 28, 28}, .width = 8};
  const double ratio = static_cast<double>(parameter_count(models::make(GetParam(), wide))) /
                       static_cast<double>(parameter_count(models::make(GetParam(), narrow)));
  EXPECT_GT(ratio, 3);
  EXPECT_LT(ratio, 4);
}

INSTANTIATE_TEST_SUITE_P(All, ImageFamilies,
                         ::testing::Values("convnet", "mobilenet_v3_large", "mobilenet_v3_small",
                                           "resnet18", "resnet34", "resnet50", "resnet9"));
INSTANTIATE_TEST_SUITE_P(All, WideFamilies,
                         ::testing::Values("convnet", "resnet18", "resnet34", "resnet50", "resnet9",
                                           "siamese", "unet"));

TEST(ModelFamilies, HaveTheGroupsOfTheDocumentation) {
  EXPECT_THAT(group_names(models::make("convnet")),
              ElementsAre("block1", "block2", "block3", "fc"));
  EXPECT_THAT(group_names(models::make("mlp")), ElementsAre("hidden0", "head"));
  EXPECT_THAT(group_names(models::make("resnet9")),
              ElementsAre("prep", "layer1", "layer2", "layer3", "fc"));
  EXPECT_THAT(group_names(models::make("resnet18")),
              ElementsAre("stem", "layer1", "layer2", "layer3", "layer4", "fc"));
  EXPECT_THAT(group_names(models::make("vit", small("vit"))),
              ElementsAre("embedding", "encoder_layer_0", "encoder_layer_1", "ln", "heads"));
  EXPECT_THAT(
      group_names(models::make("unet", small("unet"))),
      ElementsAre("inc", "down1", "down2", "down3", "down4", "up1", "up2", "up3", "up4", "outc"));
  EXPECT_THAT(group_names(models::make("tabular")),
              ElementsAre("embedding", "layers.0", "layers.1", "layers.2"));
  EXPECT_THAT(group_names(models::make("siamese", small("siamese"))),
              ElementsAre("stem", "resnet.4", "resnet.5", "resnet.6", "resnet.7", "fc.0", "fc.2"));
  const auto mobile = group_names(models::make("mobilenet_v3_small", small("mobilenet_v3_small")));
  EXPECT_EQ(mobile.size(), 15U);
  EXPECT_EQ(mobile.front(), "features.0");
  EXPECT_EQ(mobile.back(), "classifier.3");
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
  EXPECT_EQ(parameter_count(models::make("vit")), 85'806'346);
  EXPECT_EQ(parameter_count(models::make("unet")), 31'038'218);
  EXPECT_EQ(parameter_count(models::make("mobilenet_v3_large")), 4'214'842);
  EXPECT_EQ(parameter_count(models::make("mobilenet_v3_small")), 1'528'106);
  EXPECT_EQ(parameter_count(models::make("tabular")), 23'630);
  EXPECT_EQ(parameter_count(models::make("siamese")), 11'435'210);
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

TEST(Vit, RefusesImagesThatPatchesDoNotFill) {
  try {
    (void)models::make("vit", {.sample_shape = {3, 30, 32}, .width = 8, .heads = 2});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample_shape must have sides that patches fill"));
    EXPECT_THAT(error.what(), HasSubstr("multiples of 16, or another options.patch"));
  }
  EXPECT_THROW((void)models::make("vit", {.width = 10, .heads = 4}), ConfigError);
  EXPECT_THROW((void)models::make("vit", {.options = own("patch: 0")}), ConfigError);
  EXPECT_THROW((void)models::make("vit", {.options = own("pach: 8")}), ConfigError);
  const Model model = models::make("vit", small("vit"));
  EXPECT_THROW((void)model.forward(torch::zeros({2, 1, 35, 28})), ShapeError);
}

TEST(Vit, HasAnInnerLayerOfTheWidthThatIsAskedFor) {
  ModelOptions options = small("vit");
  const int64_t standard = parameter_count(models::make("vit", options));
  options.options = own("{patch: 7, mlp: 10}");
  // Two weights of [64, 16], and a bias of 64, in each of two blocks.
  EXPECT_EQ(standard - parameter_count(models::make("vit", options)), 2 * (2 * 16 + 1) * 54);
}

TEST(Unet, GivesEachPixelAScoreWhateverTheSize) {
  for (const char* bilinear : {"bilinear: false", "bilinear: true"}) {
    ModelOptions options = small("unet");
    options.options = own(bilinear);
    Model model = models::make("unet", options);
    model.train(false);
    const torch::NoGradGuard no_grad;
    for (const int64_t side : {16, 28, 41, 64})
      EXPECT_EQ(model.forward(torch::randn({2, 1, side, side + 1})).sizes(),
                torch::IntArrayRef({2, 7, side, side + 1}));
    EXPECT_THROW((void)model.forward(torch::zeros({2, 1, 15, 28})), ShapeError);
  }
}

TEST(Unet, HasNoWeightsOnTheWayUpWhereItIsBilinear) {
  ModelOptions options = small("unet");
  options.options = own("bilinear: true");
  const Model model = models::make("unet", options);
  for (const auto& p : model.parameters())
    EXPECT_EQ(p.name.find(".up."), std::string::npos) << p.name;
}

TEST(Tabular, ReadsTheFirstColumnsAsCategories) {
  torch::manual_seed(4);  // some weights let no row through the four units
  ModelOptions options{.classes = 2, .sample_shape = {3}, .hidden = {4}};
  options.options = own("categories: [300]");
  Model model = models::make("tabular", options);
  model.train(false);
  const torch::NoGradGuard no_grad;
  const auto row = torch::tensor({{7.F, 0.5F, -1.F}}), other = torch::tensor({{8.F, 0.5F, -1.F}});
  EXPECT_FALSE(torch::equal(model.forward(row), model.forward(other)));
  EXPECT_THROW((void)model.forward(torch::tensor({{300.F, 0.F, 0.F}})), c10::Error);
  EXPECT_THROW((void)model.forward(row.to(torch::kBFloat16)), ShapeError);
  EXPECT_EQ(group_names(model).back(), models::head_of("tabular", options));
  EXPECT_EQ(models::head_of("tabular", options), "layers.1");
}

TEST(Tabular, TakesCategoriesOrNumbersAlone) {
  ModelOptions options{.classes = 2, .sample_shape = {2}, .hidden = {4}};
  EXPECT_EQ(models::make("tabular", options).forward(torch::randn({5, 2})).sizes(),
            torch::IntArrayRef({5, 2}));
  options.options = own("categories: [3, 3]");
  EXPECT_EQ(models::make("tabular", options).forward(torch::ones({5, 2})).sizes(),
            torch::IntArrayRef({5, 2}));
  options.options = own("categories: [3, 3, 3]");
  EXPECT_THROW((void)models::make("tabular", options), ConfigError);
  EXPECT_THROW((void)models::make("tabular", {.sample_shape = {1, 2}}), ConfigError);
}

TEST(Tabular, ScalesEachOutput) {
  ModelOptions options{.classes = 2, .sample_shape = {2}, .hidden = {4}};
  Model plain = models::make("tabular", options);
  const auto scaled = [&](const std::string& text) {
    options.options = own(text);
    Model model = models::make("tabular", options);
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < plain.parameters().size(); ++i)
      model.parameters()[i].tensor.copy_(plain.parameters()[i].tensor);
    model.train(false);
    return model.forward(torch::ones({3, 2}));
  };
  plain.train(false);
  const torch::NoGradGuard no_grad;
  const torch::Tensor outputs = plain.forward(torch::ones({3, 2}));
  const auto wanted = torch::tensor({100.F, 2.F}) * outputs + torch::tensor({-7.F, 5.F});
  EXPECT_TRUE(torch::allclose(scaled("output_mean: [-7, 5]\noutput_deviation: [100, 2]"), wanted));
  EXPECT_TRUE(
      torch::allclose(scaled("output_mean: [-7, 5]"), outputs + torch::tensor({-7.F, 5.F})));
  EXPECT_TRUE(torch::allclose(scaled("output_deviation: 3"), outputs * 3));
  EXPECT_THROW((void)scaled("output_mean: [1, 2, 3]"), ConfigError);
  EXPECT_THROW((void)scaled("output_mean: [.nan, 1]"), ConfigError);
  EXPECT_THROW((void)scaled("output_deviation: .inf"), ConfigError);
  EXPECT_THROW((void)scaled("output_deviation: []"), ConfigError);
  EXPECT_THROW((void)scaled("output_deviation: [1, 0]"), ConfigError);
}

TEST(Tabular, HasEmbeddingsOfFastaisWidths) {
  EXPECT_EQ(models::embedding_width(2), 2);
  EXPECT_EQ(models::embedding_width(10), 6);
  EXPECT_EQ(models::embedding_width(1000), 77);
  EXPECT_EQ(models::embedding_width(1'000'000), 600);
}

TEST(Tabular, InitialisesTheHeadOfItsHiddenLayersAgain) {
  ModelOptions options{.classes = 2, .sample_shape = {2}, .hidden = {4, 4, 4}};
  Model model = models::make("tabular", options);
  std::vector<torch::Tensor> before;
  for (const auto& p : model.parameters()) before.push_back(p.tensor.detach().clone());
  models::reset_head(model);
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& p = model.parameters()[i];
    EXPECT_NE(torch::equal(p.tensor, before[i]), p.name.starts_with("layers.3.")) << p.name;
  }
}

TEST(Siamese, TakesAsManyImagesOnBothSides) {
  const Model model = models::make("siamese", small("siamese"));
  const auto pair = [](int64_t left, int64_t right) {
    return Batch(
        {{"left", torch::zeros({left, 1, 28, 28})}, {"right", torch::zeros({right, 1, 28, 28})}},
        {});
  };
  EXPECT_EQ(model.forward(pair(3, 3)).front().size(0), 3);
  EXPECT_THROW((void)model.forward(pair(3, 2)), ShapeError);
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

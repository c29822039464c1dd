// Tests the description of the model's data in a bundle, from the fit to the prediction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/zoo.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/data/collate.h"
#include "tare/data/image_folder.h"
#include "tare/data/splits.h"
#include "tare/inference/predictor.h"
#include "tare/transform/image.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Bright and dark pictures, which an mlp separates at once.
DatasetPtr shades(int64_t side, std::vector<std::string> labels, bool inverted = false) {
  const auto target = torch::arange(32) % 2;
  const auto level = inverted ? 1 - target : target;
  const auto images = (level.view({32, 1, 1, 1}) * 200 + torch::randint(0, 40, {32, 1, side, side}))
                          .to(torch::kUInt8);
  return tensor_dataset(images, target, std::move(labels));
}

Splits both(const DatasetPtr& data) { return {.train = data, .valid = data}; }

Model shade_model(int64_t side) {
  torch::manual_seed(3);
  return models::make("convnet", {.classes = 2, .sample_shape = {1, side, side}, .width = 4});
}

TEST(Export, DescribesTheDataOfTheCheckpointWhoseWeightsWereLoaded) {
  const TempDir folder;
  const Transforms first{Normalise{{0.5}, {0.5}}};
  const std::vector<std::string> labels{" \"dark\": #1\n", "hell-ö"};
  // Saves inside a fit, where the fit has not ended.
  class SaveInside final : public Callback {
   public:
    [[nodiscard]] std::string name() const override { return "save_inside"; }
    Action after_epoch(FitContext& context) override {
      context.learner.save("inside");
      return Action::proceed;
    }
  };
  Learner learner(shade_model(8), both(transformed(shades(8, labels), first)), quiet(folder));
  learner.save("untrained");
  learner.fit(1, {.callbacks = {std::make_shared<SaveInside>()}});
  learner.save("after");
  const Splits others = both(transformed(shades(8, {"white", "black"}, true), Transforms{}));
  learner.set_data(others, 16);
  learner.fit(1);
  for (const char* name : {"inside", "after"}) {
    learner.load(name);
    learner.export_to(folder / "a.tare");
    const BundleManifest m = open_bundle(folder / "a.tare").manifest();
    EXPECT_EQ(m.labels, labels) << name;
    EXPECT_EQ(m.transforms, first) << name;
  }
  learner.load("untrained");
  learner.export_to(folder / "a.tare");
  EXPECT_THAT(open_bundle(folder / "a.tare").manifest().labels, ElementsAre("white", "black"));
}

TEST(Export, DescribesTheDataThatTheModelWasLastTrainedOn) {
  const TempDir folder;
  const Transforms first{Normalise{{0.5}, {0.5}}}, second{Resize{12, 12}, Normalise{{0.1}, {0.9}}};
  Learner learner(shade_model(8), both(transformed(shades(8, {"dark", "bright"}), first)),
                  quiet(folder));
  learner.fit(1);
  learner.export_to(folder / "first.tare", {.destroy = true});

  auto again = load_learner(folder / "first.tare", {.device = test_device(), .batch = 16});
  again->export_to(folder / "same.tare");
  again->set_data(both(transformed(shades(16, {"white", "black"}, true), second)), 16);
  again->export_to(folder / "before.tare");
  again->fit(2, {.lr = 0.05});
  again->export_to(folder / "second.tare");

  for (const char* name : {"same.tare", "before.tare"}) {
    const BundleManifest m = open_bundle(folder / name).manifest();
    EXPECT_EQ(m.transforms, first) << name;
    EXPECT_THAT(m.labels, ElementsAre("dark", "bright")) << name;
    EXPECT_THAT(m.sample_shape, ElementsAre(1, 8, 8)) << name;
  }
  Predictor predictor(folder / "second.tare");
  EXPECT_EQ(predictor.manifest().transforms, second);
  EXPECT_THAT(predictor.manifest().labels, ElementsAre("white", "black"));
  EXPECT_THAT(predictor.sample_shape(), ElementsAre(1, 12, 12));
  const auto seen = again->get_preds(Split::valid).outputs;
  const auto raw = shades(16, {}, true);
  again->set_data({}, 16);
  again->export_to(folder / "freed.tare");
  EXPECT_EQ(open_bundle(folder / "freed.tare").manifest().transforms, second);
  again->set_data(both(transformed(raw, Transforms{Resize{4, 4}})), 16);
  EXPECT_THROW(again->fit(1, {.callbacks = {nullptr}}), ConfigError);
  again->export_to(folder / "failed.tare");
  EXPECT_EQ(open_bundle(folder / "failed.tare").manifest().transforms, second)
      << "no step was taken";
  EXPECT_EQ(seen.size(1), 2);
}

class EveryModel : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryModel, PredictsFromItsBundleWhatTheLearnerPredicts) {
  const TempDir folder;
  const Zoo zoo(GetParam());
  const DatasetPtr data = zoo.set(24, 5);
  Learner learner(zoo.model(), both(data), zoo.options(folder));
  learner.fit(1);
  learner.export_to(folder / "net.tare");
  Predictor predictor(folder / "net.tare");
  std::vector<int64_t> indices(24);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
  const auto inputs = data->get({indices}).input();
  EXPECT_EQ(predictor.manifest().input, zoo.is("gpt") ? "int64" : "float32");
  EXPECT_LT((predictor.predict(inputs) - learner.get_preds().outputs).abs().max().item<float>(),
            1e-5);
  auto loaded = load_learner(folder / "net.tare", {.test = data, .device = test_device()});
  EXPECT_TRUE(torch::allclose(loaded->get_preds(Split::test).outputs, learner.get_preds().outputs));
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, ::testing::Values("mlp", "resnet9", "gpt"));

/// The families whose models take one input, but for that whose layers stand in a file.
std::vector<std::string> families_of_one_input() {
  std::vector<std::string> names = models::names();
  std::erase(names, "torchscript");
  std::erase_if(names, [](const auto& name) { return !models::make(name).takes(1); });
  return names;
}

class EveryFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFamily, PredictsFromABundleThatWasNeverTrained) {
  const TempDir folder;
  const models::Family& family = models::family(GetParam());
  ModelOptions options{.classes = 4};
  for (const auto& field : family.options) {
    if (field == "width") options.width = 8;
    if (field == "layers") options.layers = 1;
    if (field == "heads") options.heads = 2;
  }
  const bool is_sequence = family.tokens || family.vocabulary > 0;
  options.sample_shape = family.sample_shape.size() == 1
                             ? std::vector<int64_t>{16}
                             : std::vector<int64_t>{family.sample_shape.at(0), 32, 32};
  Learner learner(models::make(family.name, options), {}, quiet(folder));
  learner.export_to(folder / "net.tare");
  Predictor predictor(folder / "net.tare");
  std::vector<int64_t> shape = options.sample_shape;
  shape.insert(shape.begin(), 2);
  const auto output =
      predictor.predict(is_sequence ? torch::randint(4, shape) : torch::rand(shape));
  EXPECT_EQ(output.size(1), 4);
  if (family.name == "unet") {
    EXPECT_EQ(output.sizes(), c10::IntArrayRef({2, 4, 32, 32}));
    return;  // it has no scores of classes for a whole image
  }
  EXPECT_FALSE(predictor.classes(output.narrow(0, 0, 1), 4).empty());
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryFamily, ::testing::ValuesIn(families_of_one_input()),
                         [](const auto& param) { return param.param; });

TEST(Export, RefusesLabelsThatAreNotAsManyAsTheOutputs) {
  const TempDir folder;
  const DatasetPtr data = shades(8, {});
  Learner learner(shade_model(8), both(transformed(data, {})), quiet(folder));
  const auto refusal = [&](Learner& l, std::vector<std::string> labels) {
    return outcome_of([&] { l.export_to(folder / "net.tare", {.labels = std::move(labels)}); });
  };
  EXPECT_THAT(refusal(learner, {"dark"}),
              HasSubstr("[learner.export_to] labels must be a name for each output of the model, "
                        "got 1; allowed: 2 names"));
  EXPECT_THAT(refusal(learner, {"dark", "bright", "grey"}), HasSubstr("got 3; allowed: 2 names"));
  EXPECT_THAT(refusal(learner, {"dark", "dark"}),
              HasSubstr("labels must differ from one another, got 'dark' twice"));
  EXPECT_FALSE(std::filesystem::exists(folder / "net.tare"));
  learner.export_to(folder / "net.tare", {.labels = {"dark", "bright"}});
  EXPECT_THAT(open_bundle(folder / "net.tare").manifest().labels, ElementsAre("dark", "bright"));

  // The outputs of a module that is not in the registry are known from a batch on.
  Learner own(make_net(), split_points(), quiet(folder));
  own.fit(1);
  EXPECT_THAT(refusal(own, {"a", "b"}), HasSubstr("got 2; allowed: 3 names"));
  own.export_to(folder / "own.tare", {.labels = {"a", "b", "c"}});
}

TEST(Export, MeasuresRoundedWeightsOverTheValidationSplit) {
  const TempDir folder;
  Learner learner(shade_model(8), both(transformed(shades(8, {}), {})), quiet(folder));
  learner.fit(1);
  const double trained = learner.validate().loss;
  const auto loss_in = [](const std::vector<BundleMetric>& figures) {
    const auto found = std::ranges::find(figures, "valid_loss", &BundleMetric::name);
    return found == figures.end() ? -1 : found->value;
  };
  for (const char* weights : {"bf16", "fp16", "fp8", "int8"}) {
    learner.export_to(folder / "small.tare", {.weights = weights});
    const BundleManifest manifest = open_bundle(folder / "small.tare").manifest();
    EXPECT_EQ(manifest.weights, weights);
    EXPECT_EQ(loss_in(manifest.trained_metrics), trained) << weights;
    const auto again = load_learner(folder / "small.tare", {.test = learner.data().valid});
    EXPECT_NEAR(loss_in(manifest.metrics), again->validate(Split::test).loss, 1e-6) << weights;
    EXPECT_EQ(learner.validate().loss, trained) << "the model is as it was";
  }
  std::filesystem::remove(folder / "small.tare");
  EXPECT_THAT(outcome_of([&] {
                learner.export_to(folder / "small.tare", {.weights = "fp8", .tolerance = 0});
              }),
              HasSubstr("is exceeded: the weights as fp8 have the valid_loss"));
  EXPECT_FALSE(std::filesystem::exists(folder / "small.tare"));
  learner.export_to(folder / "small.tare", {.weights = "fp8", .tolerance = 0.5});
  EXPECT_THAT(outcome_of([&] { learner.export_to(folder / "a.tare", {.tolerance = 0.5}); }),
              HasSubstr("is for bundles of rounded weights"));
  EXPECT_THAT(outcome_of([&] {
                learner.export_to(folder / "a.tare", {.weights = "int8", .tolerance = -1});
              }),
              HasSubstr("is no share"));
}

TEST(Export, FoldsBatchNormsOnlyInFilesWithAGraph) {
  const TempDir folder;
  Learner learner(shade_model(8), both(transformed(shades(8, {}), {})), quiet(folder));
  for (const auto& [format, why] :
       {std::pair("tare", "a bundle has none"), std::pair("safetensors", "safetensors has none")})
    EXPECT_THAT(outcome_of([&, target = format] {
                  learner.export_to(folder / "net", {.format = target, .fold_norms = true});
                }),
                HasSubstr(why));
  EXPECT_FALSE(std::filesystem::exists(folder / "net"));
  learner.export_to(folder / "net", {.format = "onnx", .fold_norms = true});
}

TEST(Export, TakesTwoLabelsForOneOutputOfBce) {
  const TempDir folder;
  const DatasetPtr data = shades(8, {});
  LearnerOptions options = quiet(folder);
  options.loss = "bce_with_logits";
  Learner learner(models::make("convnet", {.classes = 1, .sample_shape = {1, 8, 8}, .width = 4}),
                  both(transformed(data, {})), options);
  learner.fit(1);
  learner.export_to(folder / "net.tare", {.labels = {"dark", "bright"}});
  Predictor predictor(folder / "net.tare");
  const auto both_classes = predictor.classes(predictor.predict(torch::zeros({1, 1, 8, 8})), 2);
  ASSERT_EQ(both_classes.size(), 2U);
  EXPECT_NEAR(both_classes[0].probability + both_classes[1].probability, 1, 1e-6);
  EXPECT_NE(both_classes[0].label, both_classes[1].label);
}

TEST(Export, WithoutDataAModelOfSeveralInputsIsRefused) {
  const TempDir folder;
  Learner learner(models::make("lstm"), {}, quiet(folder));
  EXPECT_THAT(outcome_of([&] { learner.export_to(folder / "net.tare"); }),
              HasSubstr("the model takes several inputs"));
  EXPECT_FALSE(std::filesystem::exists(folder / "net.tare"));
}

TEST(LoadLearner, AppliesTheBundlesTransformsOrRefusesOthers) {
  const TempDir folder;
  const Transforms own{Resize{8, 8}, Normalise{{0.45}, {0.2}}};
  const DatasetPtr raw = shades(16, {"dark", "bright"});
  Learner learner(shade_model(8), both(transformed(raw, own)), quiet(folder));
  learner.fit(4, {.lr = 0.05});
  const double expected = learner.validate().loss;
  learner.export_to(folder / "net.tare");
  const auto loss = [&](const DatasetPtr& test) {
    return load_learner(folder / "net.tare", {.test = test, .device = test_device(), .batch = 16})
        ->validate(Split::test)
        .loss;
  };
  EXPECT_EQ(loss(raw), expected);
  EXPECT_EQ(loss(transformed(raw, own)), expected);
  EXPECT_EQ(loss(transformed(raw, {Resize{8, 8}})), expected) << "the rest is applied";
  EXPECT_EQ(loss(transformed(raw, {Flip{}})), expected) << "random steps act in training only";
  EXPECT_EQ(loss(transformed(raw, {Flip{}, Resize{8, 8}, Normalise{{0.45}, {0.2}}})), expected);
  const std::string refused = outcome_of([&] {
    (void)loss(transformed(raw, {Normalise{{0.9}, {0.1}}}));
  });
  EXPECT_THAT(refused, HasSubstr("[load_learner] the data set has other transforms"));
  EXPECT_THAT(refused,
              HasSubstr("normalise {mean: [0.9], std: [0.1]}, the bundle: resize {height: 8"));
}

TEST(LoadLearner, ConvertsImagesOfBytesForABundleWithoutTransforms) {
  const TempDir folder;
  const DatasetPtr raw = shades(8, {"dark", "bright"});
  Learner learner(shade_model(8), both(transformed(raw, {})), quiet(folder));
  learner.fit(1);
  learner.export_to(folder / "net.tare");
  const auto preds = [&](const DatasetPtr& test) {
    return load_learner(folder / "net.tare", {.test = test, .device = test_device(), .batch = 16})
        ->get_preds(Split::test)
        .outputs;
  };
  const auto expected = learner.get_preds().outputs;
  EXPECT_TRUE(torch::equal(preds(raw), expected));
  EXPECT_TRUE(torch::equal(preds(subset(raw, {0, 1})), expected.slice(0, 0, 2)));
  EXPECT_TRUE(torch::equal(preds(transformed(raw, {})), expected));
}

TEST(Export, KnowsTheSizeThatAFolderOfPicturesWasReadWith) {
  const TempDir folder;
  io::make_directories(folder / "a");
  io::make_directories(folder / "b");
  for (int i = 0; i < 4; ++i) {
    const std::string name = std::to_string(i) + ".png";
    write_png(folder / "a" / name, torch::randint(0, 128, {1, 20, 24}).to(torch::kUInt8));
    write_png(folder / "b" / name, torch::randint(128, 256, {1, 30, 24}).to(torch::kUInt8));
  }
  const auto pictures = [&](const std::filesystem::path& path) {
    return image_folder(path, {.height = 16, .width = 16});
  };
  const DatasetPtr data =
      transformed(pictures(folder.path()), {Resize{8, 8}, Normalise{{0.5}, {0.2}}});
  LearnerOptions options = quiet(folder);
  options.batch = 4;
  Learner learner(shade_model(8), both(data), options);
  learner.fit(1);
  const auto expected = learner.get_preds().outputs;
  learner.export_to(folder / "net.tare");
  Predictor predictor(folder / "net.tare");
  const auto last = predictor.classify(folder / "b/3.png", 2);
  for (const auto& prediction : last)
    EXPECT_NEAR(prediction.probability, expected[7][prediction.index].item<double>(), 1e-5);
  // The folder as test data: without labels, read with that size or with the model's own.
  auto loaded = load_learner(folder / "net.tare",
                             {.test = pictures(folder / "b"), .device = test_device(), .batch = 4});
  const Predictions preds = loaded->get_preds(Split::test);
  EXPECT_FALSE(preds.targets.defined());
  EXPECT_TRUE(torch::allclose(preds.outputs, expected.slice(0, 4), 1e-5, 1e-5));
  EXPECT_THAT(outcome_of([&] { (void)loaded->validate(Split::test); }),
              HasSubstr("target no tensor"));
}

TEST(Export, RefusesDataThatNoBundleCanDescribe) {
  const TempDir folder;
  const DatasetPtr raw = shades(8, {});
  const auto halve = [](Batch batch) {
    batch.set_input(batch.input().to(torch::kFloat) / 510);
    return batch;
  };
  Learner learner(shade_model(8), both(map(raw, halve)), quiet(folder));
  EXPECT_THAT(outcome_of([&] { learner.check_export(); }),
              HasSubstr("[learner.check_export] not possible: with data that went through map()"));
  learner.fit(1);
  EXPECT_THAT(outcome_of([&] { learner.export_to(folder / "net.tare"); }),
              HasSubstr("give map() the transforms"));
  EXPECT_FALSE(std::filesystem::exists(folder / "net.tare"));

  learner.set_data(both(map(raw, halve, {}, Transforms{Normalise{{0}, {2}}})), 16);
  EXPECT_NO_THROW(learner.check_export());
  learner.fit(1);
  const auto expected = learner.get_preds().outputs;
  learner.export_to(folder / "net.tare");
  const std::vector<int64_t> first{0, 1};
  EXPECT_TRUE(torch::allclose(Predictor(folder / "net.tare").predict(raw->get({first}).input()),
                              expected.slice(0, 0, 2), 1e-5, 1e-5));
  // Random changes of the training split alone leave a validation split that says what is done.
  learner.set_data({.train = map(raw, halve), .valid = transformed(raw, {Normalise{{0}, {2}}})},
                   16);
  EXPECT_NO_THROW(learner.check_export());
}

TEST(Export, ALossFunctionsActivationMakesProbabilities) {
  const TempDir folder;
  const LossFunction own = [](const at::Tensor& out, const at::Tensor& y) {
    return torch::cross_entropy_loss(out, y);
  };
  LearnerOptions options = quiet(folder);
  options.loss = {own, "softmax"};
  Learner learner(models::make("mlp", {.classes = kClasses, .sample_shape = {kFeatures}}),
                  split_points(), options);
  learner.fit(1);
  learner.export_to(folder / "net.tare");
  const std::vector<int64_t> first{0, 1, 2};
  const auto inputs = points(30, 12)->get({first}).input();
  const auto output = Predictor(folder / "net.tare").predict(inputs);
  EXPECT_TRUE(torch::allclose(output.sum(1), torch::ones({3})));
  EXPECT_TRUE(torch::allclose(output, learner.get_preds().outputs.slice(0, 0, 3)));
  for (const auto& loss : {std::optional<Loss>(), std::optional<Loss>(own)}) {
    auto loaded = load_learner(folder / "net.tare",
                               {.test = points(30, 12), .loss = loss, .device = test_device()});
    EXPECT_TRUE(
        torch::allclose(loaded->get_preds(Split::test).outputs, learner.get_preds().outputs));
    loaded->export_to(folder / "again.tare");
    EXPECT_EQ(open_bundle(folder / "again.tare").manifest().activation, "softmax");
  }
}

/// Takes two inputs: it has no forward of one tensor.
struct PairNetImpl : torch::nn::Module {
  PairNetImpl() {
    left = register_module("left", torch::nn::Linear(kFeatures, 4));
    head = register_module("head", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& a, const torch::Tensor& b) {
    return head(torch::relu(torch::cat({left(a), left(b)}, 1)));
  }
  torch::nn::Linear left{nullptr}, head{nullptr};
};
TORCH_MODULE(PairNet);

/// Gives the mean of the steps of each sequence [length, features], without padding.
struct SequenceNetImpl : torch::nn::Module {
  SequenceNetImpl() {
    step = register_module("step", torch::nn::Linear(kFeatures, 8));
    head = register_module("head", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& steps, const torch::Tensor& lengths) {
    const auto there = torch::arange(steps.size(1), steps.device()) < lengths.unsqueeze(1);
    const auto seen = torch::relu(step(steps)) * there.unsqueeze(2);
    return head(seen.sum(1) / lengths.unsqueeze(1));
  }
  torch::nn::Linear step{nullptr}, head{nullptr};
};
TORCH_MODULE(SequenceNet);

DatasetPtr sequences(std::vector<int64_t> lengths) {
  std::vector<Batch> samples;
  for (const int64_t length : lengths)
    samples.push_back({torch::randn({length, kFeatures}), torch::tensor(length % kClasses)});
  return sample_dataset(std::move(samples), pad());
}

class PaddedSequences : public ::testing::Test {
 protected:
  PaddedSequences() {
    torch::manual_seed(5);
    Learner learner(SequenceNet(), splits_, quiet(folder_));
    learner.fit(1);
    expected_ = learner.get_preds().outputs;
    learner.save("after");
    learner.export_to(file_);
  }

  TempDir folder_;
  std::filesystem::path file_ = folder_ / "net.tare";
  const Splits splits_{.train = sequences({2, 5, 9, 3, 5, 5, 7, 2, 2, 4, 6, 8, 2, 3, 9, 9}),
                       .valid = sequences({4, 4, 6})};
  at::Tensor expected_;
};

TEST_F(PaddedSequences, ArePredictedInEveryLengthFromTheirBundle) {
  const BundleManifest manifest = open_bundle(file_).manifest();
  EXPECT_THAT(manifest.any_size, ElementsAre(0));
  Predictor predictor(file_, Model(SequenceNet()));
  for (int64_t i = 0; i < 3; ++i) {
    const Batch one = splits_.valid->get({{&i, 1}});
    EXPECT_TRUE(torch::allclose(predictor.predict(one).front()[0], expected_[i], 1e-5, 1e-6));
  }
  const auto lengths = torch::tensor({int64_t{1}});
  for (const int64_t length : {1, 3, 40})
    EXPECT_EQ(
        predictor
            .predict({{{"input", torch::randn({1, length, kFeatures})}, {"lengths", lengths}}, {}})
            .front()
            .size(1),
        kClasses);
  const auto refused = [&](const at::Tensor& steps) {
    return outcome_of([&] {
      (void)predictor.predict({{{"input", steps}, {"lengths", lengths}}, {}});
    });
  };
  const std::string features = std::to_string(kFeatures);
  EXPECT_THAT(refused(torch::randn({1, 4, kFeatures + 1})),
              HasSubstr("[batch, any size, " + features + "] after the transforms"));
  EXPECT_THAT(refused(torch::randn({1, 0, kFeatures})), HasSubstr("any size"));
}

TEST_F(PaddedSequences, AreTestDataOfALoadedLearner) {
  auto loaded = load_learner(file_, Model(SequenceNet()),
                             {.test = sequences({1, 12, 4}), .device = test_device()});
  EXPECT_EQ(loaded->get_preds(Split::test).outputs.size(0), 3);
  loaded->export_to(folder_ / "again.tare");
  EXPECT_THAT(open_bundle(folder_ / "again.tare").manifest().any_size, ElementsAre(0));
}

TEST_F(PaddedSequences, AreDescribedByACheckpointToo) {
  Learner learner(SequenceNet(), {}, quiet(folder_));
  learner.load("after");
  learner.export_to(folder_ / "loaded.tare");
  EXPECT_THAT(open_bundle(folder_ / "loaded.tare").manifest().any_size, ElementsAre(0));
}

TEST_F(PaddedSequences, WithAMaskHaveTwoInputsOfAnySize) {
  std::vector<Batch> samples{{torch::randn({2, 3}), torch::tensor(0)},
                             {torch::randn({4, 3}), torch::tensor(1)}};
  const DatasetPtr data = sample_dataset(std::move(samples), pad({.with = "mask"}));
  Learner learner(SequenceNet(), both(data), quiet(folder_));
  learner.export_to(folder_ / "mask.tare");
  const BundleManifest manifest = open_bundle(folder_ / "mask.tare").manifest();
  EXPECT_THAT(manifest.any_size, ElementsAre(0));
  EXPECT_THAT(manifest.more_inputs.front().any_size, ElementsAre(0));
}

TEST_F(PaddedSequences, OfOneLengthKeepIt) {
  Learner learner(SequenceNet(), both(sequences({4, 4, 4, 4})), quiet(folder_));
  learner.export_to(folder_ / "one.tare");
  EXPECT_TRUE(open_bundle(folder_ / "one.tare").manifest().any_size.empty());
}

TEST(Export, SplitsOfDifferentSizesLeaveTheSizeOpen) {
  const TempDir folder;
  Learner learner(
      shade_model(8),
      {.train = transformed(shades(8, {}), {}), .valid = transformed(shades(16, {}), {})},
      quiet(folder));
  learner.export_to(folder / "net.tare");
  EXPECT_THAT(open_bundle(folder / "net.tare").manifest().any_size, ElementsAre(1, 2));
}

TEST(Export, HasTheMetricsAndNoOtherColumns) {
  struct Speed final : Callback {
    [[nodiscard]] std::string name() const override { return "speed"; }
    Action after_epoch(FitContext& c) override {
      c.row.metrics.push_back({"speed", 1});
      return Action::proceed;
    }
  };
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.callbacks = {std::make_shared<Speed>()};
  Learner learner(make_net(), split_points(), options);
  learner.fit(1);
  learner.export_to(folder / "net.tare");
  std::vector<std::string> names;
  const Bundle bundle = open_bundle(folder / "net.tare");
  for (const auto& metric : bundle.manifest().metrics) names.push_back(metric.name);
  EXPECT_THAT(names, ::testing::ElementsAre("valid_loss", "accuracy"));
}

TEST(Export, KeepsTheOptionsOfMetrics) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.metrics = {"accuracy", Metric("top_k", TopKOptions{.k = 2})};
  const Splits data = split_points();
  Learner learner(models::make("mlp", {.classes = kClasses, .sample_shape = {kFeatures}}), data,
                  options);
  learner.fit(1);
  const double value = learner.validate(Split::test).metrics.at(1).value;
  learner.export_to(folder / "net.tare");
  EXPECT_EQ(open_bundle(folder / "net.tare").manifest().metrics.at(2).metric, "{top_k: {k: 2}}");
  EXPECT_EQ(open_bundle(folder / "net.tare").manifest().metrics.at(1).metric, "");
  const auto opened =
      load_learner(folder / "net.tare", {.test = data.test, .device = test_device()});
  const auto metrics = opened->validate(Split::test).metrics;
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics.at(1).name, "top_k");
  EXPECT_NEAR(metrics.at(1).value, value, 1e-6);
}

TEST(Export, AModelOfTwoInputsPredictsByTheTasksFunction) {
  const TempDir folder;
  const auto predict = [](Model& model, const at::Tensor& input) {
    return model.as<PairNetImpl>().forward(input.select(1, 0), input.select(1, 1));
  };
  LearnerOptions options = quiet(folder);
  options.task.predict = [predict](Model& model, const Batch& batch) {
    return predict(model, batch.input());
  };
  options.task.step = [predict](Model& model, const Batch& batch) -> StepResult {
    const auto output = predict(model, batch.input());
    return {torch::cross_entropy_loss(output, batch.target()), output};
  };
  torch::manual_seed(1);
  const auto inputs = torch::randn({32, 2, kFeatures});
  const DatasetPtr data = tensor_dataset(inputs, torch::arange(32) % kClasses);
  Learner learner(PairNet(), both(data), options);
  learner.fit(1);
  learner.export_to(folder / "pair.tare");
  EXPECT_THAT(
      outcome_of([&] { (void)Predictor(folder / "pair.tare", Model(PairNet())).predict(inputs); }),
      HasSubstr("a batch of 2 inputs"));
  EXPECT_THAT(outcome_of([&] {
                Predictor(folder / "pair.tare", Model(PairNet().ptr(), Model::Forward()));
              }),
              HasSubstr("give PredictorOptions::forward"));
  Predictor predictor(folder / "pair.tare", Model(PairNet()), {.forward = options.task.predict});
  const auto expected = learner.get_preds().outputs;
  EXPECT_TRUE(torch::allclose(predictor.predict(inputs), expected));
  EXPECT_THROW((void)predictor.predict(torch::randn({4, kFeatures})), ShapeError);
  auto loaded = load_learner(folder / "pair.tare", Model(PairNet()),
                             {.test = data, .device = test_device(), .task = options.task});
  EXPECT_TRUE(torch::allclose(loaded->get_preds(Split::test).outputs, expected));
  EXPECT_GT(loaded->validate(Split::test).loss, 0);
}

}  // namespace
}  // namespace tare::testing

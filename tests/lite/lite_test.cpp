// The engine without LibTorch against the Predictor, for each family, storage and kind of input.
#include "tare/lite/lite.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/checkpoint/manifest.h"
#include "tare/inference/predictor.h"
#include "tare/lite/classes.h"
#include "tare/model/coded_weight.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr double kRelative = 1e-5;  // to the largest number of an output

/// Gives batch norm statistics that change what it does; the ones of a new model are 0 and 1.
void disturb(const Model& model) {
  const c10::AutoGradMode no_grad(false);
  for (const NamedTensor& buffer : model.buffers()) {
    at::Tensor tensor = buffer.tensor;
    if (buffer.name.ends_with("running_mean")) tensor.normal_(0, 0.2);
    if (buffer.name.ends_with("running_var")) tensor.uniform_(0.5, 2);
  }
  for (const Parameter& parameter : model.parameters()) {
    at::Tensor tensor = parameter.tensor;
    if (tensor.dim() == 1) tensor.add_(at::randn(tensor.sizes()).mul_(0.1));
  }
}

std::filesystem::path written(const std::filesystem::path& path, const std::string& family,
                              const ModelOptions& options, BundleManifest manifest,
                              const std::string& storage = "as_is") {
  const Model model = models::make(family, options);
  disturb(model);
  manifest.model = *model.spec();
  manifest.weights = storage;
  std::vector<std::string> parameters;
  for (const Parameter& parameter : model.parameters()) parameters.push_back(parameter.name);
  std::vector<NamedTensor> tensors = stored_state(model);
  if (storage == "fp8") tensors = as_fp8(tensors, parameters);
  if (storage == "int8") tensors = as_int8(tensors, parameters);
  if (storage == "bf16") tensors = as_16_bits(tensors, parameters, c10::kBFloat16);
  if (storage == "fp16") tensors = as_16_bits(tensors, parameters, c10::kHalf);
  write_bundle(path, manifest, tensors);
  return path;
}

lite::Input input_of(const at::Tensor& tensor) {
  lite::Input input{.shape = tensor.sizes().vec()};
  if (tensor.scalar_type() == at::kFloat) input.numbers = tensor.const_data_ptr<float>();
  if (tensor.scalar_type() == at::kByte) input.bytes = tensor.const_data_ptr<uint8_t>();
  if (tensor.scalar_type() == at::kLong) input.tokens = tensor.const_data_ptr<int64_t>();
  return input;
}

void expect_near(const lite::Output& output, const at::Tensor& expected, const std::string& what) {
  ASSERT_EQ(c10::IntArrayRef(output.shape), expected.sizes()) << what;
  const at::Tensor all = expected.contiguous();
  const float* numbers = all.const_data_ptr<float>();
  const double most = all.abs().max().item<double>();
  ASSERT_GT(most, 0) << what;
  for (size_t i = 0; i < output.values.size(); ++i)
    ASSERT_NEAR(output.values[i], numbers[i], most * kRelative) << what << " at " << i;
}

void expect_equal_predictions(const std::filesystem::path& path,
                              const std::vector<at::Tensor>& inputs) {
  Predictor predictor(path);
  for (const int64_t threads : {1, 2}) {
    lite::Model model(path, {.threads = threads});
    for (const at::Tensor& input : inputs)
      expect_near(
          model.predict(input_of(input)), predictor.predict(input),
          path.filename().string() + " on " + input.toString() + " " + c10::str(input.sizes()));
  }
}

class StorageTest : public ::testing::TestWithParam<const char*> {
 protected:
  const TempDir folder;
  const std::string storage = GetParam();
};

TEST_P(StorageTest, PredictsAsThePredictorByAnMlp) {
  const auto path =
      written(folder / "mlp.tare", "mlp",
              {.classes = 7, .sample_shape = {3, 5, 4}, .weights = "", .hidden = {300, 20}},
              {.sample_shape = {3, 5, 4}, .activation = "softmax"}, storage);
  expect_equal_predictions(path, {at::rand({1, 3, 5, 4}), at::rand({9, 3, 5, 4}),
                                  at::randint(256, {2, 3, 5, 4}, at::kByte)});
}

TEST_P(StorageTest, PredictsAsThePredictorByAResNet9OfAnySize) {
  const auto path = written(folder / "resnet9.tare", "resnet9",
                            {.classes = 5, .sample_shape = {1, 28, 28}, .weights = "", .width = 7},
                            {.sample_shape = {1, 28, 28}, .activation = "exp"}, storage);
  expect_equal_predictions(path, {at::rand({1, 1, 28, 28}), at::rand({3, 1, 28, 28})});
}

TEST_P(StorageTest, PredictsAsThePredictorByAGpt) {
  const auto path = written(
      folder / "gpt.tare", "gpt",
      {.classes = 50, .sample_shape = {40}, .weights = "", .width = 48, .layers = 2, .heads = 4},
      {.sample_shape = {40}, .input = "int64", .activation = "softmax"}, storage);
  expect_equal_predictions(path,
                           {at::randint(50, {1, 40}, at::kLong), at::randint(50, {2, 1}, at::kLong),
                            at::randint(50, {3, 27}, at::kLong)});
}

INSTANTIATE_TEST_SUITE_P(Each, StorageTest,
                         ::testing::Values("as_is", "bf16", "fp16", "fp8", "int8"),
                         [](const auto& of) { return std::string(of.param); });

TEST(LiteModelTest, PredictsAsThePredictorByTheResNets) {
  const TempDir folder;
  for (const char* family : {"resnet18", "resnet34", "resnet50"}) {
    const auto path =
        written(folder / (std::string(family) + ".tare"), family,
                {.classes = 11, .sample_shape = {3, 50, 41}, .weights = "", .width = 9},
                {.sample_shape = {3, 50, 41}, .activation = "softmax"});
    expect_equal_predictions(path, {at::rand({1, 3, 50, 41}), at::rand({2, 3, 50, 41})});
  }
}

TEST(LiteModelTest, PredictsAsThePredictorWithEveryActivation) {
  const TempDir folder;
  for (const char* activation : {"softmax", "exp", "sigmoid", "none"}) {
    const auto path = written(folder / (std::string(activation) + ".tare"), "mlp",
                              {.classes = 33, .sample_shape = {6}, .weights = "", .hidden = {8}},
                              {.sample_shape = {6}, .activation = activation});
    expect_equal_predictions(path, {at::randn({5, 6}).mul_(10)});
  }
}

TEST(LiteModelTest, TransformsAsThePredictorToTheBit) {
  const TempDir folder;
  const Normalise three{.mean = {0.1, 0.5, 0.7}, .std = {0.2, 0.3, 0.9}},
      one{.mean = {0.5}, .std = {2}};
  const std::vector<Transforms> all{
      {},
      {three},
      {one, three},
      {Resize{.height = 12, .width = 10}},
      {Resize{.height = 12, .width = 10, .round = true}, three},
      {Resize{.height = 30, .width = 17, .antialias = false}, Resize{.height = 12, .width = 10},
       one},
      {three, Resize{.height = 12, .width = 10, .fit = "crop"}},
      {Resize{.height = 12, .width = 10, .round = true, .fit = "pad"}, one}};
  for (const Transforms& transforms : all) {
    const auto path =
        written(folder / "one.tare", "mlp",
                {.classes = 3, .sample_shape = {3, 12, 10}, .weights = "", .hidden = {8}},
                {.sample_shape = {3, 12, 10}, .transforms = transforms});
    const lite::Bundle bundle(path);
    const lite::Preparation preparation(bundle);
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{12, 10}, {40, 31}, {5, 9}}) {
      const at::Tensor pixels = at::randint(256, {1, 3, height, width}, at::kByte);
      const at::Tensor expected = transforms.apply(pixels, {}, false);
      const lite::Planes planes = preparation(pixels.const_data_ptr<uint8_t>(), 3, height, width);
      ASSERT_EQ(planes.pixels() * 3, expected.numel());
      EXPECT_EQ(
          std::memcmp(planes.values.get(), expected.const_data_ptr<float>(), expected.nbytes()), 0)
          << transforms.steps().size() << " transforms on " << height << " x " << width;
    }
  }
}

TEST(LiteModelTest, FitsPicturesAsThePredictor) {
  const TempDir folder;
  const auto path =
      written(folder / "one.tare", "mlp",
              {.classes = 3, .sample_shape = {3, 12, 10}, .weights = "", .hidden = {8}},
              {.sample_shape = {3, 12, 10},
               .transforms = Transforms{Normalise{{0.5}, {0.5}}},
               .labels = {"a", "b", "c"},
               .activation = "softmax"});
  const at::Tensor pixels = at::randint(256, {3, 37, 20}, at::kByte);
  write_png(folder / "one.png", pixels);
  Predictor predictor(path);
  lite::Model model(path);
  const lite::BytePlanes planes = model.picture_input(read_picture(folder / "one.png", 3));
  const at::Tensor expected = predictor.picture_input(pixels);
  ASSERT_EQ(expected.numel(), static_cast<int64_t>(planes.bytes.size()));
  EXPECT_EQ(
      std::memcmp(planes.bytes.data(), expected.const_data_ptr<uint8_t>(), planes.bytes.size()), 0);
  const lite::Output output = model.predict(
      {.shape = {1, planes.channels, planes.height, planes.width}, .bytes = planes.bytes.data()});
  const auto named = lite::classes(model, {3}, output.values, 2);
  const auto expected_names = predictor.classify(folder / "one.png", 2);
  ASSERT_EQ(named.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(named[i].label, expected_names[i].label);
    EXPECT_NEAR(named[i].probability, expected_names[i].probability, 1e-6);
  }
}

TEST(LiteModelTest, NamesTheNextTokenOfALanguageModel) {
  const TempDir folder;
  const auto path = written(
      folder / "gpt.tare", "gpt",
      {.classes = 9, .sample_shape = {8}, .weights = "", .width = 16, .layers = 1, .heads = 2},
      {.sample_shape = {8}, .input = "int64", .activation = "softmax"});
  Predictor predictor(path);
  lite::Model model(path);
  const at::Tensor tokens = at::randint(9, {1, 6}, at::kLong);
  const lite::Output output = model.predict(input_of(tokens));
  const std::vector<int64_t> shape{9, 6};
  ASSERT_TRUE(lite::has_classes(model, shape));
  EXPECT_EQ(lite::classes(model, shape, output.values, 3)[0].index,
            predictor.classes(predictor.predict(tokens), 3)[0].index);
}

/// Returns the text of an Unsupported that opening throws; "": none.
std::string refusal_of(const std::filesystem::path& path) {
  try {
    lite::Model model(path);
    return "";
  } catch (const lite::Unsupported& error) {
    return error.what();
  }
}

TEST(LiteModelTest, LeavesOthersToLibTorch) {
  const TempDir folder;
  const ModelOptions tiny{.classes = 3, .sample_shape = {1, 8, 8}, .weights = ""};
  EXPECT_THAT(refusal_of(written(folder / "unet.tare", "unet", tiny, {.sample_shape = {1, 8, 8}})),
              HasSubstr("has no model 'unet'"));
  const ModelOptions rows{.classes = 1, .sample_shape = {1}, .weights = "", .hidden = {4}};
  const RowCoding coding{.columns = {{.name = "age", .mean = 40, .deviation = 10, .missing = 40}}};
  EXPECT_THAT(
      refusal_of(written(folder / "rows.tare", "mlp", rows, {.sample_shape = {1}, .rows = coding})),
      HasSubstr("rows of a table"));
  EXPECT_THAT(refusal_of(written(
                  folder / "two.tare", "mlp", rows,
                  {.sample_shape = {1}, .more_inputs = {{.name = "mask", .sample_shape = {1}}}})),
              HasSubstr("the model has several"));
}

TEST(LiteModelTest, RefusesInputsOfAnotherShape) {
  const TempDir folder;
  const auto mlp = written(folder / "mlp.tare", "mlp",
                           {.classes = 3, .sample_shape = {4}, .weights = "", .hidden = {8}},
                           {.sample_shape = {4}});
  lite::Model model(mlp);
  const std::vector<float> numbers(64, 1);
  const std::vector<int64_t> tokens(64, 1), outside{3, 9};
  EXPECT_THROW((void)model.predict({.shape = {2, 5}, .numbers = numbers.data()}), ShapeError);
  EXPECT_THROW((void)model.predict({.shape = {}, .numbers = numbers.data()}), ShapeError);
  EXPECT_THROW((void)model.predict({.shape = {1, 4}, .tokens = tokens.data()}), ShapeError);
  EXPECT_EQ(model.predict({.shape = {0, 4}, .numbers = numbers.data()}).values.size(), 0U);
  const auto gpt = written(
      folder / "gpt.tare", "gpt",
      {.classes = 9, .sample_shape = {8}, .weights = "", .width = 16, .layers = 1, .heads = 2},
      {.sample_shape = {8}, .input = "int64"});
  lite::Model language(gpt);
  EXPECT_THROW((void)language.predict({.shape = {1, 9}, .tokens = tokens.data()}), ShapeError);
  EXPECT_THROW((void)language.predict({.shape = {1, 2}, .tokens = outside.data()}), ConfigError);
  EXPECT_THROW((void)language.predict({.shape = {1, 4}, .numbers = numbers.data()}), ShapeError);
  EXPECT_THROW(lite::Model(gpt, {.threads = 0}), ConfigError);
}

/// Writes a bundle whose manifest has been changed and sealed again.
void write_changed(const std::filesystem::path& path, const std::string& bundle,
                   const std::function<void(nlohmann::json&)>& change) {
  uint64_t length = 0;
  std::memcpy(&length, bundle.data(), 8);
  auto header = nlohmann::json::parse(bundle.substr(8, length));
  auto manifest = checkpoint::unseal(header["__metadata__"]["tare"].get<std::string>(), "test",
                                     "bundle", "manifest");
  manifest.erase("checksum");
  change(manifest);
  header["__metadata__"]["tare"] = checkpoint::seal(manifest);
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t size = text.size();
  std::ofstream(path, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&size), 8) << text << bundle.substr(8 + length);
}

TEST(LiteModelTest, RefusesSealedManifestsThatDoNotFit) {
  const TempDir folder;
  const auto path =
      written(folder / "one.tare", "mlp",
              {.classes = 3, .sample_shape = {3, 4, 4}, .weights = "", .hidden = {8}},
              {.sample_shape = {3, 4, 4}, .transforms = Transforms{Normalise{{0.5}, {0.5}}}});
  const std::string good = io::read_text(path);
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    write_changed(folder / "bad.tare", good, [&](nlohmann::json& m) { m[key] = value; });
    try {
      lite::Model model(folder / "bad.tare");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("labels", {"a", "b", "c"}), "");
  EXPECT_THAT(refused("version", 9), HasSubstr("version: is 9"));
  EXPECT_THAT(refused("format", "x"), HasSubstr("format: is not tare.bundle"));
  EXPECT_THAT(refused("labels", 7), HasSubstr("labels: is not of the right type"));
  EXPECT_THAT(refused("sample_shape", {"a"}), HasSubstr("sample_shape: is not of the right type"));
  EXPECT_THAT(refused("sample_shape", {3, -4, 4}), HasSubstr("sample_shape: must be sizes"));
  EXPECT_THAT(refused("sample_shape", {3, 99999, 4}), HasSubstr("16,384 pixels a side"));
  EXPECT_THAT(refused("any_size", {7}), HasSubstr("any_size: must be dimensions of sample_shape"));
  EXPECT_THAT(refused("activation", "tanh"), HasSubstr("activation: must be"));
  EXPECT_THAT(refused("transforms", "- blur: {radius: 2}"), HasSubstr("has no transform 'blur'"));
  EXPECT_THAT(refused("transforms", "- normalise: {mean: [1, 2], std: [1, 2]}"),
              HasSubstr("2 means"));
  EXPECT_THAT(refused("transforms", "- normalise: {mean: [1], std: [0]}"), HasSubstr("deviation"));
  EXPECT_THAT(refused("transforms", "- resize: {height: -3, width: 2}"), HasSubstr("height"));
  EXPECT_THAT(refused("transforms", "[["), HasSubstr("transforms"));
  EXPECT_THAT(refused("model", {{"name", "gpt"}, {"options", ""}}),
              HasSubstr("wte.weight: is missing"));
  EXPECT_THAT(refused("input", "float64"), HasSubstr("takes no input of float64"));
}

TEST(LiteModelTest, RefusesDamagedFilesAndLeavesNothingElse) {
  const TempDir folder;
  const auto path = written(
      folder / "one.tare", "resnet9",
      {.classes = 3, .sample_shape = {1, 8, 8}, .weights = "", .width = 2},
      {.sample_shape = {1, 8, 8}, .transforms = Transforms{Normalise{{0.5}, {0.5}}}}, "int8");
  const std::string good = io::read_text(path);
  const std::filesystem::path bad = folder / "bad.tare";
  std::mt19937 bits(1);
  int refused = 0, rounds = 400;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes = good;
    if (i % 3 == 0) bytes.resize(bits() % bytes.size());
    if (!bytes.empty()) bytes[bits() % bytes.size()] ^= static_cast<char>(1 << bits() % 8);
    std::ofstream(bad, std::ios::binary) << bytes;
    try {
      lite::Model model(bad);
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_EQ(refused, rounds);
}

}  // namespace
}  // namespace tare

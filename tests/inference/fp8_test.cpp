// Bundles whose weights are stored as E4M3: bytes, predictions, and files that are refused.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "inference/support.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/manifest.h"
#include "tare/inference/inspect.h"
#include "tare/inference/predictor.h"
#include "tare/memory/backend.h"
#include "tare/model/coded_weight.h"
#include "tare/model/stored.h"

namespace tare {
namespace {

using tare::testing::TempDir;
using ::testing::HasSubstr;

/// Probabilities of the small models here, with weights as they are made, differ by far less; a
/// scale or a row that is taken wrong makes them differ by far more.
constexpr double kTolerance = 0.02;

Model mlp() {
  return models::make("mlp", {.classes = 10, .sample_shape = {1, 28, 28}, .hidden = {256, 128}});
}
Model resnet9() {
  return models::make("resnet9", {.classes = 10, .sample_shape = {1, 28, 28}, .width = 16});
}
Model gpt() {
  return models::make("gpt",
                      {.classes = 64, .sample_shape = {32}, .width = 64, .layers = 2, .heads = 2});
}

struct Case {
  const char* name;
  Model (*make)();
  at::Tensor (*input)();
};

at::Tensor pictures() { return at::rand({3, 1, 28, 28}); }
at::Tensor tokens() { return at::randint(64, {3, 20}, at::kLong); }

class Fp8BundleOf : public ::testing::TestWithParam<Case> {};

/// Counts the bytes of parameters and buffers by their shapes: a byte for each element of a matrix,
/// four for each of its rows; anything else as it is.
int64_t bytes_as_fp8(const Model& model) {
  int64_t bytes = 0;
  for (const auto& p : model.parameters())
    bytes += p.tensor.dim() >= 2 ? p.tensor.numel() + 4 * p.tensor.size(0) : 4 * p.tensor.numel();
  for (const auto& b : model.buffers()) bytes += static_cast<int64_t>(b.tensor.nbytes());
  return bytes;
}

int64_t bytes_of(const Model& model) {
  int64_t bytes = 0;
  for (const auto& t : model.state()) bytes += static_cast<int64_t>(t.tensor.nbytes());
  return bytes;
}

int64_t data_bytes(const std::filesystem::path& path) {
  int64_t bytes = 0;
  const auto file = checkpoint::SafeTensors::open(path);
  for (const auto& t : file.tensors()) bytes += t.bytes;
  return bytes;
}

void write(const std::filesystem::path& path, const Model& model, const std::string& weights) {
  const auto shape = models::family(model.spec()->name).tokens ? std::vector<int64_t>{32}
                                                               : std::vector<int64_t>{1, 28, 28};
  const std::string input = shape.size() == 1 ? "int64" : "float32";
  write_bundle(path,
               {.model = *model.spec(),
                .sample_shape = shape,
                .input = input,
                .transforms = {},
                .activation = "softmax",
                .loss = "cross_entropy",
                .weights = weights},
               state_for(model, weights));
}

TEST_P(Fp8BundleOf, TakesAQuarterOfTheBytesInTheFileAndMapped) {
  const TempDir dir;
  const Model model = GetParam().make();
  write(dir / "full.tare", model, "as_is");
  write(dir / "small.tare", model, "fp8");
  EXPECT_EQ(data_bytes(dir / "full.tare"), bytes_of(model));
  EXPECT_EQ(data_bytes(dir / "small.tare"), bytes_as_fp8(model));
  EXPECT_LT(100 * bytes_as_fp8(model), 28 * bytes_of(model));

  const int64_t before = memory::backend(c10::kCPU).usage().allocated_bytes;
  Predictor predictor(dir / "small.tare");
  EXPECT_EQ(memory::backend(c10::kCPU).usage().allocated_bytes, before) << "all of it is mapped";
  EXPECT_EQ(predictor.ledger().bytes()[Category::mapped], bytes_as_fp8(model));
  EXPECT_EQ(predictor.ledger().bytes().total(), 0);
  (void)predictor.predict(GetParam().input());
  EXPECT_EQ(memory::backend(c10::kCPU).usage().allocated_bytes, before) << "and freed again";
}

TEST_P(Fp8BundleOf, OtherStoragesPredictWhatTheirRoundedModelsDo) {
  const TempDir dir;
  const Model model = GetParam().make();
  write(dir / "full.tare", model, "as_is");
  const at::Tensor input = GetParam().input(), exact = Predictor(dir / "full.tare").predict(input);
  for (const auto& [weights, share] : {std::pair("int8", 28), {"bf16", 53}, {"fp16", 53}}) {
    const auto path = dir / (std::string(weights) + ".tare");
    write(path, model, weights);
    EXPECT_LT(100 * data_bytes(path), share * bytes_of(model)) << weights;
    const Bundle bundle = open_bundle(path);
    EXPECT_EQ(bundle.manifest().weights, weights);
    Predictor predictor(path);
    const at::Tensor rounded = predictor.predict(input);
    EXPECT_LT(exact.sub(rounded).abs().max().item<double>(), kTolerance) << weights;
    EXPECT_FALSE(at::equal(exact, rounded)) << weights;
    write(dir / "again.tare", make_model(bundle), "as_is");
    EXPECT_TRUE(at::equal(Predictor(dir / "again.tare").predict(input), rounded)) << weights;
    EXPECT_THAT(inspect(path).text, HasSubstr(weights));
  }
}

TEST_P(Fp8BundleOf, PredictsWhatTheDequantisedModelDoes) {
  const TempDir dir;
  const Model model = GetParam().make();
  write(dir / "full.tare", model, "as_is");
  write(dir / "small.tare", model, "fp8");
  Predictor full(dir / "full.tare"), small(dir / "small.tare");
  const at::Tensor input = GetParam().input();
  const at::Tensor exact = full.predict(input), rounded = small.predict(input);
  EXPECT_LT(exact.sub(rounded).abs().max().item<double>(), kTolerance);
  EXPECT_FALSE(at::equal(exact, rounded));
  EXPECT_TRUE(at::equal(small.predict(input), rounded)) << "every time";

  write(dir / "again.tare", make_model(open_bundle(dir / "small.tare")), "as_is");
  EXPECT_TRUE(at::equal(Predictor(dir / "again.tare").predict(input), rounded));
  write(dir / "fp8.tare", make_model(open_bundle(dir / "small.tare")), "fp8");
  EXPECT_TRUE(at::equal(Predictor(dir / "fp8.tare").predict(input), rounded))
      << "rounding again changes nothing";
}

INSTANTIATE_TEST_SUITE_P(Models, Fp8BundleOf,
                         ::testing::Values(Case{"mlp", mlp, pictures},
                                           Case{"resnet9", resnet9, pictures},
                                           Case{"gpt", gpt, tokens}),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(Fp8Bundle, SaysItsVersionAndHowWeightsAreStored) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "full.tare", small_manifest(model), state_for(model, "as_is"));
  write_bundle(dir / "small.tare", small_manifest(model), state_for(model, "fp8"));
  const auto manifest_of = [&](const char* name) {
    const auto file = checkpoint::SafeTensors::open(dir / name);
    return checkpoint::unseal(file.metadata().at("tare"), "test", dir / name, "manifest");
  };
  EXPECT_EQ(manifest_of("full.tare")["version"], 1) << "which earlier readers know";
  EXPECT_FALSE(manifest_of("full.tare").contains("weights"));
  EXPECT_EQ(manifest_of("small.tare")["version"], 2);
  EXPECT_EQ(manifest_of("small.tare")["weights"], "fp8");
  EXPECT_EQ(open_bundle(dir / "small.tare").manifest().weights, "fp8");
  EXPECT_EQ(open_bundle(dir / "full.tare").manifest().weights, "as_is");

  const std::string text = inspect(dir / "small.tare").text;
  EXPECT_THAT(text, HasSubstr("mlp, 163 weights")) << "scales are none";
  EXPECT_THAT(text, HasSubstr("fp8: float8_e4m3fn, a float32 scale a row"));
  EXPECT_THAT(text, HasSubstr("float8_e4m3fn [8, 16]"));
  const auto json = nlohmann::json::parse(inspect_json(dir / "small.tare").text);
  EXPECT_EQ(json["weights"], "fp8");
  EXPECT_EQ(json["verified"], true);
}

/// Writes a file that verifies, with other tensors or another manifest than write_bundle() makes.
void write_hostile(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                   const std::function<void(nlohmann::json&)>& change = {}) {
  const Model model = small_model();
  const auto good = path.string() + ".good";
  write_bundle(good, small_manifest(model), state_for(model, "fp8"));
  auto manifest = checkpoint::unseal(checkpoint::SafeTensors::open(good).metadata().at("tare"),
                                     "test", good, "manifest");
  manifest.erase("checksum");
  manifest["digest"] = checkpoint::to_json(checkpoint::digest(tensors));
  if (change) change(manifest);
  checkpoint::write(path, tensors, {{"tare", checkpoint::seal(manifest)}});
}

std::string refusal(const std::filesystem::path& path) {
  try {
    const Predictor predictor(path);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Fp8Bundle, HostileFilesAreRefused) {
  const TempDir dir;
  const auto path = dir / "hostile.tare";
  const auto good = state_for(small_model(), "fp8");
  const auto with = [&](const std::string& name, const at::Tensor& tensor) {
    auto tensors = good;
    std::erase_if(tensors, [&](const NamedTensor& t) { return t.name == name; });
    if (tensor.defined()) tensors.push_back({name, tensor});
    write_hostile(path, tensors);
    return refusal(path);
  };
  const std::string scale = "hidden0.weight_scale";
  write_hostile(path, good);
  ASSERT_EQ(refusal(path), "accepted");
  EXPECT_THAT(with(scale, {}), HasSubstr("hidden0.weight: is float8 without the scale"));
  EXPECT_THAT(with(scale, at::ones({7})), HasSubstr("is not the scale of its weight's rows"));
  EXPECT_THAT(with(scale, at::ones({8, 1})), HasSubstr("is not the scale of its weight's rows"));
  EXPECT_THAT(with(scale, at::full({8}, std::nan(""))), HasSubstr("is not above 0"));
  EXPECT_THAT(with(scale, at::zeros({8})), HasSubstr("is not above 0"));
  EXPECT_THAT(with(scale, at::full({8}, 3e38)), HasSubstr("too large for a product in float32"));
  const at::Tensor nan = at::full({8, 16}, 0xff, at::kByte).view(c10::kFloat8_e4m3fn);
  EXPECT_THAT(with("hidden0.weight", nan), HasSubstr("hidden0.weight: has a NaN"));
  const at::Tensor other = at::ones({8, 15}).to(c10::kFloat8_e4m3fn);
  EXPECT_THAT(with("hidden0.weight", other), HasSubstr("the weights do not fit"));
  EXPECT_THAT(with("hidden0.weight", at::ones({8, 16}).to(c10::kFloat8_e5m2)),
              HasSubstr("the weights do not fit"));
}

TEST(Fp8Bundle, AManifestThatDoesNotSaySoIsRefused) {
  const TempDir dir;
  const auto path = dir / "hostile.tare";
  const auto fp8 = state_for(small_model(), "fp8"), full = state_for(small_model(), "as_is");
  write_hostile(path, fp8, [](nlohmann::json& m) { m["version"] = 1; });
  EXPECT_THAT(refusal(path), HasSubstr("are as_is in the manifest, and others in the data"));
  write_hostile(path, full);
  EXPECT_THAT(refusal(path), HasSubstr("are fp8 in the manifest, and others in the data"));
  write_hostile(path, fp8, [](nlohmann::json& m) { m["weights"] = "fp4"; });
  EXPECT_THAT(refusal(path), HasSubstr("is no storage that this Tare knows"));
  write_hostile(path, fp8, [](nlohmann::json& m) { m.erase("weights"); });
  EXPECT_THAT(refusal(path), HasSubstr("weights: is missing"));
  write_hostile(path, fp8, [](nlohmann::json& m) { m["version"] = 6; });
  EXPECT_THAT(refusal(path), HasSubstr("is 6; this Tare reads 1 to 5"));
  write_hostile(path, fp8, [](nlohmann::json& m) { m["version"] = 3; });
  EXPECT_THAT(refusal(path), HasSubstr("more_inputs: is missing"));
}

TEST(Fp8Bundle, AFloat8WeightWithoutItsScaleIsNotWritten) {
  const TempDir dir;
  const Model model = small_model();
  auto tensors = state_for(model, "fp8");
  std::erase_if(tensors, [](const NamedTensor& t) { return t.name.ends_with("_scale"); });
  EXPECT_THROW(write_bundle(dir / "x.tare", small_manifest(model), tensors), FormatError);
  EXPECT_FALSE(std::filesystem::exists(dir / "x.tare"));
}

TEST(StateFor, RefusesAnUnknownStorage) {
  EXPECT_THROW((void)state_for(small_model(), "fp4"), ConfigError);
}

}  // namespace
}  // namespace tare

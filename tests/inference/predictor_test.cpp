// Predictions from bundles: images, rows and tokens.
#include "tare/inference/predictor.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "inference/support.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/manifest.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/inference/rows.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using tare::testing::TempDir;

struct Fixture {
  TempDir dir;
  Model model = small_model();
  std::filesystem::path path = dir / "m.tare";

  Fixture() {
    model.train(false);
    write_bundle(path, small_manifest(model), model.state());
  }
  explicit Fixture(const BundleManifest& manifest) { write_bundle(path, manifest, model.state()); }
};

TEST(Predictor, GivesWhatModelTransformsAndActivationGive) {
  const Fixture f;
  Predictor predictor(f.path);
  const at::Tensor images = at::randint(256, {6, 1, 4, 4}).to(at::kByte);
  const at::Tensor expected =
      at::softmax(f.model.forward(small_manifest(f.model).transforms.apply(images, {}, false)), 1);
  const at::Tensor got = predictor.predict(images);
  EXPECT_EQ(got.sizes(), (std::vector<int64_t>{6, 3}));
  EXPECT_TRUE(at::equal(got, expected));
  EXPECT_FALSE(got.requires_grad());
}

TEST(Predictor, WeightsStayInTheMappedFile) {
  const Fixture f;
  const Predictor predictor(f.path);
  const Ledger ledger = predictor.ledger();
  int64_t bytes = 0;
  for (const auto& [name, tensor] : f.model.state()) bytes += static_cast<int64_t>(tensor.nbytes());
  EXPECT_EQ(ledger.bytes()[Category::mapped], bytes);
  EXPECT_EQ(ledger.bytes().total(), 0);
  EXPECT_EQ(ledger.entries().size(), f.model.state().size());
}

TEST(Predictor, GoesOnWhenItsFileIsRemoved) {
  const Fixture f;
  Predictor predictor(f.path);
  const at::Tensor images = at::randint(256, {2, 1, 4, 4}).to(at::kByte);
  const at::Tensor before = predictor.predict(images);
  io::remove_all(f.path);
  EXPECT_TRUE(at::equal(predictor.predict(images), before));
}

TEST(Predictor, PurgeFreesNothingAndChangesNothing) {
  const Fixture f;
  Predictor predictor(f.path);
  const at::Tensor images = at::randint(256, {2, 1, 4, 4}).to(at::kByte);
  const at::Tensor before = predictor.predict(images);
  const PurgeReport report = predictor.purge_account({});
  EXPECT_EQ(report.total(), 0);
  EXPECT_EQ(report.tracked_before, report.tracked_after);
  EXPECT_TRUE(at::equal(predictor.predict(images), before));
}

TEST(Predictor, RefusesImagesThatDoNotFit) {
  const Fixture f;
  Predictor predictor(f.path);
  EXPECT_THROW((void)predictor.predict(at::Tensor()), ShapeError);
  EXPECT_THROW((void)predictor.predict(at::rand({4})), ShapeError);
  EXPECT_THROW((void)predictor.predict(at::rand({2, 16})), ShapeError);
  EXPECT_THROW((void)predictor.predict(at::rand({2, 1, 5, 4})), ShapeError);
  EXPECT_THROW((void)predictor.predict(at::rand({2, 1, 4, 4}, at::kDouble)), ShapeError);
}

TEST(Predictor, TakesFeaturesWhereTheModelDoes) {
  const TempDir dir;
  Model model =
      models::make("mlp", {.classes = 2, .sample_shape = {5}, .weights = "", .hidden = {4}});
  model.train(false);
  write_bundle(dir / "m.tare", {.model = *model.spec(), .sample_shape = {5}, .transforms = {}},
               model.state());
  Predictor predictor(dir / "m.tare");
  const at::Tensor features = at::rand({7, 5});
  EXPECT_TRUE(at::equal(predictor.predict(features), model.forward(features)));
  EXPECT_THROW((void)predictor.predict(at::rand({7, 6})), ShapeError);
  EXPECT_THROW((void)predictor.classify(dir / "none.png"), StateError);
}

TEST(Predictor, ClassifiesAPngOfAnySizeAndColour) {
  const Fixture f;
  Predictor predictor(f.path);
  write_png(f.dir / "small.png", at::full({1, 4, 4}, 200, at::kByte));
  write_png(f.dir / "large.png", at::full({3, 9, 12}, 200, at::kByte));
  const auto small = predictor.classify(f.dir / "small.png", 3);
  const auto large = predictor.classify(f.dir / "large.png", 3);
  ASSERT_EQ(small.size(), 3U);
  EXPECT_GE(small[0].probability, small[1].probability);
  EXPECT_GE(small[1].probability, small[2].probability);
  EXPECT_NEAR(small[0].probability + small[1].probability + small[2].probability, 1, 1e-6);
  EXPECT_EQ(small[0].label, small_manifest(f.model).labels[static_cast<size_t>(small[0].index)]);
  EXPECT_EQ(small[0].index, large[0].index);
  EXPECT_EQ(predictor.classify(f.dir / "small.png").size(), 1U);
}

/// Writes the fixture's bundle again as an earlier Tare did, which knew no antialiasing.
void make_earlier(const Fixture& f, const std::string& transforms) {
  const auto file = checkpoint::SafeTensors::open(f.path);
  auto manifest = checkpoint::unseal(file.metadata().at("tare"), "test", "file", "manifest");
  EXPECT_EQ(manifest.at("antialias"), true);
  manifest.erase("antialias");
  manifest["transforms"] = transforms;
  checkpoint::write(f.dir / "earlier", f.model.state(), {{"tare", checkpoint::seal(manifest)}});
}

TEST(Predictor, ResizesAsTheTareThatWroteTheBundle) {
  const Fixture f;
  const at::Tensor picture = at::randint(256, {1, 13, 11}).to(at::kByte);
  Predictor now(f.path);
  EXPECT_TRUE(at::equal(now.predict_picture(picture),
                        now.predict(resize_image(picture, 4, 4).unsqueeze(0))));
  make_earlier(f, "- normalise: {mean: [0.5], std: [0.25]}\n");
  Predictor earlier(f.dir / "earlier");
  EXPECT_TRUE(at::equal(earlier.predict_picture(picture),
                        earlier.predict(resize_image(picture, 4, 4, false).unsqueeze(0))));
  EXPECT_FALSE(at::equal(earlier.predict_picture(picture), now.predict_picture(picture)));
  make_earlier(f, "- resize: {height: 4, width: 4, round: true}\n");
  Predictor resizing(f.dir / "earlier");
  EXPECT_EQ(resizing.manifest().transforms, (Transforms{Resize{4, 4, true, false}}));
  EXPECT_TRUE(at::equal(resizing.predict_picture(picture),
                        resizing.predict(resize_image(picture, 4, 4, false).unsqueeze(0))));
}

TEST(Predictor, FitsPicturesAsTheTrainingDid) {
  const Fixture f;
  const at::Tensor picture = at::randint(256, {1, 13, 7}).to(at::kByte);
  for (const std::string fit : {"", "stretch", "crop", "pad"}) {
    make_earlier(f, "- resize: {height: 4, width: 4, round: true, antialias: true" +
                        (fit.empty() ? "" : ", fit: " + fit) + "}\n");
    Predictor predictor(f.dir / "earlier");
    const at::Tensor fitted = resize_image(picture, 4, 4, true, fit.empty() ? "stretch" : fit);
    EXPECT_TRUE(
        at::equal(predictor.predict_picture(picture), predictor.predict(fitted.unsqueeze(0))))
        << fit;
  }
  make_earlier(f, "- resize: {height: 4, width: 4, fit: squash}\n");
  EXPECT_THROW(Predictor(f.dir / "earlier"), FormatError);
}

TEST(Predictor, NamesAClassByItsIndexWhereThereAreNoLabels) {
  BundleManifest manifest = small_manifest(small_model());
  manifest.labels.clear();
  const Fixture f(manifest);
  Predictor predictor(f.path);
  write_png(f.dir / "i.png", at::full({1, 4, 4}, 7, at::kByte));
  const auto first = predictor.classify(f.dir / "i.png").at(0);
  EXPECT_EQ(first.label, std::to_string(first.index));
}

TEST(Predictor, TakesAModuleThatIsNotInTheRegistry) {
  BundleManifest manifest = small_manifest(small_model());
  manifest.model = {};
  const Fixture f(manifest);
  EXPECT_THROW(Predictor{f.path}, ConfigError);
  Predictor predictor(f.path, small_model());
  const at::Tensor images = at::randint(256, {2, 1, 4, 4}).to(at::kByte);
  EXPECT_EQ(predictor.predict(images).size(1), 3);
  EXPECT_THROW(
      Predictor(
          f.path,
          models::make("mlp",
                       {.classes = 3, .sample_shape = {1, 4, 4}, .weights = "", .hidden = {9}})),
      FormatError);
}

TEST(Predictor, RefusesADeviceThatIsNotThere) {
  const Fixture f;
  EXPECT_THROW(Predictor(f.path, {.device = "tpu"}), ConfigError);
  EXPECT_THROW(Predictor(f.path, {.device = "cuda:99"}), DeviceError);
}

Model tiny_gpt() {
  return models::make("gpt", {.classes = 12,
                              .sample_shape = {8},
                              .weights = "",
                              .width = 8,
                              .layers = 1,
                              .heads = 2,
                              .hidden = {}});
}

TEST(Predictor, TakesTokensOfAnyLengthAndNamesTheNextOne) {
  const TempDir dir;
  Model model = tiny_gpt();
  model.train(false);
  write_bundle(dir / "m.tare",
               {.model = *model.spec(),
                .sample_shape = {8},
                .input = "int64",
                .transforms = {},
                .activation = "softmax"},
               model.state());
  Predictor predictor(dir / "m.tare");
  EXPECT_EQ(predictor.sample_kind(), SampleKind::tokens);
  for (const int64_t length : {1, 5, 8}) {
    const at::Tensor tokens = at::randint(12, {2, length}, at::kLong);
    const at::Tensor got = predictor.predict(tokens);
    EXPECT_TRUE(at::equal(got, at::softmax(model.forward(tokens), 1)));
    const auto next = predictor.classes(got.narrow(0, 1, 1), 3);
    ASSERT_EQ(next.size(), 3U);
    EXPECT_EQ(next[0].index, got[1].select(1, length - 1).argmax().item<int64_t>());
  }
  EXPECT_THROW((void)predictor.predict(at::randint(12, {2, 9}, at::kLong)), ShapeError);
  EXPECT_THROW((void)predictor.predict(at::rand({2, 8})), ShapeError);
  EXPECT_THROW((void)predictor.predict(at::full({1, 3}, 12, at::kLong)), ConfigError);
  EXPECT_THROW((void)predictor.classify(dir / "none.png"), StateError);
}

TEST(Predictor, ABundleWithoutADtypeHasThatOfItsModelsFamily) {
  const TempDir dir;
  for (const Model& model : {tiny_gpt(), small_model()}) {
    write_bundle(dir / "new", {.model = *model.spec(), .transforms = {}}, model.state());
    const auto file = checkpoint::SafeTensors::open(dir / "new");
    auto manifest = checkpoint::unseal(file.metadata().at("tare"), "test", "file", "manifest");
    manifest.erase("input");
    checkpoint::write(dir / "old", model.state(), {{"tare", checkpoint::seal(manifest)}});
    const bool tokens = model.spec()->name == "gpt";
    EXPECT_EQ(open_bundle(dir / "old").manifest().input, tokens ? "int64" : "float32");
  }
}

TEST(Predictor, TakesBytesAsTheyAreWhereTrainingDid) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  manifest.input = "uint8";
  manifest.transforms = {};
  write_bundle(dir / "m.tare", manifest, model.state());
  at::ScalarType seen = at::kFloat;
  const auto forward = [&](Model& own, const Batch& batch) {
    seen = batch.input().scalar_type();
    return own.forward(batch.input().to(at::kFloat));
  };
  Predictor predictor(dir / "m.tare", {.forward = forward});
  write_png(dir / "i.png", at::full({1, 4, 4}, 7, at::kByte));
  const auto first = predictor.classify(dir / "i.png", 3);
  EXPECT_EQ(seen, at::kByte);
  const at::Tensor raw = at::full({1, 1, 4, 4}, 7, at::kFloat);
  EXPECT_EQ(first[0].index, model.forward(raw).argmax().item<int64_t>());
  EXPECT_THROW((void)predictor.predict(raw), ShapeError);
}

TEST(Rows, AreSamplesOfTheModelsShapeAndDtype) {
  const BundleManifest pair{.sample_shape = {2, 2}, .transforms = {}};
  const LinePlace place{"f.csv", 3};
  const at::Tensor row = parse_numbers("1, 2;3\t-4.5e1 ", pair, place);
  EXPECT_TRUE(at::equal(row, at::tensor({1.F, 2.F, 3.F, -45.F}).view({1, 2, 2})));
  const BundleManifest tokens{.sample_shape = {8}, .input = "int64", .transforms = {}};
  EXPECT_EQ(parse_numbers("5 6 7", tokens, place).sizes(), at::IntArrayRef({1, 3}));
  EXPECT_EQ(parse_text("az", tokens, place)[0][1].item<int64_t>(), 'z');
  const BundleManifest letters{
      .sample_shape = {8}, .input = "int64", .transforms = {}, .labels = {"a", "\u00e9"}};
  EXPECT_TRUE(at::equal(parse_text("\u00e9a", letters, place), at::tensor({1L, 0L}).view({1, 2})));
  const auto line_of = [&](const char* text, const BundleManifest& m) {
    return refused_part([&] { (void)parse_numbers(text, m, place); });
  };
  for (const char* wrong : {"", "1 2 3", "1 2 3 4 5", "1 2 x 4"})
    EXPECT_EQ(line_of(wrong, pair), "line 3") << wrong;
  EXPECT_EQ(line_of("1 2.5", tokens), "line 3");
  EXPECT_EQ(refused_part([&] { (void)parse_text("ab", letters, place); }), "line 3");
  EXPECT_THROW((void)parse_text("ab", pair, place), ConfigError);
  EXPECT_TRUE(is_header("width,height"));
  EXPECT_FALSE(is_header("1,height"));
  EXPECT_FALSE(is_header(" "));
}

}  // namespace
}  // namespace tare

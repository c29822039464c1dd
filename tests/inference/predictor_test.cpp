#include "tare/inference/predictor.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include "inference/support.h"
#include "support/temp_dir.h"
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

}  // namespace
}  // namespace tare

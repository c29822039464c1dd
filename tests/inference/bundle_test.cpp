// Bundles: written, opened, damaged and refused.
#include "tare/inference/bundle.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "inference/support.h"
#include "support/deep.h"
#include "support/fault_file_system.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/manifest.h"
#include "tare/inference/bundle_folder.h"

namespace tare {
namespace {

using Json = nlohmann::json;
using tare::testing::FaultFileSystem;
using tare::testing::flipped;
using tare::testing::reduced;
using tare::testing::spliced;
using tare::testing::TempDir;
using ::testing::HasSubstr;

void write_small(const std::filesystem::path& path) {
  const Model model = small_model();
  write_bundle(path, small_manifest(model), model.state());
}

TEST(Bundle, GivesBackManifestAndTensors) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "out/m.tare", small_manifest(model), model.state());
  const Bundle bundle = open_bundle(dir / "out/m.tare");
  const BundleManifest& m = bundle.manifest();
  const BundleManifest expected = small_manifest(model);
  EXPECT_EQ(m.model.name, expected.model.name);
  EXPECT_EQ(m.model.options, expected.model.options);
  EXPECT_EQ(m.sample_shape, expected.sample_shape);
  EXPECT_EQ(m.transforms, expected.transforms.deterministic());
  EXPECT_EQ(m.labels, expected.labels);
  EXPECT_EQ(m.metrics, expected.metrics);
  EXPECT_EQ(m.activation, "softmax");
  EXPECT_EQ(m.loss, "cross_entropy");
  EXPECT_EQ(m.tare_version, checkpoint::tare_version());
  EXPECT_EQ(m.libtorch_version, checkpoint::libtorch_version());
  for (const auto& [name, tensor] : model.state()) {
    EXPECT_TRUE(at::equal(bundle.file().tensor(name), tensor)) << name;
  }
}

std::string refused(const std::filesystem::path& path) {
  try {
    return bundle_at(path).string();
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Bundle, KeepsTheLevelsOfItsTraining) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  manifest.levels = {-1.5, 2};
  write_bundle(dir / "m.tare", manifest, model.state());
  EXPECT_EQ(open_bundle(dir / "m.tare").manifest().levels, manifest.levels);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& wrong : {std::vector<double>{1}, {2, 1}, {0, infinity}}) {
    manifest.levels = wrong;
    EXPECT_THROW(write_bundle(dir / "m.tare", manifest, model.state()), ConfigError);
  }
}

TEST(BundleFolder, HasTheOnlyBundleOrSaysWhatMakesOne) {
  const TempDir dir;
  const auto run = dir / "runs/mine";
  EXPECT_EQ(bundle_at(dir / "absent"), dir / "absent") << "opening it says what is wrong";
  io::make_directories(run);
  EXPECT_THAT(refused(dir / "runs"), HasSubstr("is neither a run's folder nor a checkpoint"));
  io::write_atomically(run / "recipe.yaml", "name: mine");
  EXPECT_THAT(refused(dir / "runs"),
              HasSubstr("holds runs: give one of them, such as " + run.string()));
  EXPECT_THAT(refused(run), HasSubstr("without a bundle (a .tare file) and without a checkpoint: "
                                      "`tare run " +
                                      (run / "recipe.yaml").string() +
                                      " export=NAME.tare` makes the run again, with a bundle"));
  io::make_directories(run / "saved");
  io::write_atomically(run / "saved/manifest.json", "{}");
  EXPECT_THAT(refused(run / "saved"), HasSubstr("is a checkpoint and no bundle (a .tare file): "
                                                "`tare export " +
                                                (run / "saved").string() + '`'));
  EXPECT_THAT(refused(run), HasSubstr("without a bundle (a .tare file): `tare export " +
                                      run.string() + "` makes a bundle of it"));
  EXPECT_THAT(refused(run / "recipe.yaml"),
              HasSubstr("recipe.yaml' is a recipe and no bundle: `tare run " +
                        (run / "recipe.yaml").string() + " export=NAME.tare`"));
  io::make_directories(run / "folder.tare");
  write_small(run / "mine.tare");
  EXPECT_EQ(bundle_at(run), run / "mine.tare");
  write_small(run / "another.tare");
  EXPECT_THAT(refused(run), HasSubstr("has 2 bundles (.tare files): name one of them, such as " +
                                      (run / "another.tare").string()));
}

TEST(Bundle, HoldsNoRandomTransform) {
  const TempDir dir;
  write_small(dir / "m.tare");
  EXPECT_FALSE(open_bundle(dir / "m.tare").manifest().transforms.random());
  EXPECT_EQ(open_bundle(dir / "m.tare").manifest().transforms.steps().size(), 1U);
}

TEST(Bundle, IsAValidSafetensorsFile) {
  const TempDir dir;
  write_small(dir / "m.tare");
  EXPECT_EQ(checkpoint::SafeTensors::open(dir / "m.tare").tensors().size(),
            small_model().state().size());
}

TEST(Bundle, AMetricThatIsNotFiniteIsKeptAsNotANumber) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  manifest.metrics = {{"loss", std::numeric_limits<double>::infinity()}};
  write_bundle(dir / "m.tare", manifest, model.state());
  EXPECT_TRUE(std::isnan(open_bundle(dir / "m.tare").manifest().metrics.at(0).value));
}

// The part by which a damaged bundle is refused; accepting it, or an error of another type, fails.
std::string part_of(const std::filesystem::path& path, const std::string& damaged) {
  overwrite(path, damaged);
  std::string part = refused_part([&] { (void)open_bundle(path); });
  EXPECT_FALSE(part.empty() || part == "accepted" || part.starts_with("another error")) << part;
  return part;
}

TEST(Bundle, EveryFlippedBitIsDetectedAndTheTensorNamed) {
  const TempDir dir;
  write_small(dir / "m.tare");
  const std::string whole = io::read_text(dir / "m.tare");
  const Bundle bundle = open_bundle(dir / "m.tare");
  const auto& tensors = bundle.file().tensors();
  const size_t data =
      whole.size() - static_cast<size_t>(tensors.back().offset + tensors.back().bytes);
  for (size_t bit = 0; bit < whole.size() * 8; bit += reduced<size_t>(5, 1)) {
    const std::string part = part_of(dir / "damaged", flipped(whole, bit));
    if (bit / 8 >= data) {
      const auto place = static_cast<int64_t>(bit / 8 - data);
      const auto damaged =
          std::ranges::find_if(tensors, [&](const auto& t) { return place < t.offset + t.bytes; });
      ASSERT_EQ(part, damaged->name) << "bit " << bit;
    }
  }
}

TEST(Bundle, TruncationsAndSplicesAreDetected) {
  const TempDir dir;
  write_small(dir / "m.tare");
  const std::string whole = io::read_text(dir / "m.tare");
  write_small(dir / "other.tare");  // with other weights
  const std::string other = io::read_text(dir / "other.tare");
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < reduced(500, 10'000); ++i) {
    (void)part_of(dir / "damaged", spliced(whole, other, random));
    ASSERT_FALSE(HasFailure()) << "seed " << kSeed << ", round " << i;
  }
}

TEST(Bundle, OtherFilesAreRefusedByName) {
  const TempDir dir;
  EXPECT_THROW((void)open_bundle(dir / "none"), IoError);
  checkpoint::write(dir / "plain", small_model().state());
  EXPECT_EQ(refused_part([&] { (void)open_bundle(dir / "plain"); }), "tare");
  overwrite(dir / "text", "this is a text file, and a long one");
  EXPECT_EQ(refused_part([&] { (void)open_bundle(dir / "text"); }), "header");
}

TEST(Bundle, ManifestIsCheckedFieldByField) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  const auto file = checkpoint::SafeTensors::open(dir / "m.tare");
  const Json good = checkpoint::unseal(file.metadata().at("tare"), "test", "file", "manifest");
  const auto part = [&](const std::function<void(Json&)>& change) {
    Json changed = good;
    change(changed);
    checkpoint::write(dir / "changed", model.state(), {{"tare", checkpoint::seal(changed)}});
    return refused_part([&] { (void)open_bundle(dir / "changed"); });
  };
  EXPECT_EQ(part([](Json&) {}), "accepted");
  EXPECT_EQ(part([](Json& m) { m["format"] = "tare.checkpoint"; }), "format");
  EXPECT_EQ(part([](Json& m) { m["version"] = 6; }), "version");
  EXPECT_EQ(part([](Json& m) { m["version"] = -1; }), "version");
  EXPECT_EQ(part([](Json& m) { m.erase("model"); }), "model");
  EXPECT_EQ(part([](Json& m) { m["model"]["name"] = 1; }), "name");
  EXPECT_EQ(part([](Json& m) { m["sample_shape"] = {1, 0}; }), "sample_shape");
  EXPECT_EQ(part([](Json& m) { m["sample_shape"] = {1.5}; }), "sample_shape");
  EXPECT_EQ(part([](Json& m) {
              m["sample_shape"] = Json::array({1, 1, 1, 1, 1, 1, 1, 1, 1});
            }),
            "sample_shape");
  EXPECT_EQ(part([](Json& m) { m["any_size"] = {0, 2}; }), "accepted");
  EXPECT_EQ(part([](Json& m) { m["antialias"] = 1; }), "antialias");
  for (const Json& wrong : {Json{3}, Json{2, 0}, Json{1, 1}, Json{-1}, Json{"height"}, Json(0)})
    EXPECT_EQ(part([&](Json& m) { m["any_size"] = wrong; }), "any_size") << wrong;
  EXPECT_EQ(part([](Json& m) { m["transforms"] = "- explode: {}"; }), "transforms");
  EXPECT_EQ(part([](Json& m) { m["transforms"] = "{{{"; }), "transforms");
  EXPECT_EQ(part([](Json& m) { m["labels"] = {1}; }), "labels");
  EXPECT_EQ(part([](Json& m) { m["labels"] = {std::string(4097, 'x')}; }), "labels");
  EXPECT_EQ(part([](Json& m) { m["metrics"] = {1}; }), "metrics");
  EXPECT_EQ(part([](Json& m) { m["metrics"][0]["value"] = "x"; }), "metrics");
  EXPECT_EQ(part([](Json& m) { m["activation"] = "system"; }), "activation");
  EXPECT_EQ(part([](Json& m) { m["input"] = "complex64"; }), "input");
  EXPECT_EQ(part([](Json& m) { m["input"] = 1; }), "input");
  EXPECT_EQ(part([](Json& m) { m.erase("digest"); }), "digest");
  EXPECT_EQ(part([](Json& m) { m["digest"]["tensors"].erase(m["digest"]["tensors"].begin()); }),
            file.tensors().front().name < file.tensors().back().name
                ? good["digest"]["tensors"].begin().key()
                : "");
}

TEST(Bundle, WhatCannotBeWrittenLeavesTheOldFile) {
  const TempDir dir;
  write_small(dir / "m.tare");
  const std::string before = io::read_text(dir / "m.tare");
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  manifest.activation = "relu";
  EXPECT_THROW(write_bundle(dir / "m.tare", manifest, model.state()), ConfigError);
  manifest = small_manifest(model);
  manifest.labels = {"\xff"};
  EXPECT_THROW(write_bundle(dir / "m.tare", manifest, model.state()), ConfigError);
  EXPECT_THROW(write_bundle(dir / "m.tare", small_manifest(model), {{"a", at::Tensor()}}),
               ConfigError);
  {
    const FaultFileSystem full({.at = 3, .error_number = ENOSPC, .sticky = true});
    EXPECT_THROW(write_small(dir / "m.tare"), IoError);
  }
  EXPECT_EQ(io::read_text(dir / "m.tare"), before);
}

TEST(MakeModel, BuildsTheModelAgain) {
  const TempDir dir;
  Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  const Model again = make_model(open_bundle(dir / "m.tare"));
  EXPECT_FALSE(again.is_training());
  model.train(false);
  const at::Tensor input = at::rand({5, 1, 4, 4});
  EXPECT_TRUE(at::equal(again.forward(input), model.forward(input)));
}

TEST(MakeModel, RefusesAModelThatTheRegistryDoesNotKnow) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  manifest.model.name.clear();
  write_bundle(dir / "unnamed", manifest, model.state());
  EXPECT_THROW((void)make_model(open_bundle(dir / "unnamed")), ConfigError);
  manifest.model.name = "mpl";
  write_bundle(dir / "unknown", manifest, model.state());
  EXPECT_THROW((void)make_model(open_bundle(dir / "unknown")), ConfigError);
}

TEST(LoadWeights, FillsAModuleOrChangesNothing) {
  const TempDir dir;
  const Model model = small_model();
  write_bundle(dir / "m.tare", small_manifest(model), model.state());
  const Bundle bundle = open_bundle(dir / "m.tare");
  Model same = small_model();
  load_weights(same, bundle);
  EXPECT_TRUE(at::equal(same.state()[0].tensor, model.state()[0].tensor));
  Model other =
      models::make("mlp", {.classes = 4, .sample_shape = {1, 4, 4}, .weights = "", .hidden = {8}});
  const at::Tensor before = other.state()[0].tensor.clone();
  EXPECT_THROW(load_weights(other, bundle), FormatError);
  EXPECT_TRUE(at::equal(other.state()[0].tensor, before));
}

}  // namespace
}  // namespace tare

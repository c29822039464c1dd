// Arrays of NumPy as inputs of `tare predict`: what is taken, and what is refused.
#include "tare/cli/predict_arrays.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "inference/support.h"
#include "support/npy_file.h"
#include "support/temp_dir.h"
#include "tare/cli/predict_inputs.h"
#include "tare/inference/predictor.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::TempDir;
using testing::write_npy;

/// Holds what `tare predict` finds for one file.
struct Found {
  std::vector<int64_t> lines{};
  std::vector<at::Tensor> predictions{};
  std::vector<std::string> errors{};  ///< "2: message"
};

class PredictArrays : public ::testing::Test {
 protected:
  /// Writes the bundle of a model of samples of this shape.
  void bundle(const BundleManifest& manifest, const Model& model) const {
    write_bundle(dir_ / "m.tare", manifest, model.state());
  }
  void features(std::vector<int64_t> shape) const {
    const Model model =
        models::make("mlp", {.classes = 2, .sample_shape = shape, .weights = "", .hidden = {4}});
    bundle({.model = *model.spec(), .sample_shape = std::move(shape)}, model);
  }
  [[nodiscard]] Found predict(const std::string& file, bool text = false) const {
    Predictor predictor(dir_ / "m.tare");
    Found found;
    cli::predict_inputs(
        {.predictor = predictor,
         .text = text,
         .on_prediction =
             [&](const cli::SamplePlace& place, const Outputs& outputs) {
               found.lines.push_back(place.line);
               found.predictions.push_back(outputs.front().clone());
             },
         .on_failure =
             [&](const cli::SamplePlace& place) {
               try {
                 throw;
               } catch (const std::exception& error) {
                 found.errors.push_back(std::to_string(place.line) + ": " + error.what());
               }
             }},
        {(dir_ / file).string()});
    return found;
  }
  [[nodiscard]] Found array(const at::Tensor& tensor) const {
    write_npy(dir_ / "x.npy", tensor);
    return predict("x.npy");
  }
  /// Returns the one error about an array.
  [[nodiscard]] std::string refusal(const at::Tensor& tensor) const {
    const Found found = array(tensor);
    EXPECT_TRUE(found.predictions.empty());
    return found.errors.size() == 1 ? found.errors.front() : "";
  }
  TempDir dir_;
};

TEST_F(PredictArrays, PicturesArePredictedAsTheirFiles) {
  const Model model = small_model();
  bundle(small_manifest(model), model);
  const at::Tensor pictures =
      at::arange(128).mul(2).to(at::kByte).view({2, 1, 8, 8});  // of another size
  for (int i : {0, 1}) write_png(dir_ / (std::to_string(i) + ".png"), pictures[i]);
  const Found found = array(pictures);
  EXPECT_THAT(found.lines, ElementsAre(1, 2));
  EXPECT_THAT(found.errors, SizeIs(0));
  for (size_t i : {0U, 1U})
    EXPECT_TRUE(
        at::equal(found.predictions.at(i), predict(std::to_string(i) + ".png").predictions.at(0)));
  const Found grey = array(pictures.view({2, 8, 8}));
  EXPECT_THAT(grey.lines, ElementsAre(1, 2)) << "as NumPy has MNIST";
  EXPECT_TRUE(at::equal(grey.predictions.at(1), found.predictions.at(1)));
  EXPECT_THAT(array(at::full({1, 1, 8, 8}, 255, at::kFloat)).errors,
              ElementsAre(HasSubstr("data: has the levels of pictures")));
  const Found one = array(pictures[1]);
  EXPECT_THAT(one.lines, ElementsAre(0)) << "the whole file";
  EXPECT_TRUE(at::equal(one.predictions.at(0), found.predictions.at(1)));
  const at::Tensor levels = at::full({1, 1, 4, 4}, 51, at::kByte);
  EXPECT_TRUE(at::allclose(array(levels.to(at::kDouble).div(255)).predictions.at(0),
                           array(levels).predictions.at(0)))
      << "numbers from 0 to 1";
}

TEST_F(PredictArrays, PicturesOfAnotherShapeOrDtypeAreRefused) {
  const Model model = small_model();
  bundle(small_manifest(model), model);
  EXPECT_THAT(refusal(at::ones({2, 3, 4, 4}, at::kByte)),
              HasSubstr("shape: is [2, 3, 4, 4], and the model takes [samples, 1, any size, any "
                        "size], or one sample [1, any size, any size]"));
  EXPECT_THAT(refusal(at::ones({2, 4, 4, 1}, at::kByte)),
              HasSubstr(": save numpy.moveaxis(array, -1, -3), which has the channels first"));
  EXPECT_THAT(refusal(at::ones({4, 6, 1}, at::kByte)), HasSubstr("numpy.moveaxis(array, -1, -3)"));
  EXPECT_THAT(refusal(at::ones({5, 4, 4}, at::kByte)),
              HasSubstr(": save numpy.expand_dims(array, -3), which has the channel"));
  EXPECT_THAT(refusal(at::ones({4, 4}, at::kByte)), HasSubstr("numpy.expand_dims(array, -3)"));
  EXPECT_THAT(refusal(at::ones({2, 1, 4, 4}, at::kLong)),
              HasSubstr("descr: is int64, and the model takes pictures: save "
                        "array.astype(numpy.uint8) for levels from 0 to 255, or numpy.float32"));
  EXPECT_THAT(refusal(at::ones({2, 1, 6, 4})),
              HasSubstr("shape: has samples of [1, 6, 4], and the model takes [1, 4, 4]: resize "
                        "them, or save array.astype(numpy.uint8)"));
}

TEST_F(PredictArrays, OfOtherLevelsThanThoseOfTheTrainingAreWarnedOf) {
  const Model model = small_model();
  BundleManifest manifest = small_manifest(model);
  const auto warned = [&](const at::Tensor& x) {
    bundle(manifest, model);
    ::testing::internal::CaptureStderr();
    const Found found = array(x);
    EXPECT_EQ(std::ssize(found.predictions), x.size(0));
    return ::testing::internal::GetCapturedStderr();
  };
  const at::Tensor levels = at::arange(32).mul(4.5).view({2, 1, 4, 4});
  EXPECT_EQ(warned(levels), "") << "the bundle does not know its levels";
  manifest.levels = {0, 1};
  EXPECT_THAT(warned(levels),
              HasSubstr("x.npy has numbers from 0 to 139.5, and those of the training were from 0 "
                        "to 1: the predictions are wrong unless both have one unit"));
  EXPECT_EQ(warned(levels.div(255)), "");
  EXPECT_EQ(warned(levels.to(at::kByte)), "") << "pictures, which are scaled";
  manifest.levels = {0, 255};
  EXPECT_EQ(warned(levels), "");
  EXPECT_THAT(warned(levels.div(255)), HasSubstr("those of the training were from 0 to 255"));
}

TEST_F(PredictArrays, AreScoredByAnArrayOfTheirClasses) {
  const Model model = small_model();
  const BundleManifest manifest = small_manifest(model);
  bundle(manifest, model);
  write_npy(dir_ / "x.npy", at::arange(64).view({4, 1, 4, 4}).to(at::kByte));
  const auto truths = [&](const at::Tensor& labels) {
    write_npy(dir_ / "y.npy", labels);
    std::string known;
    Predictor predictor(dir_ / "m.tare");
    const cli::Truths all(predictor.manifest(), (dir_ / "y.npy").string());
    cli::predict_inputs({.predictor = predictor,
                         .truths = &all,
                         .on_prediction =
                             [&](const cli::SamplePlace& place, const Outputs&) {
                               known += std::to_string(place.truth.value().index) + ' ';
                             },
                         .on_failure =
                             [&](const cli::SamplePlace&) {
                               try {
                                 throw;
                               } catch (const std::exception& error) {
                                 known = error.what();
                               }
                             }},
                        {(dir_ / "x.npy").string()});
    return known;
  };
  EXPECT_EQ(truths(at::arange(4).remainder(3)), "0 1 2 0 ");
  EXPECT_THAT(truths(at::arange(4)), HasSubstr("has the class 3 in sample 4, and the model has 3 "
                                               "classes, which count from 0"));
  EXPECT_THAT(truths(at::arange(3)), HasSubstr("has 3 targets for 4 samples of"));
  EXPECT_THAT(truths(at::rand({4})), HasSubstr("must be a whole number for each sample"));
  const cli::Truths without(manifest, "label");
  EXPECT_THROW((void)without.of_array("x.npy", 4), ConfigError);
}

TEST_F(PredictArrays, NumbersAreConvertedAsInTraining) {
  features({3});
  const at::Tensor rows = at::rand({4, 3}).mul(10).floor();
  const Found found = array(rows);
  EXPECT_THAT(found.lines, ElementsAre(1, 2, 3, 4));
  for (const at::ScalarType type : {at::kDouble, at::kLong, at::kByte})
    EXPECT_TRUE(at::equal(at::cat(array(rows.to(type)).predictions), at::cat(found.predictions)))
        << type;
  // A product of one row may round in another way than one of four.
  EXPECT_TRUE(at::allclose(array(rows[2]).predictions.at(0), found.predictions.at(2)));
  EXPECT_THAT(refusal(at::ones({4, 2})),
              HasSubstr("x.npy: shape: is [4, 2], and the model takes [samples, 3], or one sample "
                        "[3]"));
  EXPECT_THAT(refusal(at::ones({})), HasSubstr("shape: is []"));
  EXPECT_THAT(refusal(at::ones({0, 3})), HasSubstr("holds no sample"));
}

TEST_F(PredictArrays, ASampleThatIsNotFiniteFailsAlone) {
  features({3});
  at::Tensor rows = at::ones({4, 3}, at::kDouble);
  rows[1][2] = std::numeric_limits<double>::quiet_NaN();
  rows[3][0] = 1e300;
  const Found found = array(rows);
  EXPECT_THAT(found.lines, ElementsAre(1, 3));
  EXPECT_THAT(found.errors,
              ElementsAre(HasSubstr("2: [predict] " + (dir_ / "x.npy").string() +
                                    ": sample 2: has NaN or a number that float32 does not hold"),
                          HasSubstr("sample 4: has NaN or a number")));
}

TEST_F(PredictArrays, TokensAreWholeNumbers) {
  const Model model = models::make("gpt", {.classes = 4,
                                           .sample_shape = {6},
                                           .weights = "",
                                           .width = 8,
                                           .layers = 1,
                                           .heads = 2,
                                           .hidden = {}});
  bundle({.model = *model.spec(), .sample_shape = {6}, .input = "int64", .activation = "softmax"},
         model);
  const at::Tensor tokens = at::arange(8).remainder(4).view({2, 4});
  const Found found = array(tokens);
  EXPECT_THAT(found.lines, ElementsAre(1, 2));
  EXPECT_TRUE(at::equal(array(tokens.to(at::kByte)[1]).predictions.at(0), found.predictions.at(1)));
  EXPECT_THAT(refusal(tokens.to(at::kFloat)),
              HasSubstr("descr: is float32, and the model takes int64: save "
                        "array.astype(numpy.int64)"));
  EXPECT_THAT(array(tokens.add(1)).errors,
              ElementsAre(HasSubstr("1: [predictor.predict] tokens must be in [0, 4)"),
                          HasSubstr("got 4")));
}

TEST_F(PredictArrays, TextsTablesAndSeveralInputsTakeNone) {
  features({3});
  write_npy(dir_ / "x.npy", at::ones({4, 3}));
  EXPECT_THAT(predict("x.npy", /*text=*/true).errors,
              ElementsAre(HasSubstr("is an array: omit it")));
  const Model model =
      models::make("mlp", {.classes = 2, .sample_shape = {3}, .weights = "", .hidden = {4}});
  BundleManifest manifest{.model = *model.spec(), .sample_shape = {3}};
  manifest.more_inputs = {{.name = "age", .dtype = "float32", .sample_shape = {1}}};
  bundle(manifest, model);
  Predictor predictor(dir_ / "m.tare", {.forward = [](Model&, const Batch& batch) {
                        return Outputs(batch.input());
                      }});
  std::string problem;
  cli::predict_inputs({.predictor = predictor,
                       .on_prediction = [](const auto&, const Outputs&) {},
                       .on_failure =
                           [&](const auto&) {
                             try {
                               throw;
                             } catch (const ConfigError& error) {
                               problem = error.what();
                             }
                           }},
                      {(dir_ / "x.npy").string()});
  EXPECT_THAT(problem, HasSubstr("the model takes 2 inputs: give a safetensors file"));
  manifest.more_inputs.clear();
  manifest.rows = RowCoding{.columns = {{.name = "a"}, {.name = "b"}, {.name = "c"}}};
  EXPECT_THROW((void)cli::read_array(dir_ / "x.npy", manifest), ConfigError);
}

}  // namespace
}  // namespace tare

// Tests what a Learner hands on: predictors that share its weights, and files for other programs.
#include "tare/inference/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "support/files.h"
#include "support/outcome.h"
#include "tare/inference/bundle.h"
#include "tare/interchange/export_file.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

TEST(LearnersPredictor, HasTheWeightsOfTheTimeAndCopiesNone) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  const int64_t before = memory::backend(learner.device()).usage().allocated_bytes;
  Predictor predictor = learner.predictor();
  EXPECT_EQ(memory::backend(learner.device()).usage().allocated_bytes, before);
  EXPECT_TRUE(predictor.ledger().entries().empty());
  at::Tensor last;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const Predictions expected = learner.get_preds();
    const at::Tensor got = predictor.predict(get_all(*learner.data().valid).input());
    EXPECT_TRUE(at::allclose(got, expected.outputs)) << epoch;
    if (last.defined()) {
      EXPECT_FALSE(at::allclose(got, last)) << epoch;
    }
    last = got;
    learner.fit(1);
  }
}

TEST(LearnersPredictor, LeavesTheModeOfAFitAsItIs) {
  /// Predicts after every step.
  class Asks final : public Callback {
   public:
    [[nodiscard]] std::string name() const override { return "asks"; }
    Action after_step(FitContext& context) override {
      if (predictor) outputs.push_back(predictor->predict(get_all(*points(6, 5)).input()));
      training = training && context.learner.model().module()->is_training();
      return Action::proceed;
    }
    Predictor* predictor = nullptr;
    std::vector<at::Tensor> outputs{};
    bool training = true;
  };
  const TempDir folder, other;
  const auto weights = [](const TempDir& in, bool predicts) {
    Learner learner(make_net(), split_points(), quiet(in));
    Predictor predictor = learner.predictor();
    auto asks = std::make_shared<Asks>();
    if (predicts) asks->predictor = &predictor;
    learner.fit(2, {.callbacks = {asks}});
    EXPECT_TRUE(asks->training);
    EXPECT_EQ(asks->outputs.empty(), !predicts);
    return flat(learner.model());
  };
  EXPECT_TRUE(at::equal(weights(folder, true), weights(other, false)));
}

TEST(LearnersPredictor, EndsWithItsLearner) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  Predictor predictor = learner.predictor({"x", "y", "z"});
  const at::Tensor inputs = get_all(*points(4, 7)).input();
  EXPECT_EQ(predictor.classes(predictor.predict(inputs.narrow(0, 0, 1))).size(), 1U);
  EXPECT_EQ(predictor.manifest().labels.front(), "x");
  learner.destroy();
  EXPECT_THAT(outcome_of([&] { (void)predictor.predict(inputs); }),
              HasSubstr("after the Learner with the model was destroyed; export the model first"));
  EXPECT_THAT(outcome_of([&] { (void)learner.predictor(); }), HasSubstr("destroyed"));
}

TEST(ExportTo, WritesTheFilesOfABundleForOtherPrograms) {
  const TempDir folder;
  torch::manual_seed(4);
  Learner learner(models::make("mlp", {.classes = 3, .sample_shape = {kFeatures}, .hidden = {8}}),
                  split_points(), quiet(folder));
  learner.fit(1);
  learner.export_to(folder / "a.tare");
  const Bundle bundle = open_bundle(folder / "a.tare");
  for (const std::string format : {"onnx", "pt2", "safetensors"}) {
    learner.check_export({.format = format});
    learner.export_to(folder / ("a." + format), {.format = format});
    interchange::export_file(folder / ("b." + format), format, bundle.manifest(), bundle.tensors());
    EXPECT_EQ(content_of(folder / ("a." + format)), content_of(folder / ("b." + format))) << format;
  }
}

TEST(ExportTo, WritesAModelThatIsNotInTheRegistry) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  const at::Tensor before = learner.get_preds().outputs;
  learner.export_to(folder / "net.onnx", {.labels = {"x", "y", "z"}, .format = "onnx"});
  EXPECT_THAT(content_of(folder / "net.onnx"), HasSubstr("second.weight"));
  EXPECT_TRUE(at::equal(learner.get_preds().outputs, before));
  learner.fit(1);  // the model has its values back
  EXPECT_FALSE(at::equal(learner.get_preds().outputs, before));
  learner.export_to(folder / "net.tare");
  const Bundle bundle = open_bundle(folder / "net.tare");
  EXPECT_THAT(outcome_of([&] {
                interchange::export_file(folder / "other.onnx", "onnx", bundle.manifest(),
                                         bundle.tensors());
              }),
              HasSubstr("call export_to() of its Learner with this format"));
}

TEST(ExportTo, RefusesBeforeAFitWhatAFormatCannotHold) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  const auto refusal = [&](const ExportOptions& options) {
    return outcome_of([&] { learner.check_export(options); });
  };
  EXPECT_THAT(refusal({.format = "gguf"}), HasSubstr("GGUF is for the model gpt"));
  EXPECT_THAT(refusal({.format = "tensorrt"}),
              HasSubstr("is not known, got tensorrt; allowed: tare, gguf, onnx, pt2, safetensors"));
  EXPECT_THAT(refusal({.weights = "fp16", .format = "onnx"}), HasSubstr("is no storage of onnx"));
}

}  // namespace
}  // namespace tare::testing

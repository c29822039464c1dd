// Frozen weights held as E4M3: bytes, plans, results, and the rest of a Learner's life.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/inference/predictor.h"
#include "tare/model/coded_weight.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kImages = 32, kVocabulary = 32, kContext = 8;

struct Case {
  const char* name;
  Model (*make)();
  Splits (*data)();
  int64_t first;  // trainable layer group
};

Model resnet() {
  torch::manual_seed(1);
  return models::make("resnet9", {.classes = kClasses, .sample_shape = {1, 12, 12}, .width = 8});
}
Splits images() {
  auto generator = at::detail::createCPUGenerator(3);
  const auto input = torch::empty({kImages, 1, 12, 12}).normal_(0, 1, generator);
  const auto target = torch::arange(kImages) % kClasses;
  return {.train = tensor_dataset(input, target), .valid = tensor_dataset(input.clone(), target)};
}

Model gpt() {
  torch::manual_seed(1);
  return models::make("gpt", {.classes = kVocabulary,
                              .sample_shape = {kContext},
                              .width = 32,
                              .layers = 3,
                              .heads = 2,
                              .dropout = 0.1});
}
Splits text() {
  auto generator = at::detail::createCPUGenerator(3);
  const auto tokens =
      torch::empty({kImages, kContext}, torch::kLong).random_(kVocabulary, generator);
  return {.train = tensor_dataset(tokens, tokens.roll(-1, 1)),
          .valid = tensor_dataset(tokens.clone(), tokens.roll(-1, 1))};
}

LearnerOptions with(const TempDir& folder, const std::string& frozen_weights = "fp8") {
  at::set_num_threads(1);
  LearnerOptions options = quiet(folder);
  options.metrics = {};
  options.batch = 8;
  options.workers = 0;
  options.frozen_weights = frozen_weights;
  return options;
}

int64_t parameter_bytes(const Learner& learner) {
  return learner.ledger().bytes(c10::kCPU)[Category::parameters];
}

bool in_a_block(const Model& model, const std::string& name) {
  for (const auto& block : model.blocks())
    if (name.starts_with(block + ".")) return true;
  return false;
}

bool is_held(const Model& model, const Parameter& p) {
  return !p.tensor.requires_grad() && p.tensor.dim() >= 2 && in_a_block(model, p.name);
}

/// Rounds, in plain float, what would be held.
void round_frozen(Learner& learner) {
  const c10::AutoGradMode no_grad(false);
  for (const auto& p : learner.model().parameters()) {
    if (!is_held(learner.model(), p)) continue;
    at::Tensor tensor = p.tensor;
    tensor.copy_(dequantise(quantise(tensor, p.name), tensor.scalar_type()));
  }
}

at::Tensor computed(Learner& learner) {
  std::vector<at::Tensor> all;
  for (const auto& t : computed_state(learner.model()))
    all.push_back(t.tensor.detach().to(torch::kDouble).flatten());
  return torch::cat(all);
}

class FrozenFp8Of : public ::testing::TestWithParam<Case> {};

TEST_P(FrozenFp8Of, TakesTheBytesThatShapesSay) {
  const TempDir folder;
  Learner learner(GetParam().make(), GetParam().data(), with(folder));
  const int64_t full = parameter_bytes(learner), before = tracked();
  const FreezeReport report = learner.freeze_to(GetParam().first);
  int64_t held = 0, others = 0, trainable = 0;
  for (const auto& p : learner.model().parameters()) {
    const int64_t elements = p.tensor.numel();
    if (p.tensor.requires_grad()) {
      trainable += 4 * elements;
    } else if (is_held(learner.model(), p)) {
      held += elements + 4 * p.tensor.size(0);
    } else {
      others += 4 * elements;
    }
  }
  EXPECT_GT(held, 0);
  EXPECT_EQ(report.held_bytes, held);
  EXPECT_EQ(report.other_bytes, others);
  EXPECT_EQ(parameter_bytes(learner), held + others + trainable);
  EXPECT_EQ(before - tracked(), full - parameter_bytes(learner)) << "no byte unexplained";
  EXPECT_THAT(report.str(), HasSubstr(" as fp8 and "));
  learner.fit(1);
  EXPECT_EQ(parameter_bytes(learner), held + others + trainable) << "and after a fit";
  learner.purge({.compact = true});
  EXPECT_EQ(tracked() - (before - full), parameter_bytes(learner));
  learner.unfreeze();
  EXPECT_EQ(parameter_bytes(learner), full);
  EXPECT_EQ(tracked(), before);
}

TEST_P(FrozenFp8Of, PlansWhatAFitTakesToTheByte) {
  const TempDir folder;
  for (const bool recompute : {false, true}) {
    for (const int64_t first : {GetParam().first, int64_t{-1}}) {
      auto options = with(folder);
      if (recompute) options.recompute = {"all"};
      Learner learner(GetParam().make(), GetParam().data(), options);
      learner.freeze_to(first);
      for (const char* state : {"new", "with optimizer state"}) {
        const MemoryPlan plan = learner.plan({.advice = false});
        ASSERT_EQ(plan.method, "meta") << plan.reason;
        const memory::PeakScope peak(c10::kCPU);
        learner.fit(1);
        EXPECT_EQ(plan.peak_bytes, peak.peak_above_start_bytes())
            << state << ", from " << first << (recompute ? ", recomputed: " : ": ") << plan.str();
        EXPECT_EQ(plan.categories.total(), plan.peak_bytes);
      }
    }
  }
}

TEST_P(FrozenFp8Of, TrainsAsPlainFloatWithTheRoundedWeights) {
  for (const char* precision : {"fp32", "bf16", "bf16-true"}) {
    for (const bool recompute : {false, true}) {
      const TempDir folder;
      const auto train = [&](const char* frozen_weights) {
        auto options = with(folder, frozen_weights);
        options.precision = precision;
        if (recompute) options.recompute = {"all"};
        auto learner = std::make_unique<Learner>(GetParam().make(), GetParam().data(), options);
        learner->freeze_to(GetParam().first);
        if (options.frozen_weights == "as_is") round_frozen(*learner);
        torch::manual_seed(5);
        learner->fit(2);
        return learner;
      };
      const auto held = train("fp8"), plain = train("as_is");
      EXPECT_TRUE(torch::equal(computed(*held), computed(*plain)))
          << precision << (recompute ? ", recomputed" : "");
      EXPECT_EQ(held->history().back().valid_loss, plain->history().back().valid_loss);
    }
  }
}

/// Saves inside the second epoch.
struct SaveOnce final : Callback {
  [[nodiscard]] std::string name() const override { return "save_once"; }
  Action after_batch(FitContext& c) override {
    if (c.step == 6) c.learner.save("middle");
    return Action::proceed;
  }
};

TEST_P(FrozenFp8Of, ResumesFromACheckpointToTheSameBits) {
  const TempDir folder;
  Learner straight(GetParam().make(), GetParam().data(), with(folder));
  straight.freeze_to(GetParam().first);
  torch::manual_seed(5);
  straight.fit(3, {.callbacks = {std::make_shared<SaveOnce>()}});
  Learner resumed(GetParam().make(), GetParam().data(), with(folder));
  for (const auto& p : resumed.model().parameters()) p.tensor.detach().zero_();
  resumed.freeze_to(GetParam().first);
  resumed.load("middle");
  resumed.resume({std::make_shared<SaveOnce>()});
  EXPECT_EQ(capture(straight), capture(resumed));
  EXPECT_TRUE(torch::equal(computed(straight), computed(resumed)));
}

TEST_P(FrozenFp8Of, CheckpointsAndBundlesHoldWhatTheModelComputesWith) {
  const TempDir folder;
  Learner learner(GetParam().make(), GetParam().data(), with(folder));
  learner.freeze_to(GetParam().first);
  learner.fit(1);
  const auto values = computed(learner);
  const auto preds = learner.get_preds().outputs;
  learner.save("held");
  Learner plain(GetParam().make(), GetParam().data(), with(folder, "as_is"));
  plain.load("held");
  EXPECT_TRUE(torch::equal(computed(plain), values)) << "into plain float32";
  for (const char* weights : {"as_is", "fp8"}) {
    const auto path = folder / (std::string(weights) + ".tare");
    learner.export_to(path, {.weights = weights});
    const auto loaded = load_learner(path);
    if (std::string(weights) == "as_is") {
      EXPECT_TRUE(torch::equal(computed(*loaded), values));
    }
    Predictor predictor(path);
    EXPECT_EQ(predictor.manifest().weights, weights);
    const std::vector<int64_t> indices{0, 1, 2};
    const auto batch = learner.data().valid->get({.indices = indices});
    const auto expected = preds.narrow(0, 0, 3);
    EXPECT_LT((predictor.predict(batch.input()) - expected).abs().max().item<double>(), 0.05);
  }
  learner.unfreeze();
  EXPECT_TRUE(torch::equal(computed(learner), values)) << "the rounded values";
  learner.load("held");
  EXPECT_TRUE(torch::equal(computed(learner), values));
  learner.fit(1);
  EXPECT_FALSE(torch::equal(computed(learner), values));
}

TEST_P(FrozenFp8Of, DestroyLeavesNothing) {
  const TempDir folder;
  const int64_t before = tracked(), there = blocks();
  {
    Learner learner(GetParam().make(), GetParam().data(), with(folder));
    learner.freeze_to(GetParam().first);
    learner.fit(1);
    const PurgeReport report = learner.destroy();
    EXPECT_EQ(report.held.total(), 0) << report.str();
  }
  EXPECT_EQ(tracked(), before);
  EXPECT_EQ(blocks(), there);
}

INSTANTIATE_TEST_SUITE_P(Models, FrozenFp8Of,
                         ::testing::Values(Case{"resnet9", resnet, images, 3},
                                           Case{"gpt", gpt, text, 2}),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(FrozenFp8, HoldsWhatAnEarlierLayerNeedsAGradientThrough) {
  // The first block trains, those after it are frozen: the backward goes through E4M3 weights.
  const TempDir folder;
  const auto train = [&](const char* frozen_weights) {
    auto learner = std::make_unique<Learner>(resnet(), images(), with(folder, frozen_weights));
    for (const auto& p : learner->model().parameters())
      if (p.name.starts_with("layer")) at::Tensor(p.tensor).set_requires_grad(false);
    if (std::string(frozen_weights) == "as_is") round_frozen(*learner);
    const int64_t start = tracked();
    const memory::PeakScope peak(c10::kCPU);
    torch::manual_seed(5);
    learner->fit(1);
    EXPECT_EQ(learner->model().held().empty(), std::string(frozen_weights) == "as_is") << start;
    return std::pair(std::move(learner), peak.peak_above_start_bytes());
  };
  const auto [held, held_peak] = train("fp8");
  const auto [plain, plain_peak] = train("as_is");
  EXPECT_TRUE(torch::equal(computed(*held), computed(*plain)));
}

TEST(FrozenFp8, RefusesWhatCannotBeHeld) {
  const TempDir folder;
  const auto refusal = [&](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal([&] { Learner(resnet(), images(), with(folder, "fp4")); }),
              HasSubstr("frozen_weights must be as_is or fp8, got 'fp4'"));
  EXPECT_THAT(
      refusal([&] { Learner(make_net(), split_points(), with(folder)); }),
      HasSubstr("the model has no block that can hold its frozen weights as fp8: mark its blocks"));
  Learner learner(resnet(), images(), with(folder));
  for (const auto& p : learner.model().parameters())
    if (p.name == "layer1.0.weight") p.tensor.detach().fill_(std::nanf(""));
  EXPECT_THAT(refusal([&] { learner.freeze(); }),
              HasSubstr("'layer1.0.weight' has a value that is"));
}

}  // namespace
}  // namespace tare::testing

// Tests set_up() on a living Learner, and options that choose other kernels: channels_last and
// LibTorch's switches.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/small_images.h"
#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/model/block.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

// ---- set_up

/// The blocks that recompute, and those that offload with a mark.
std::vector<std::string> saving_blocks(Model& model) {
  std::vector<std::string> names;
  for (const auto& name : model.blocks()) {
    const Activations kept = dynamic_cast<Block&>(model.submodule(name)).activations();
    if (kept.recompute) names.push_back(name);
    if (kept.offload) names.push_back(name + " offloads");
  }
  return names;
}

TEST(SetUp, ChangesNothingWhereOneOfItsValuesIsRefused) {
  const TempDir folder;
  auto options = quiet(folder);
  options.batch = 16;
  options.recompute = {"layer1"};
  Learner learner(resnet(), images(), std::move(options));
  const DatasetPtr before = learner.data().train;
  const auto blocks = saving_blocks(learner.model());
  ASSERT_FALSE(blocks.empty());
  struct Case {
    std::function<void(FitSetup&)> spoil{};
    std::string message{};
  };
  const std::vector<Case> cases{
      {[](FitSetup& s) { s.batch = 0; }, "[learner.set_up] batch must be >= 1, got 0"},
      {[](FitSetup& s) { s.micro_batch = MicroBatch{9}; }, "[learner.set_up]"},
      {[](FitSetup& s) { s.recompute = {{"layer9"}}; }, "[recompute] 'layer9' names no"},
      {[](FitSetup& s) { s.offload = {{"layer9"}}; }, "[offload] 'layer9' names no"}};
  for (const Case& each : cases) {
    FitSetup setup{.data = images(64),
                   .batch = 8,
                   .micro_batch = MicroBatch{4},
                   .recompute = {{"all"}},
                   .offload = {{"all"}}};
    each.spoil(setup);
    EXPECT_THAT(refusal([&] { learner.set_up(std::move(setup)); }), HasSubstr(each.message));
    EXPECT_EQ(learner.data().train, before) << each.message;
    EXPECT_EQ(saving_blocks(learner.model()), blocks) << each.message;
    EXPECT_EQ(learner.fit(1).steps, 2) << each.message;
  }
}

TEST(SetUp, ChangesWhatItNamesAndNothingElse) {
  struct Parts final : Callback {
    [[nodiscard]] std::string name() const override { return "parts"; }
    Action after_loss(FitContext& c) override {
      count = c.micro_batches;
      return Action::proceed;
    }
    int64_t count = 0;
  };
  const TempDir folder;
  const auto parts = std::make_shared<Parts>();
  auto options = quiet(folder);
  options.batch = 16;
  options.callbacks = {parts};
  Learner learner(resnet(), images(), std::move(options));
  learner.set_up({.micro_batch = MicroBatch{4}, .recompute = {{"layer1"}}});
  EXPECT_EQ(learner.fit(1).steps, 2);
  EXPECT_EQ(parts->count, 4);
  EXPECT_EQ(saving_blocks(learner.model()).size(), 1U);
  learner.set_up({.batch = 8});
  EXPECT_EQ(learner.fit(1).steps, 4);
  EXPECT_EQ(parts->count, 2);
  EXPECT_EQ(saving_blocks(learner.model()).size(), 1U);
  learner.set_up(
      {.data = images(64), .micro_batch = MicroBatch{}, .recompute = std::vector<std::string>{}});
  EXPECT_EQ(learner.fit(1).steps, 8);
  EXPECT_EQ(parts->count, 1);
  EXPECT_TRUE(saving_blocks(learner.model()).empty());
}

// ---- channels_last

TEST(ChannelsLast, LaysOutWeightsAndImagesAndSurvivesACheckpoint) {
  struct Look final : Callback {
    [[nodiscard]] std::string name() const override { return "look"; }
    Action after_loss(FitContext& c) override {
      input = c.data.input().is_contiguous(torch::MemoryFormat::ChannelsLast);
      return Action::proceed;
    }
    bool input = false;
  };
  const TempDir folder;
  auto options = quiet(folder);
  options.optimizer.lr = 1e-3;
  options.kernels.tf32 = false;  // its ten bits of mantissa would be seen
  Learner plain(resnet(), images(), options);
  plain.fit(2);
  options.kernels.channels_last = true;
  const auto look = std::make_shared<Look>();
  options.callbacks = {look};
  Learner learner(resnet(), images(), options);
  learner.fit(2);
  EXPECT_TRUE(look->input);
  for (const auto& p : learner.model().parameters()) {
    if (p.tensor.dim() != 4) continue;
    EXPECT_TRUE(p.tensor.is_contiguous(torch::MemoryFormat::ChannelsLast)) << p.name;
  }
  constexpr double kOrderOfSums = 1e-3;  // of eight steps
  EXPECT_LT((flat(plain.model()) - flat(learner.model())).abs().max().item<double>(), kOrderOfSums);
  learner.save("here");
  const auto before = capture(learner);
  Learner other(resnet(), images(), options);
  other.load("here");
  EXPECT_EQ(capture(other), before);
}

// ---- switches

struct Switches {
  bool deterministic = at::globalContext().deterministicAlgorithms();
  bool cudnn = at::globalContext().userEnabledCuDNN();
  bool benchmark = at::globalContext().benchmarkCuDNN();
  bool tf32 = at::globalContext().allowTF32CuBLAS();
  bool operator==(const Switches&) const = default;
};

TEST(Kernels, AreSwitchedWhileTheLearnerWorksAndThenPutBack) {
  struct Look final : Callback {
    [[nodiscard]] std::string name() const override { return "look"; }
    Action after_loss(FitContext&) override {
      seen = Switches();
      throw std::runtime_error("enough");
    }
    std::optional<Switches> seen;
  };
  const Switches before;
  const TempDir folder;
  auto options = quiet(folder);
  options.kernels = {.tf32 = true, .cudnn = false, .cudnn_benchmark = true, .deterministic = true};
  Learner learner(make_net(), split_points(), std::move(options));
  EXPECT_EQ(Switches(), before);
  const auto look = std::make_shared<Look>();
  EXPECT_THROW(learner.fit(1, {.callbacks = {look}}), std::runtime_error);
  ASSERT_TRUE(look->seen);
  EXPECT_TRUE(look->seen->deterministic);
  EXPECT_FALSE(look->seen->cudnn);
  EXPECT_TRUE(look->seen->benchmark);
  EXPECT_TRUE(look->seen->tf32);
  EXPECT_EQ(Switches(), before);
}

}  // namespace
}  // namespace tare::testing

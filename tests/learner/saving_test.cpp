// Tests options that need less memory but change no result: blocks recomputed by a plan's choice,
// activations that wait in the host's memory, the optimizer's step inside the backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/small_images.h"
#include "learner/state.h"
#include "support/budget.h"
#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/model/block.h"
#include "tare/model/registry.h"
#include "tare/optim/torch_optimizer.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

// ---- step_in_backward

struct Outcome {
  State state{};
  int64_t peak_bytes = 0;
};

Outcome train(LearnerOptions options, Model model, Splits data) {
  Learner learner(std::move(model), std::move(data), std::move(options));
  learner.optimizer().prepare();
  torch::manual_seed(5);
  Outcome outcome;
  {
    const memory::PeakScope peak{c10::Device(test_device())};
    EXPECT_EQ(learner.fit(2).steps, 4);
    // cuBLAS takes its workspace, which is larger than the model, for each product and returns it.
    const auto card = memory::backend(c10::Device(test_device())).traits().planner;
    outcome.peak_bytes = peak.peak_above_start_bytes();
    if (card && !card->keeps_workspaces) outcome.peak_bytes -= card->workspace_bytes;
  }
  outcome.state = capture(learner);
  return outcome;
}

class StepInBackwardWith : public ::testing::TestWithParam<const char*> {};

TEST_P(StepInBackwardWith, GivesTheSameWithFewerGradientsAlive) {
  const TempDir folder;
  const auto tokens = torch::randint(16, {8, 2});  // weights outweigh activations
  const Splits text{.train = tensor_dataset(tokens, tokens.roll(-1, 1)), .valid = {}};
  const auto run = [&](bool inside) {
    auto options = quiet(folder);
    options.optimizer.kind = GetParam();
    options.batch = 4;
    options.metrics = {};
    options.workers = 0;
    options.step_in_backward = inside;
    torch::manual_seed(1);  // the embedding is the output layer too: a gradient of two uses
    return train(options,
                 models::make("gpt", {.classes = 16,
                                      .sample_shape = {2},
                                      .width = 128,
                                      .layers = 4,
                                      .heads = 2,
                                      .dropout = 0.1}),
                 text);
  };
  const Outcome after = run(false), inside = run(true);
  EXPECT_EQ(after.state, inside.state);
  EXPECT_LT(inside.peak_bytes, after.peak_bytes * 2 / 3);
}

INSTANTIATE_TEST_SUITE_P(Fused, StepInBackwardWith, ::testing::Values("sgd", "adam", "adamw"));

TEST(StepInBackward, LeavesNoHookBehind) {
  const TempDir folder;
  auto options = quiet(folder);
  options.step_in_backward = true;
  Learner learner(make_net(), split_points(), std::move(options));
  learner.fit(1);
  const std::vector<int64_t> indices{0, 1, 2, 3};
  const Batch batch = learner.data().train->get({.indices = indices});
  torch::cross_entropy_loss(learner.model().forward(batch.input()), batch.target()).backward();
  const auto& first = learner.model().parameters().front();
  EXPECT_TRUE(first.tensor.grad().defined());
}

TEST(StepInBackward, LetsCallbacksSkipABatchButNotAStepThatIsDone) {
  struct Skip final : Callback {
    [[nodiscard]] std::string name() const override { return "skip"; }
    Action after_loss(FitContext& c) override {
      return c.batch == 1 ? Action::skip : Action::proceed;
    }
    Action after_backward(FitContext&) override { return Action::skip; }
  };
  const TempDir folder;
  auto options = quiet(folder);
  options.step_in_backward = true;
  options.callbacks = {std::make_shared<Skip>()};
  Learner learner(make_net(), split_points(64), std::move(options));
  EXPECT_EQ(learner.fit(1).steps, 3);
}

TEST(StepInBackward, RefusesWhatNeedsAllGradients) {
  const TempDir folder;
  const auto with = [&](auto change) {
    auto options = quiet(folder);
    options.step_in_backward = true;
    change(options);
    return refusal([&] { Learner(make_net(), split_points(), options).fit(1); });
  };
  EXPECT_THAT(with([](auto& o) { o.micro_batch = 8; }), HasSubstr("omit micro_batch"));
  EXPECT_THAT(with([](auto& o) { o.precision = "fp16"; }), HasSubstr("use bf16"));
  const auto later = refusal([&] {
    auto options = quiet(folder);
    options.step_in_backward = true;
    Learner learner(make_net(), split_points(), options);
    learner.set_up({.micro_batch = MicroBatch{8}});
  });
  EXPECT_THAT(later, HasSubstr("omit micro_batch"));
  EXPECT_THAT(with([](auto& o) { o.optimizer_factory = torch_optimizer<torch::optim::RMSprop>(); }),
              HasSubstr("steps all parameters at once"));
}

TEST(StepInBackward, AnOutOfMemoryIsAnErrorAndRetainsNothing) {
  const TempDir folder;
  auto options = quiet(folder);
  options.step_in_backward = true;
  options.workers = 0;
  Learner learner(make_net(), split_points(), std::move(options));
  learner.fit(1);
  const int64_t before = tracked();
  int failed = 0;
  for (uint64_t k = 1; k < 60; k += 3) {
    memory::host_allocator::fail_at(k);
    try {
      learner.fit(1);
    } catch (const OutOfMemory&) {
      ++failed;
    }
    memory::host_allocator::fail_at(0);
    EXPECT_EQ(tracked(), before) << k;
  }
  EXPECT_GT(failed, 10);
  learner.fit(1);
}

// ---- recompute: auto

TEST(RecomputeAuto, TakesAsFewBlocksAsTheBudgetAsksFor) {
  const TempDir folder;
  auto options = quiet(folder);
  options.batch = 32;
  options.micro_batch = 32;  // nothing else may help
  options.workers = 0;
  const auto fit = [&](const std::vector<std::string>& recompute, std::optional<int64_t> allowed) {
    options.recompute = recompute;
    Learner learner(resnet(), images(), options);
    learner.optimizer().prepare();
    learner.purge(false);
    const memory::PeakScope peak(c10::kCPU);
    std::optional<BudgetScope> budget;
    if (allowed) budget.emplace(*allowed);
    learner.fit(1);
    int64_t blocks = 0;
    for (const auto& name : learner.model().blocks())
      blocks += dynamic_cast<Block&>(learner.model().submodule(name)).activations().recompute;
    return std::pair(peak.peak_above_start_bytes(), blocks);
  };
  const auto kept = fit({}, {}), all = fit({"all"}, {});
  ASSERT_LT(all.first, kept.first);
  EXPECT_EQ(fit({"auto"}, {}).second, 0) << "without a budget";
  const int64_t allowed = (kept.first + all.first) / 2;
  const auto some = fit({"auto"}, allowed);
  EXPECT_GT(some.second, 0);
  EXPECT_LE(some.first, allowed);
}

TEST(RecomputeAuto, LeavesTheRestToMicroBatches) {
  const TempDir folder;
  auto options = quiet(folder);
  options.batch = 32;
  options.workers = 0;
  options.metrics = {};
  const auto fit = [&](const std::vector<std::string>& recompute, std::optional<int64_t> allowed) {
    options.recompute = recompute;
    Learner learner(resnet(), images(), options);
    learner.optimizer().prepare();
    torch::manual_seed(5);
    const memory::PeakScope peak(c10::kCPU);
    std::optional<BudgetScope> budget;
    if (allowed) budget.emplace(*allowed);
    learner.fit(1);
    return std::pair(peak.peak_above_start_bytes(), capture(learner));
  };
  const auto all = fit({"all"}, {});
  const int64_t allowed = all.first * 2 / 3;
  const auto named = fit({"all"}, allowed), chosen = fit({"auto"}, allowed);
  EXPECT_LE(chosen.first, allowed);
  EXPECT_EQ(chosen.second, named.second) << "the micro-batches were planned for other blocks";
}

TEST(RecomputeAuto, ChangesNeitherGeneratorsNorTheResult) {
  const TempDir folder;
  const auto fit = [&](const std::vector<std::string>& recompute, const std::string& precision) {
    auto options = quiet(folder);
    options.recompute = recompute;
    options.precision = precision;
    Learner learner(resnet(), images(), options);
    torch::manual_seed(5);
    learner.freeze_to(2);
    learner.fit(1);
    return capture(learner);
  };
  for (const char* precision : {"fp32", "bf16"})
    EXPECT_EQ(fit({}, precision), fit({"auto"}, precision)) << precision;
}

TEST(RecomputeAuto, NeedsAModelThatCanBePlanned) {
  const TempDir folder;
  auto options = quiet(folder);
  options.recompute = {"auto"};
  EXPECT_THAT(refusal([&] { const Learner learner(make_net(), split_points(), options); }),
              HasSubstr("name the blocks"));
  options.recompute = {"body"};
  EXPECT_THAT(refusal([&] { const Learner learner(make_net(), split_points(), options); }),
              HasSubstr("no block"));
}

// ---- offload

TEST(Offload, IsNothingOnTheCpu) {
  const TempDir folder;
  const auto run = [&](const std::vector<std::string>& blocks) {
    auto options = quiet(folder);
    options.batch = 16;
    options.workers = 0;
    options.offload = blocks;
    return train(options, resnet(), images());
  };
  const Outcome kept = run({}), offloaded = run({"all"});
  EXPECT_EQ(kept.state, offloaded.state);
  EXPECT_EQ(kept.peak_bytes, offloaded.peak_bytes);
  EXPECT_THAT(refusal([&] { (void)run({"layer9"}); }), HasSubstr("[offload] 'layer9' names no"));
}

TEST(Offload, IsInThePlanForACard) {
  const TempDir folder;
  auto options = quiet(folder);
  options.batch = 512;
  Learner learner(
      models::make("resnet18", {.classes = kClasses, .sample_shape = {1, 12, 12}, .width = 4}),
      images(512), std::move(options));
  const auto plan = [&](const std::vector<std::string>& recompute,
                        const std::vector<std::string>& offload) {
    learner.set_up({.recompute = recompute, .offload = offload});
    return learner.plan({.device = "cuda:1GiB"});
  };
  const MemoryPlan kept = plan({}, {}), all = plan({}, {"all"}), some = plan({}, {"layer1"});
  ASSERT_TRUE(kept.known() && all.known()) << kept.reason << all.reason;
  EXPECT_LT(some.peak_bytes, kept.peak_bytes);
  EXPECT_LT(all.peak_bytes, some.peak_bytes);
  const auto recomputed = plan({"all"}, {}), both = plan({"all"}, {"all"});
  EXPECT_LE(both.peak_bytes, recomputed.peak_bytes);
  const auto advice = std::ranges::find(kept.savings, "offload=all", &PlanSaving::change);
  ASSERT_NE(advice, kept.savings.end());
  EXPECT_EQ(advice->peak_bytes, all.peak_bytes);
  const auto on_host = [&](const std::vector<std::string>& offload) {
    learner.set_up({.offload = offload});
    return learner.plan({.device = "host", .advice = false}).peak_bytes;
  };
  EXPECT_EQ(on_host({}), on_host({"all"}));
}

}  // namespace
}  // namespace tare::testing

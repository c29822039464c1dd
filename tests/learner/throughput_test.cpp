// The floating-point operations of a fit: exact numbers by hand, each operator once, in any way to
// train, and the columns that Throughput makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "learner/zoo.h"
#include "tare/base/error.h"
#include "tare/callback/flop_count.h"
#include "tare/callback/peak_rates.h"
#include "tare/callback/throughput.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/phase.h"

namespace tare::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
namespace F = torch::nn::functional;

constexpr int64_t kBatch = 16;

/// Returns a Learner of three batches for a model of the zoo.
Learner flops_learner(const Zoo& zoo, const LearnerOptions& options) {
  return {zoo.model(), {.train = zoo.set(3 * kBatch, 1)}, options};
}

/// Returns what the counted batch of a fit needs.
Flops flops_of(Learner& learner, std::vector<CallbackPtr> others = {}) {
  const auto throughput = std::make_shared<Throughput>(ThroughputOptions{.flops = true});
  others.push_back(throughput);
  (void)learner.fit(1, {.callbacks = others});
  EXPECT_TRUE(throughput->counted());
  return throughput->counted().value_or(Flops{});
}
int64_t flops_of(const std::string& name, const std::function<void(LearnerOptions&)>& set = {}) {
  const TempDir folder;
  const Zoo zoo(name);
  LearnerOptions options = zoo.options(folder);
  options.workers = 0;
  if (set) set(options);
  Learner learner = flops_learner(zoo, options);
  return flops_of(learner).total();
}

// Each product of the forward has two in the backward, for its input and its weight; a first layer
// has no gradient of its input.
constexpr int64_t kOfMlp = 2 * kBatch * (2 * 8 * 32 + 3 * (32 * 16 + 16 * kClasses));
// Convolutions of 3 x 3 on 8 x 8, 4 x 4 and 2 x 2 places, to 2, 4 and 8 channels.
constexpr int64_t kOfConvNet =
    2 * kBatch * (2 * 64 * 2 * 9 + 3 * (16 * 4 * 2 * 9 + 4 * 8 * 4 * 9 + 8 * kClasses));
// Two blocks of width 8 over 8 tokens: 12 x 8 x 8 weights, scores and their product with values;
// then the head for 16 tokens.
constexpr int64_t kOfGpt = 2 * 3 * kBatch * (8 * (2 * 12 * 8 * 8 + 8 * 16) + 2 * 2 * 8 * 8 * 8);
// Two layers of four gates of width 8, each with a matrix for the input and one for the state.
constexpr int64_t lstm_flops(int64_t longest) {
  return 2 * 3 * kBatch * (longest * 2 * 2 * 4 * 8 * 8 + 8 * kClasses);
}

// The gradients of the first states, which LibTorch's own cells do not compute.
constexpr int64_t kOfFirstStates = 2 * kBatch * 2 * 4 * 8 * 8;

TEST(Flops, OfForwardAndBackwardAreThoseComputedByHand) {
  EXPECT_EQ(flops_of("mlp"), kOfMlp);
  EXPECT_EQ(flops_of("convnet"), kOfConvNet);
  EXPECT_EQ(flops_of("plain_gpt"), kOfGpt) << "attention in one operator";
  EXPECT_EQ(flops_of("gpt"), kOfGpt) << "attention with dropout, by products on the host";
  EXPECT_THAT(flops_of("lstm", [](LearnerOptions& o) { o.shuffle = false; }),
              AnyOf(lstm_flops(9), lstm_flops(9) - kOfFirstStates));
}

TEST(Flops, AreThoseOfTheWholeBatchInMicroBatches) {
  for (const char* name : {"mlp", "convnet", "plain_gpt"})
    EXPECT_EQ(flops_of(name, [](LearnerOptions& o) { o.micro_batch = 5; }), flops_of(name)) << name;
}

TEST(Flops, OfBlocksThatRecomputeCountOnce) {
  for (const char* name : {"convnet", "plain_gpt", "gpt", "resnet9"})
    EXPECT_EQ(flops_of(std::string(name) + "_recomputed"), flops_of(name)) << name;
}

TEST(Flops, AreOfTheModelAlone) {
  EXPECT_EQ(flops_of("mlp", [](LearnerOptions& o) { o.optimizer.kind = "muon"; }), kOfMlp)
      << "whose step multiplies matrices";
  EXPECT_EQ(flops_of("mlp_step_in_backward"), kOfMlp);
  struct Products final : Callback {
    [[nodiscard]] std::string name() const override { return "products"; }
    Action before_batch(FitContext&) override {
      (void)torch::mm(torch::ones({4, 4}), torch::ones({4, 4}));
      return Action::proceed;
    }
    Action after_step(FitContext& c) override { return before_batch(c); }
  };
  const TempDir folder;
  const Zoo zoo("mlp");
  Learner learner = flops_learner(zoo, zoo.options(folder));
  EXPECT_EQ(flops_of(learner, {std::make_shared<Products>()}).total(), kOfMlp);
}

TEST(Flops, OfFrozenLayersAreFewer) {
  const TempDir folder;
  const Zoo zoo("mlp");
  Learner learner = flops_learner(zoo, zoo.options(folder));
  learner.freeze();
  EXPECT_EQ(flops_of(learner).total(), 2 * kBatch * (8 * 32 + 32 * 16 + 2 * 16 * kClasses))
      << "the head has a gradient of its weight alone";
  learner.unfreeze();
  EXPECT_EQ(flops_of(learner).total(), kOfMlp) << "the next fit counts again";
}

TEST(Flops, HaveTheTypeThatIsComputedIn) {
  const TempDir folder;
  for (const char* name : {"mlp_bf16", "convnet_bf16", "plain_gpt_bf16"}) {
    const Zoo zoo(name);
    Learner learner = flops_learner(zoo, zoo.options(folder));
    const Flops found = flops_of(learner);
    EXPECT_EQ(found.bf16, found.total()) << name;
  }
  const Zoo zoo("mlp");
  Learner learner = flops_learner(zoo, zoo.options(folder));
  const Flops found = flops_of(learner);
  EXPECT_EQ(found.fp32, found.total());
}

TEST(Flops, AreCountedInTheNextBatchWhereAnOperatorFails) {
  if (test_device() != "cpu") return;  // whose allocations fail on demand
  struct Fails final : Callback {
    [[nodiscard]] std::string name() const override { return "fails"; }
    Action before_batch(FitContext& c) override {
      if (c.step == 0) memory::host_allocator::fail_at(2);
      return Action::proceed;
    }
    Action on_micro_batch(FitContext&) override {
      ++changes;
      return Action::proceed;
    }
    int changes = 0;
  };
  const TempDir folder;
  const Zoo zoo("mlp");
  LearnerOptions options = zoo.options(folder);
  options.workers = 0;
  Learner learner = flops_learner(zoo, options);
  const auto fails = std::make_shared<Fails>();
  EXPECT_EQ(flops_of(learner, {fails}).total(), kOfMlp);
  memory::host_allocator::fail_at(0);
  EXPECT_GT(fails->changes, 0) << "the batch was tried again";
}

/// Returns what a function needs in the forward phase.
int64_t flops_in(const std::function<void()>& work,
                 memory::PhaseKind kind = memory::PhaseKind::forward) {
  const memory::Phase phase(kind);
  const auto count = FlopCount::begin();
  EXPECT_TRUE(count);
  work();
  return count->flops().value_or(Flops{.others = -1}).total();
}

torch::Tensor leaf_of(at::IntArrayRef sizes) {
  return torch::ones(sizes, torch::TensorOptions(torch::Device(test_device()))).requires_grad_();
}

TEST(FlopCount, HasEachProductOnce) {
  const auto a = leaf_of({2, 3, 4}), b = leaf_of({2, 4, 5}), weight = leaf_of({6, 4}),
             bias = leaf_of({6}), vector = leaf_of({4});
  EXPECT_EQ(flops_in([&] { (void)torch::bmm(a, b); }), 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(flops_in([&] { (void)torch::matmul(a, b); }), 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(flops_in([&] { (void)torch::einsum("nij,njk->nik", {a, b}); }), 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(flops_in([&] { (void)torch::baddbmm(leaf_of({2, 3, 5}), a, b); }), 2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(flops_in([&] { (void)F::linear(a, weight, bias); }), 2 * 6 * 4 * 6);
  EXPECT_EQ(flops_in([&] { (void)F::linear(a, weight); }), 2 * 6 * 4 * 6);
  EXPECT_EQ(flops_in([&] { (void)torch::mv(weight, vector); }), 2 * 6 * 4);
  EXPECT_EQ(flops_in([&] { (void)torch::addmv(bias, weight, vector); }), 2 * 6 * 4);
  EXPECT_EQ(flops_in([&] { F::linear(a, weight, bias).sum().backward(); }), 3 * 2 * 6 * 4 * 6);
  EXPECT_EQ(flops_in([&] {
              const torch::NoGradGuard no_grad;
              torch::zeros({3, 6}, a.options()).addmm_(a[0], weight.t());
            }),
            2 * 3 * 4 * 6)
      << "in place";
  EXPECT_EQ(flops_in([&] { (void)(a + 1).exp().sum(); }), 0);
}

TEST(FlopCount, HasConvolutionsWithGroupsStridesAndTransposed) {
  const auto images = leaf_of({2, 4, 9, 8});
  const auto grouped = leaf_of({6, 2, 3, 2});  // two groups
  const auto strided = [&] {
    return F::conv2d(
        images, grouped,
        F::Conv2dFuncOptions().stride({2, 1}).padding({1, 0}).dilation({1, 2}).groups(2));
  };
  const int64_t places = 5 * 6, forward = 2 * 2 * places * 6 * 2 * 3 * 2;
  EXPECT_EQ(flops_in([&] {
              EXPECT_EQ(strided().sizes(), at::IntArrayRef({2, 6, 5, 6}));
            }),
            forward);
  EXPECT_EQ(flops_in([&] { strided().sum().backward(); }), 3 * forward);
  EXPECT_EQ(flops_in([&] {
              (void)at::conv2d(images, leaf_of({1, 4, 3, 3}), {}, /*stride=*/2, /*padding=*/1);
            }),
            2 * 2 * (5 * 4) * 4 * 9)
      << "one stride for both sides";
  const auto wider = leaf_of({4, 3, 2, 2});
  const auto transposed = [&] {
    return F::conv_transpose2d(images, wider, F::ConvTranspose2dFuncOptions().stride(2));
  };
  const int64_t spread = 2 * 2 * (9 * 8) * 4 * 3 * 4;
  EXPECT_EQ(flops_in([&] { (void)transposed(); }), spread);
  EXPECT_EQ(flops_in([&] { transposed().sum().backward(); }), 3 * spread);
}

TEST(FlopCount, CountsWhatItsThreadComputesForTheModel) {
  const auto a = leaf_of({4, 4});
  const auto multiply = [&] { (void)torch::mm(a, a); };
  EXPECT_EQ(flops_in(multiply), 2 * 64);
  EXPECT_EQ(flops_in(multiply, memory::PhaseKind::backward), 2 * 64);
  EXPECT_EQ(flops_in(multiply, memory::PhaseKind::step), 0);
  EXPECT_EQ(flops_in(multiply, memory::PhaseKind::none), 0);
  EXPECT_EQ(flops_in([&] { std::thread(multiply).join(); }), 0);
  EXPECT_EQ(flops_in([&] { EXPECT_FALSE(FlopCount::begin()) << "one counts already"; }), 0);
}

TEST(FlopCount, IsUnsetAfterAFailure) {
  const auto a = leaf_of({4, 4});
  const memory::Phase phase(memory::PhaseKind::forward);
  const auto count = FlopCount::begin();
  ASSERT_TRUE(count);
  (void)torch::mm(a, a);
  EXPECT_TRUE(count->flops());
  EXPECT_THROW((void)torch::mm(a, leaf_of({3, 4})), c10::Error);
  EXPECT_FALSE(count->flops());
}

/// Returns the last row of a fit with these options, by column.
std::vector<MetricValue> row_with(const ThroughputOptions& options) {
  const TempDir folder;
  const Zoo zoo("mlp");
  Learner learner = flops_learner(zoo, zoo.options(folder));
  const FitResult fit = learner.fit(2, {.callbacks = {std::make_shared<Throughput>(options)}});
  return fit.epochs.back().metrics;
}
std::vector<std::string> names_of(const std::vector<MetricValue>& row) {
  std::vector<std::string> names;
  for (const MetricValue& value : row) names.push_back(value.name);
  return names;
}

TEST(Throughput, AddsTheColumnsThatItsOptionsAskFor) {
  EXPECT_THAT(names_of(row_with({})), ElementsAre("samples_per_s"));
  const auto given = row_with({.flops = true, .peak_tflops = 2});
  ASSERT_THAT(names_of(given), ElementsAre("samples_per_s", "tflops_per_s", "mfu"));
  EXPECT_DOUBLE_EQ(given[1].value, given[0].value * kOfMlp / kBatch / 1e12);
  EXPECT_DOUBLE_EQ(given[2].value, given[1].value / 2);
  EXPECT_GT(given[2].value, 0);

  const auto card = peak_rates(memory::backend(torch::Device(test_device())).name());
  const auto found = row_with({.flops = true});
  if (!card) {
    EXPECT_THAT(names_of(found), ElementsAre("samples_per_s", "tflops_per_s"));
  } else {  // matrix products of float32 are not in TF32 unless asked for
    ASSERT_THAT(names_of(found), ElementsAre("samples_per_s", "tflops_per_s", "mfu"));
    EXPECT_DOUBLE_EQ(found[2].value, found[1].value / card->fp32);
  }
}

TEST(Throughput, HasNoFlopsBeforeABatchIsTrained) {
  const TempDir folder;
  struct SkipAll final : Callback {
    [[nodiscard]] std::string name() const override { return "skip_all"; }
    Action before_batch(FitContext& c) override {
      return c.epoch == 0 ? Action::skip : Action::proceed;
    }
  };
  const Zoo zoo("mlp");
  Learner learner = flops_learner(zoo, zoo.options(folder));
  const auto throughput =
      std::make_shared<Throughput>(ThroughputOptions{.flops = true, .peak_tflops = 1});
  const FitResult fit = learner.fit(2, {.callbacks = {std::make_shared<SkipAll>(), throughput}});
  EXPECT_TRUE(std::isnan(fit.epochs[0].metrics[1].value));
  EXPECT_TRUE(std::isnan(fit.epochs[0].metrics[2].value));
  ASSERT_TRUE(throughput->counted());
  EXPECT_EQ(throughput->counted()->total(), kOfMlp);
}

}  // namespace
}  // namespace tare::testing

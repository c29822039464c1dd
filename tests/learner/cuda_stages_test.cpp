// A model in several stages on several cards: where its tensors are, what a training gives, what a
// plan says of each card, and that every card is as before after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/traits.h"
#include "learner/state.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/csv_log.h"
#include "tare/callback/gradient_norm.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/model/registry.h"
#include "tare/plan/plan.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using Traits = memory::CudaTraits;
using Names = std::vector<std::string>;

constexpr int64_t kSamples = 24;

class CudaStages : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    for (const c10::Device device : memory::devices())
      if (!device.is_cpu()) cards_.push_back(device);
    if (cards_.size() < 2) GTEST_SKIP() << "there is one card";
    for (const c10::Device card : cards_) memory::backend(card).warm();
  }

  [[nodiscard]] static bool is(const std::string& name) { return name == GetParam(); }
  [[nodiscard]] static Model model(double dropout = 0) {
    torch::manual_seed(1);
    ModelOptions options{
        .classes = kClasses, .sample_shape = {3, 32, 32}, .width = 8, .dropout = dropout};
    if (is("gpt"))
      options = {.classes = 16, .sample_shape = {8}, .width = 8, .layers = 4, .heads = 2};
    options.dropout = dropout;
    if (is("vit")) options.layers = 4, options.heads = 2;
    return models::make(GetParam(), options);
  }
  [[nodiscard]] static DatasetPtr set(uint64_t seed) {
    auto generator = at::detail::createCPUGenerator(seed);
    if (is("gpt")) {
      const auto tokens = torch::randint(16, {kSamples, 8}, generator);
      return tensor_dataset(tokens, tokens.roll(-1, 1));
    }
    const auto images = torch::empty({kSamples, 3, 32, 32}).normal_(0, 1, generator);
    auto classes = torch::arange(kSamples) % kClasses;
    if (is("unet")) classes = classes.view({kSamples, 1, 1}).repeat({1, 32, 32});
    return tensor_dataset(images, classes);
  }
  [[nodiscard]] LearnerOptions options(const Names& stages) const {
    LearnerOptions all = quiet(folder_);
    all.device = stages.empty() ? Traits::device().str() : "auto";
    all.stages = stages;
    all.batch = 8;
    all.micro_batch = 3;
    all.workers = 0;
    all.clip.norm = 0.5;
    all.kernels.tf32 = false;
    return all;
  }
  [[nodiscard]] static std::unique_ptr<Learner> made(LearnerOptions options, double dropout = 0) {
    return std::make_unique<Learner>(
        model(dropout), Splits{.train = set(1), .valid = set(2), .test = {}}, std::move(options));
  }
  [[nodiscard]] std::vector<int64_t> allocated() const {
    std::vector<int64_t> bytes;
    for (const c10::Device card : cards_) {
      memory::backend(card).reclaim();
      bytes.push_back(memory::backend(card).usage().allocated_bytes);
    }
    return bytes;
  }
  /// Every card, as the names of stages.
  [[nodiscard]] Names all_cards() const {
    Names names;
    for (const c10::Device card : cards_) names.push_back(card.str());
    return names;
  }

  /// Compares a training on all cards with one on the first card.
  void expect_as_one_card(const std::function<void(LearnerOptions&)>& change,
                          double rounding) const {
    const auto train = [&](const Names& stages) {
      LearnerOptions all = options(stages);
      if (change) change(all);
      auto learner = made(std::move(all));
      std::vector<double> losses;
      for (const EpochRow& row : learner->fit(2).epochs)
        losses.insert(losses.end(), {row.train_loss, row.valid_loss});
      return std::pair(losses, flat(learner->model()));
    };
    const auto [losses, weights] = train({});
    const auto [in_stages, weights_of_stages] = train(all_cards());
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], in_stages[i], rounding) << i;
    EXPECT_LE((weights - weights_of_stages).norm().item<double>(),
              rounding * weights.norm().item<double>());
  }

  std::vector<c10::Device> cards_;
  TempDir folder_;
};

/// Expects each tensor, with its gradient and its optimizer's state, on the card of its stage.
void expect_in_place(Learner& learner) {
  const auto device_of = [&](const std::string& name) {
    return learner.stages().all()[*learner.stages().stage_of(name)].device;
  };
  for (const Parameter& one : learner.model().parameters()) {
    EXPECT_EQ(one.tensor.device(), device_of(one.name)) << one.name;
    const torch::Tensor gradient = one.tensor.grad();
    EXPECT_TRUE(!gradient.defined() || gradient.device() == device_of(one.name)) << one.name;
  }
  for (const NamedTensor& one : learner.model().buffers())
    EXPECT_EQ(one.tensor.device(), device_of(one.name)) << one.name;
  for (const NamedTensor& one : learner.optimizer().state())
    EXPECT_EQ(one.tensor.device(), device_of(one.name.substr(one.name.rfind('/') + 1))) << one.name;
}

TEST_P(CudaStages, KeepEachPartOnItsCardAndLeaveNoneBehind) {
  const std::vector<int64_t> before = allocated();
  auto learner = made(options(all_cards()), /*dropout=*/0.1);
  ASSERT_EQ(learner->stages().size(), cards_.size());
  for (size_t i = 0; i < cards_.size(); ++i) {
    int64_t rounded = 0;  // each tensor of its own, as the allocator gives it
    for (const NamedTensor& one : learner->model().state())
      if (one.tensor.device() == cards_[i])
        rounded += (static_cast<int64_t>(one.tensor.nbytes()) + 511) / 512 * 512;
    EXPECT_EQ(memory::backend(cards_[i]).usage().allocated_bytes - before[i], rounded) << i;
    EXPECT_GT(rounded, 0);
  }
  expect_in_place(*learner);
  learner->fit(2);
  expect_in_place(*learner);
  (void)learner->get_preds(Split::valid);
  learner->freeze_to(-1);
  learner->fit(1);
  learner->unfreeze();

  const PurgeReport purged = learner->purge({.clear_opt = true, .compact = true});
  EXPECT_TRUE(purged.compacted);
  expect_in_place(*learner);
  const PurgeReport destroyed = learner->destroy();
  EXPECT_THAT(destroyed.holders, ::testing::IsEmpty());
  EXPECT_EQ(destroyed.tracked_before - destroyed.tracked_after, destroyed.total());
  learner.reset();
  EXPECT_EQ(allocated(), before);
}

TEST_P(CudaStages, TrainAsOneCard) {
  if (!memory::kernels_compute()) GTEST_SKIP() << "kernels compute nothing";
  // The norm for the clipping is the sum of that of each card, and a sum of gradients on two cards
  // has another order.
  expect_as_one_card({}, 1e-4);
}

TEST_P(CudaStages, ContinueFromTheGeneratorsOfAllCards) {
  if (!memory::kernels_compute()) GTEST_SKIP() << "kernels compute nothing";
  const auto stages = Names{cards_[0].str(), cards_[1].str()};
  auto learner = made(options(stages), /*dropout=*/0.3);
  learner->fit(1);
  learner->save("half");
  const auto saved = checkpoint::load(folder_.path() / "half");
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(saved.extra, [&](const auto& one) { return one.name == name; });
  };
  EXPECT_TRUE(has("rng/" + stages[0]));
  EXPECT_TRUE(has("rng/" + stages[1]));
  const FitResult straight = learner->fit(1);
  const torch::Tensor weights = flat(learner->model());
  learner->load("half");
  const FitResult again = learner->fit(1);
  EXPECT_EQ(straight.epochs.back().train_loss, again.epochs.back().train_loss);
  EXPECT_TRUE(torch::equal(weights, flat(learner->model())));
}

TEST_P(CudaStages, ArePlannedCardByCard) {
  if (memory::kernels_compute()) GTEST_SKIP() << "the host's operators take no memory of a card";
  const Names stages{cards_[0].str(), cards_[1].str()};
  auto learner = made(options(stages), /*dropout=*/0.1);
  const MemoryPlan plan = learner->plan({.advice = false});
  ASSERT_TRUE(plan.known()) << plan.reason;
  ASSERT_EQ(plan.stages.size(), 2U);
  std::vector<int64_t> start;
  std::vector<std::unique_ptr<memory::PeakScope>> peaks;
  for (size_t i = 0; i < 2; ++i) {
    memory::backend(cards_[i]).reclaim();
    start.push_back(memory::backend(cards_[i]).usage().allocated_bytes);
    EXPECT_EQ(plan.stages[i].start_bytes, start[i]) << i;
    peaks.push_back(std::make_unique<memory::PeakScope>(cards_[i]));
  }
  learner->fit(2);
  // Some scalars of a step, in blocks of 512 bytes, are counted on another card.
  constexpr int64_t kBlocks = 8 * 512;
  for (size_t i = 0; i < 2; ++i)
    EXPECT_LE(std::abs(plan.stages[i].peak_bytes - peaks[i]->peak_above_start_bytes()), kBlocks)
        << plan.stages[i].device << ", " << plan.stages[i].groups << ": planned "
        << plan.stages[i].peak_bytes << ", measured " << peaks[i]->peak_above_start_bytes();
}

INSTANTIATE_TEST_SUITE_P(Models, CudaStages, ::testing::Values("resnet18", "gpt", "vit", "unet"),
                         [](const auto& test) { return std::string(test.param); });

class CudaStagesOf : public CudaStages {};
INSTANTIATE_TEST_SUITE_P(Gpt, CudaStagesOf, ::testing::Values("gpt"));

TEST_P(CudaStagesOf, TrainAsOneCardInSixteenBits) {
  if (!memory::kernels_compute()) GTEST_SKIP() << "kernels compute nothing";
  for (const char* precision : {"bf16", "fp16", "bf16-true"})
    expect_as_one_card([&](LearnerOptions& all) { all.precision = precision; }, 2e-2);
}

TEST_P(CudaStagesOf, TrainAsOneCardWithCallbacksThatComputeThere) {
  if (!memory::kernels_compute()) GTEST_SKIP() << "kernels compute nothing";
  expect_as_one_card(
      [](LearnerOptions& all) {
        all.callbacks = {std::make_shared<Ema>(), std::make_shared<GradientNorm>(),
                         std::make_shared<CsvLog>()};
        all.optimizer.kind = "adamw8bit";
        all.recompute = {"all"};
      },
      1e-3);
}

TEST_P(CudaStagesOf, AutoTakesAllCards) {
  const auto learner = made(options({"auto"}));
  EXPECT_EQ(learner->stages().size(), cards_.size());
  EXPECT_EQ(learner->stages().devices(), cards_);
}

/// Counts the times at which the micro-batch changed.
class Changes final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "changes"; }
  Action on_micro_batch(FitContext&) override {
    ++count_;
    return Action::proceed;
  }
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
};

TEST_P(CudaStagesOf, WorkInSmallerPartsWhereOneCardIsFull) {
  LearnerOptions all = options({cards_[0].str(), cards_[1].str()});
  all.batch = kSamples;
  all.micro_batch.reset();
  memory::DeviceBackend& second = memory::backend(cards_[1]);
  const auto fit = [&](const std::vector<CallbackPtr>& callbacks) {
    torch::manual_seed(1);
    Learner learner(
        models::make("gpt",
                     {.classes = 16, .sample_shape = {64}, .width = 256, .layers = 4, .heads = 4}),
        Splits{.train = tensor_dataset(torch::zeros({kSamples, 64}, torch::kLong),
                                       torch::zeros({kSamples, 64}, torch::kLong)),
               .valid = {},
               .test = {}},
        all);
    const FitResult result = learner.fit(1, {.callbacks = callbacks});
    EXPECT_EQ(result.steps, 1);
    return second.usage().reserved_bytes;
  };
  const int64_t whole = fit({});
  const auto changes = std::make_shared<Changes>();
  // How much less must be there depends on what the segments of the allocator have left.
  constexpr int64_t kStep = int64_t{8} << 20;
  int64_t budget = whole;
  while (changes->count() == 0 && budget > kStep) {
    (void)allocated();
    budget -= kStep;
    second.set_budget(budget);
    EXPECT_LE(fit({changes}), budget);
  }
  second.set_budget({});
  EXPECT_GT(changes->count(), 0);
}

TEST_P(CudaStagesOf, RefuseCardsThatCannotBe) {
  const auto refusal = [&](const Names& stages) {
    try {
      (void)made(options(stages));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string first = cards_.front().str();
  EXPECT_THAT(refusal({first, first}), HasSubstr("names a card twice"));
  EXPECT_THAT(refusal({first, "cpu"}), HasSubstr("must name devices of one type"));
  EXPECT_THAT(refusal({first, "cuda:99"}), HasSubstr("cuda:99 is not there"));
}

}  // namespace
}  // namespace tare::testing

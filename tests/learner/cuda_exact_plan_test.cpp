// Compares plans of a card with fits on the CUDA stand-in, whose convolutions have no workspaces:
// allocated and reserved bytes are equal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "contract/traits.h"
#include "learner/fixture.h"
#include "support/deep.h"
#include "support/environment.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/freeze_batch_norm.h"
#include "tare/callback/gradient_norm.h"
#include "tare/callback/mixing.h"
#include "tare/callback/tensorboard.h"
#include "tare/callback/throughput.h"
#include "tare/data/collate.h"
#include "tare/memory/backend.h"
#include "tare/model/registry.h"
#include "tare/optim/optimizer.h"
#include "tare/plan/plan.h"
#include "tare/trace/card_workspace.h"

namespace tare::testing {
namespace {

using Traits = memory::CudaTraits;

class ExactPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    if (memory::kernels_compute())
      GTEST_SKIP() << "only the card knows the workspaces of its convolutions";
    options_ = quiet(folder_);
    options_.workers = 0;
    use(device_);
  }
  void use(c10::Device device) {
    device_ = device;
    options_.device = device.str();
    backend_ = &memory::backend(device);
    backend_->warm();
  }

  [[nodiscard]] Model model(const std::string& name) const {
    torch::manual_seed(1);
    ModelOptions options{.classes = 10, .sample_shape = {3, 32, 32}};
    if (name == "gpt")
      options = {.classes = 64, .sample_shape = {48}, .width = 64, .layers = 2, .heads = 4};
    else if (name == "mlp")
      options.hidden = {64, 48};
    else if (name == "wide")
      options.hidden = {512};
    else if (name == "tabular")
      options = {.classes = 10, .sample_shape = {12}, .hidden = {64, 32}};
    else if (name == "vit")
      options = {.sample_shape = {3, 32, 32}, .width = 64, .layers = 2, .heads = 4};
    else if (name == "lstm")
      options = {.classes = 10, .sample_shape = {30}, .width = 24, .layers = 2};
    else
      options.width = 8;
    options.dropout = dropout_;
    if (width_ > 0) options.width = width_;
    return models::make(name == "wide" ? "mlp" : name, options);
  }
  [[nodiscard]] static DatasetPtr set(const std::string& name, int64_t n) {
    const auto classes = torch::arange(n) % 10, images = torch::rand({n, 3, 32, 32});
    if (name == "tabular") return tensor_dataset(torch::rand({n, 12}), classes);
    if (name == "unet") return tensor_dataset(images, classes.view({n, 1, 1}).repeat({1, 32, 32}));
    if (name == "siamese")
      return tensor_dataset({{"left", images}, {"right", images.clone()}}, {{"class", classes}});
    if (name == "lstm")
      return tensor_dataset(
          {{"tokens", torch::randint(256, {n, 30})}, {"lengths", torch::arange(n) % 30 + 1}},
          {{"class", classes}});
    if (name != "gpt") return tensor_dataset(images, classes);
    const auto tokens = torch::randint(64, {n, 48});
    return tensor_dataset(tokens, tokens.roll(-1, 1));
  }
  /// Texts of up to 30 bytes, padded to the longest of their batch.
  [[nodiscard]] static DatasetPtr texts(int64_t n, const PadOptions& padding = {}) {
    std::vector<Batch> all;
    for (int64_t i = 0; i < n; ++i)
      all.push_back({torch::randint(256, {30 - i % 30}), torch::tensor(i % 10)});
    return sample_dataset(all, pad(padding));
  }
  [[nodiscard]] Learner learner(const std::string& name, int64_t samples = 500,
                                int64_t valid = 50) const {
    backend_->reclaim();  // so that the weights are in memory of their own
    return {model(name), Splits{.train = set(name, samples), .valid = set(name, valid)}, options_};
  }

  /// Fits, or resumes, and compares what the card gave with the plan of it, which is for a fit of
  /// any length: a second epoch finds other free blocks. `again`: makes the model for the plan.
  void expect_exact(Learner& learner, const std::string& what,
                    const std::function<Model()>& again = {}, bool resumes = false) {
    const MemoryPlan plan = learner.plan({.model = again, .advice = false});
    ASSERT_TRUE(plan.known()) << what << ": " << plan.reason;
    EXPECT_THAT(plan.not_counted, ::testing::IsEmpty()) << what;
    backend_->reclaim();
    const memory::Usage before = backend_->usage();
    EXPECT_EQ(plan.start_bytes, before.allocated_bytes) << what;
    const memory::PeakScope peak(device_);
    (void)(resumes ? learner.resume() : learner.fit(2));
    EXPECT_EQ(plan.peak_bytes, peak.peak_above_start_bytes()) << what << ": " << plan.str();
    EXPECT_EQ(plan.reserved_bytes, backend_->usage().reserved_bytes) << what << ": " << plan.str();
  }
  /// Compares a new Learner's first fit with its plan.
  void expect_exact(const std::string& name, const std::string& what) {
    Learner made = learner(name);
    expect_exact(made, name + ' ' + what);
  }

  c10::Device device_ = Traits::device();
  memory::DeviceBackend* backend_ = nullptr;
  LearnerOptions options_;
  double dropout_ = 0.1;
  int64_t width_ = 0;  // 0: a small one
  TempDir folder_;
};

const std::vector<std::string> kModels{"mlp",      "convnet", "resnet9", "resnet18",
                                       "resnet50", "gpt",     "lstm"};

TEST_F(ExactPlan, OfEveryModelAndBatch) {
  for (const auto& name : kModels)
    for (const int64_t batch : {2, 7, 16, 33, 50, 100}) {
      options_.batch = batch;
      expect_exact(name, "in batches of " + std::to_string(batch));
    }
}

/// The families of the zoo but for torchscript, whose layers stand in a file.
std::vector<std::string> families() {
  std::vector<std::string> names = models::names();
  std::erase(names, "torchscript");
  return names;
}

TEST_F(ExactPlan, OfEveryFamily) {
  for (const auto& name : families())
    for (const char* optimizer : {"sgd", "adamw"}) {
      options_.batch = 24;
      options_.optimizer.kind = optimizer;
      Learner made = learner(name, 100);
      expect_exact(made, name + " with " + optimizer);
      made.freeze();
      made.purge();
      expect_exact(made, name + " frozen, with " + optimizer);
    }
}

TEST_F(ExactPlan, OfKernelsThatRepeatTheirBits) {
  options_.kernels.deterministic = true;
  options_.batch = 24;
  for (const auto& name : families())
    for (const char* precision : {"fp32", "bf16"}) {
      options_.precision = precision;
      Learner made = learner(name, 100);
      expect_exact(made, name + " deterministic in " + precision);
    }
  options_.loss = {"cross_entropy", CrossEntropyOptions{.label_smoothing = 0.1}};
  for (const char* name : {"gpt", "unet"}) {
    Learner made = learner(name, 100);
    expect_exact(made, std::string(name) + " deterministic with smoothed labels");
  }
}

TEST_F(ExactPlan, RefusesOperatorsWithoutKernelsThatRepeatTheirBits) {
  options_.kernels.deterministic = true;
  options_.loss = LossFunction([](const at::Tensor& output, const at::Tensor& target) {
    return torch::cross_entropy_loss(output, target);
  });
  Learner made = learner("gpt", 100);
  try {
    (void)made.plan();
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "[kernels.deterministic] is true, and a card has no kernel of "
                 "aten::nll_loss2d_forward that repeats its bits; set it to false, or replace the "
                 "operator");
  }
  try {
    made.fit(1);
    FAIL() << "no error";
  } catch (const ComputeError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("set kernels.deterministic to false"));
  }
}

// Each dimension alone is in the other tests.
TEST_F(ExactPlan, OfCombinationsThatAreDrawn) {
  std::mt19937 random(7);
  const auto one_of = [&](const auto& all) { return all[random() % std::size(all)]; };
  const auto names = families(), kinds = optimizer_kinds();
  for (int i = 0; i < 40; ++i) {
    const std::string name = one_of(names);
    const LearnerOptions before = options_;
    options_.optimizer.kind = one_of(kinds);
    options_.batch = one_of(std::vector<int64_t>{8, 17, 32, 64});
    options_.workers = one_of(std::vector<int64_t>{0, 0, 2});
    options_.precision = one_of(std::vector<std::string>{"fp32", "fp32", "bf16", "bf16-true"});
    options_.kernels.channels_last = one_of(std::vector{false, false, true});
    if (one_of(std::vector{false, true})) options_.micro_batch = one_of(std::vector<int64_t>{4, 6});
    if (!model(name).blocks().empty() && one_of(std::vector{false, true})) {
      if (one_of(std::vector{false, true}))
        options_.recompute = {"all"};
      else
        options_.offload = {"all"};
    }
    const bool freezes = one_of(std::vector{false, false, true});
    std::string what = name + ' ' + options_.optimizer.kind + " batch " +
                       std::to_string(options_.batch) + ' ' + options_.precision + " workers " +
                       std::to_string(options_.workers) + " micro-batch " +
                       std::to_string(options_.micro_batch.value_or(0)) +
                       (options_.kernels.channels_last ? " channels_last" : "") +
                       (options_.recompute.empty() ? "" : " recompute") +
                       (options_.offload.empty() ? "" : " offload") + (freezes ? " frozen" : "");
    Learner made = learner(name, 100);
    if (freezes) made.freeze();
    expect_exact(made, what);
    options_ = before;
  }
}

TEST_F(ExactPlan, OfEveryOptimizer) {
  for (const auto& kind : optimizer_kinds())
    for (const char* name : {"mlp", "resnet9", "gpt"}) {
      options_.optimizer.kind = kind;
      expect_exact(name, ("with " + kind));
    }
}

TEST_F(ExactPlan, OfCallbacksThatKeepMemoryOrChangeIt) {
  const std::vector<std::function<CallbackPtr()>> callbacks{
      [] { return std::make_shared<Ema>(); },
      [] { return std::make_shared<Swa>(); },
      [] { return std::make_shared<GradientNorm>(); },
      [] { return std::make_shared<Throughput>(ThroughputOptions{.flops = true}); },
      [] { return std::make_shared<FreezeBatchNorm>(); },
      [] { return std::make_shared<Mixup>(MixingOptions{}, 10); },
      [] { return std::make_shared<Cutmix>(MixingOptions{}, 10); },
      [] {
        return std::make_shared<TensorBoard>(
            TensorBoardOptions{.histograms = true, .gradients = true});
      }};
  for (const char* name : {"mlp", "resnet9"})
    for (const char* precision : {"fp32", "bf16-true"})
      for (const auto& make : callbacks) {
        options_.precision = precision;
        options_.callbacks = {make()};
        expect_exact(
            name, std::string("in ") + precision + " with " + options_.callbacks.front()->name());
      }
}

TEST_F(ExactPlan, OfFrozenLayers) {
  for (const auto& name : kModels) {
    Learner made = learner(name);
    made.freeze();
    expect_exact(made, name + " frozen");
    made.unfreeze();
    expect_exact(made, name + " unfrozen");
    made.purge();
    expect_exact(made, name + " purged");
  }
}

TEST_F(ExactPlan, OfWaysToNeedLess) {
  for (const auto& name : kModels) {
    options_.micro_batch = 5;
    expect_exact(name, "in micro-batches");
    options_.micro_batch = {};
    options_.step_in_backward = true;
    expect_exact(name, "with steps in the backward");
    options_.step_in_backward = false;
    options_.kernels.channels_last = true;
    expect_exact(name, "laid out channels-last");
    options_.kernels.channels_last = false;
    if (model(name).blocks().empty()) continue;
    options_.recompute = {"all"};
    expect_exact(name, "recomputed");
    options_.recompute = {};
    options_.offload = {"all"};
    expect_exact(name, "offloaded");
    options_.offload = {};
  }
}

TEST_F(ExactPlan, OfSixteenBits) {
  for (const auto& name : kModels) {
    for (const char* precision : {"bf16", "fp16", "bf16-true"}) {
      options_.precision = precision;
      for (const int64_t batch : {7, 50}) {
        options_.batch = batch;
        expect_exact(name,
                     std::string("in ") + precision + " and batches of " + std::to_string(batch));
      }
    }
  }
}

// Weights of some MiB lie in segments with others, and what a conversion leaves there is not split.
TEST_F(ExactPlan, OfWideModels) {
  options_.batch = 16;
  for (const auto& [name, width] :
       std::map<std::string, int64_t>{{"resnet9", 128}, {"resnet18", 64}, {"gpt", 512}}) {
    width_ = width;
    options_.precision = "bf16-true";
    expect_exact(name, "of weights of 16 bits");
    options_.precision = "fp32";
    options_.kernels.channels_last = true;
    expect_exact(name, "laid out channels-last");
    options_.kernels.channels_last = false;
    Learner made = learner(name);
    made.freeze();
    expect_exact(made, name + " frozen");
    made.unfreeze();
    expect_exact(made, name + " unfrozen");
    made.purge({.clear_opt = false});
    expect_exact(made, name + " with the optimizer's state");
    made.purge();
    expect_exact(made, name + " purged");
  }
}

// The probability of dropout, and validations, choose among the kernels.
TEST_F(ExactPlan, OfAttentionWithEachDropout) {
  for (const char* name : {"gpt", "vit"})
    for (const char* precision : {"fp32", "bf16", "fp16"}) {
      options_.precision = precision;
      for (const double dropout : {0.0, 0.1, 0.125})
        for (const int64_t batch : {7, 100}) {
          dropout_ = dropout;
          options_.batch = batch;
          expect_exact(name, std::string("in ") + precision + " with dropout " +
                                 std::to_string(dropout) + " and batches of " +
                                 std::to_string(batch));
        }
    }
}

// Six features are no multiple of what the memory-efficient kernel takes from Ampere on.
TEST_F(ExactPlan, OfAttentionByProducts) {
  width_ = 24;
  for (const double dropout : {0.0, 0.1})
    for (const int64_t batch : {7, 50}) {
      dropout_ = dropout;
      options_.batch = batch;
      expect_exact("gpt", "with heads of 6 features, dropout " + std::to_string(dropout));
    }
}

// The peak is where the backward casts the gradient of a large weight.
TEST_F(ExactPlan, OfSixteenBitsWithALargeWeight) {
  options_.batch = 64;
  for (const char* precision : {"bf16", "fp16", "bf16-true"}) {
    options_.precision = precision;
    options_.micro_batch = {};
    expect_exact("wide", std::string("in ") + precision);
    for (const int64_t part : {5, 16, 31}) {
      options_.micro_batch = part;
      expect_exact(
          "wide", std::string("in ") + precision + " and micro-batches of " + std::to_string(part));
      expect_exact(
          "mlp", std::string("in ") + precision + " and micro-batches of " + std::to_string(part));
    }
  }
}

TEST_F(ExactPlan, OfFrozenWeightsOfEightBits) {
  options_.frozen_weights = "fp8";
  for (const auto& name : kModels) {
    if (model(name).blocks().empty()) continue;
    // Without values the gradients are not finite, which the scaler of fp16 refuses.
    for (const char* precision : {"fp32", "bf16", "bf16-true"}) {
      options_.precision = precision;
      Learner made = learner(name);
      made.freeze();
      expect_exact(made, name + " frozen in fp8, computed in " + precision);
    }
  }
}

// Weights that are converted lie where earlier ones lay, in blocks of the small and the large pool.
TEST_F(ExactPlan, OfWideFrozenWeightsOfEightBits) {
  options_.batch = 16;
  options_.frozen_weights = "fp8";
  for (const auto& [name, width] :
       std::map<std::string, int64_t>{{"resnet9", 128}, {"resnet18", 64}, {"gpt", 512}})
    for (const char* precision : {"fp32", "bf16-true"})
      for (const bool clears : {true, false}) {
        if (!deep() && clears == (precision == std::string("fp32"))) continue;
        width_ = width;
        options_.precision = precision;
        Learner made = learner(name);
        const std::string what =
            name + " in " + precision + (clears ? ", cleared: " : ", with its states: ");
        for (const int64_t first : {-1, 0, -1, 1, 0}) {
          made.freeze_to(first);
          expect_exact(made, what + "from " + std::to_string(first));
          made.purge({.clear_opt = clears});
        }
      }
}

/// Saves inside an epoch.
struct SaveInside final : Callback {
  [[nodiscard]] std::string name() const override { return "save_inside"; }
  Action after_batch(FitContext& context) override {
    if (context.step == 2) context.learner.save("inside");
    return Action::proceed;
  }
};

TEST_F(ExactPlan, OfWideFrozenWeightsOfEightBitsResumed) {
  options_.batch = 16;
  options_.frozen_weights = "fp8";
  width_ = 128;
  for (const int64_t second : {-1, 0, 1})
    for (const bool clears : {true, false}) {
      if (!deep() && clears == (second == 0)) continue;
      Learner made = learner("resnet9", 64);
      made.freeze_to(second == 0 ? -1 : 0);
      made.fit(1);
      made.purge({.clear_opt = clears});
      made.freeze_to(second);
      made.fit(1, {.callbacks = {std::make_shared<SaveInside>()}});
      made.destroy();
      Learner resumed = learner("resnet9", 64);
      resumed.freeze_to(second);
      resumed.load("inside");
      expect_exact(resumed, "resumed from " + std::to_string(second), {}, /*resumes=*/true);
    }
}

TEST_F(ExactPlan, OfBatchesThatAreCopiedAhead) {
  options_.workers = 2;
  for (const auto& name : kModels) {
    expect_exact(name, "with threads of the loader");
    options_.batch = 300;  // two batches, the second one shorter
    expect_exact(name, "with threads of the loader and a batch of 300");
    options_.batch = LearnerOptions{}.batch;
  }
}

/// A recurrent layer of one's own over rows of features.
struct OwnRecurrentImpl : torch::nn::Module {
  OwnRecurrentImpl(bool gru, bool both_ways, double dropout, bool bias) {
    const auto options = [&](auto of) {
      return of.num_layers(2).bidirectional(both_ways).dropout(dropout).bias(bias);
    };
    if (gru)
      gru_layers = register_module("gru", torch::nn::GRU(options(torch::nn::GRUOptions(4, 24))));
    else
      lstm_layers =
          register_module("lstm", torch::nn::LSTM(options(torch::nn::LSTMOptions(4, 24))));
    head = register_module("head", torch::nn::Linear(both_ways ? 48 : 24, 10));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor steps = x.view({x.size(0), 3, 4}).transpose(0, 1);
    const at::Tensor states =
        gru_layers ? std::get<0>(gru_layers(steps)) : std::get<0>(lstm_layers(steps));
    return head(states.select(0, 2));
  }
  torch::nn::GRU gru_layers{nullptr};
  torch::nn::LSTM lstm_layers{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(OwnRecurrent);

TEST_F(ExactPlan, OfRecurrentLayersOfOnesOwn) {
  for (const char* precision : {"fp32", "bf16", "fp16", "bf16-true"})
    for (const bool gru : {false, true})
      for (const bool both_ways : {false, true})
        for (const bool bias : {false, true}) {
          options_.precision = precision;
          backend_->reclaim();
          const auto make = [&] { return Model(OwnRecurrent(gru, both_ways, 0, bias)); };
          Learner made(make(), {.train = set("tabular", 100), .valid = set("tabular", 30)},
                       options_);
          expect_exact(made,
                       std::string(precision) + (gru ? " gru" : " lstm") +
                           (both_ways ? " both ways" : "") + (bias ? "" : " without biases"),
                       make);
        }
}

// The workspaces and the reserve of another card are not known.
TEST_F(ExactPlan, OfRecurrentLayersIsAtLeastForACardElsewhere) {
  const ScopedVariable workspace("STAND_IN_CUDNN_BYTES", std::string("3000000"));
  width_ = 40;
  Learner made = learner("lstm");
  const MemoryPlan elsewhere = made.plan({.device = "cuda:24GiB", .advice = false});
  EXPECT_THAT(elsewhere.not_counted, ::testing::ElementsAre(plan::kRecurrentMemory));
  EXPECT_EQ(elsewhere.at_most_bytes, 0);
  const MemoryPlan here = made.plan({.advice = false});
  EXPECT_GT(here.peak_bytes, elsewhere.peak_bytes);
  expect_exact(made, "lstm with workspaces");
}

// A plan has the longest text in each batch, which the whole of the data has.
TEST_F(ExactPlan, OfPaddedTexts) {
  for (const char* with : {"lengths", "mask"})
    for (const int64_t batch : {60, 16}) {
      options_.batch = batch;
      options_.group_by_length = batch == 16;
      backend_->reclaim();
      Learner made(model("lstm"), {.train = texts(60, {.with = with})}, options_);
      if (batch == 60) {
        expect_exact(made, std::string("lstm of padded texts with ") + with);
        continue;
      }
      const MemoryPlan plan = made.plan({.advice = false});
      const memory::PeakScope peak(device_);
      made.fit(1);
      EXPECT_GE(plan.peak_bytes, peak.peak_above_start_bytes()) << with;
    }
}

// Weights that are lent leave their block and come back to it.
TEST_F(ExactPlan, OfRecurrentWeightsThatLeaveTheirBlock) {
  for (const char* precision : {"fp32", "bf16", "bf16-true"}) {
    options_.precision = precision;
    for (const CallbackPtr& average :
         std::vector<CallbackPtr>{std::make_shared<Ema>(), std::make_shared<Swa>()}) {
      options_.callbacks = {average};
      expect_exact("lstm", std::string("in ") + precision + " with " + average->name());
    }
  }
}

TEST_F(ExactPlan, OfRecurrentWeightsThatAreMovedTogether) {
  Learner made = learner("lstm", 100);
  expect_exact(made, "lstm");
  made.purge({.compact = true});
  expect_exact(made, "lstm after its weights have been moved");
}

TEST_F(ExactPlan, OfTheSecondCard) {
  constexpr size_t kHostAndTwoCards = 3;
  if (memory::devices().size() < kHostAndTwoCards) GTEST_SKIP() << "there is one card";
  use({c10::kCUDA, 1});
  for (const auto& name : kModels) expect_exact(name, "on the second card");
}

// LibTorch keeps the state of dropout from the first training step on to the end of the process.
TEST_F(ExactPlan, OfRecurrentLayersWithDropoutIsABoundForLaterFits) {
  constexpr size_t kHostAndTwoCards = 3;
  if (memory::devices().size() < kHostAndTwoCards)
    GTEST_SKIP() << "the state would be in the way of other tests on the only card";
  use({c10::kCUDA, 1});
  const auto make = [] { return Model(OwnRecurrent(false, true, 0.5, true)); };
  const auto data = set("tabular", 100);
  const auto run = [&] {
    backend_->reclaim();
    Learner made(make(), {.train = data}, options_);
    const MemoryPlan plan = made.plan({.model = make, .advice = false});
    EXPECT_THAT(plan.not_counted, ::testing::IsEmpty());
    const memory::PeakScope peak(device_);
    made.fit(1);
    return std::pair(plan.peak_bytes, peak.peak_above_start_bytes());
  };
  const auto [planned, first] = run();
  EXPECT_EQ(planned, first);
  const auto [planned_again, second] = run();
  EXPECT_EQ(planned_again, planned);
  EXPECT_LE(second, planned);
}

}  // namespace
}  // namespace tare::testing

// Counts on the CUDA stand-in how often a steady step waits for the card.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "contract/traits.h"
#include "learner/fixture.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/gradient_norm.h"
#include "tare/callback/jsonl_log.h"
#include "tare/callback/mixing.h"
#include "tare/callback/tensorboard.h"
#include "tare/callback/throughput.h"
#include "tare/memory/backend.h"
#include "tare/metric/metric.h"
#include "tare/model/registry.h"
#include "tare/optim/optimizer.h"

namespace tare::testing {
namespace {

/// Finds a function of the stand-in; null on a real card, which has no counts.
template <class Function>
Function* function_of(const char* name) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

struct Counts {
  unsigned waits = 0, copies = 0, kernels = 0, graphs = 0;
  /// Whether as much was waited for and copied.
  bool operator==(const Counts& other) const {
    return waits == other.waits && copies == other.copies;
  }
};

class CudaWaits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = memory::CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    waits_ = function_of<unsigned()>("stand_in_waits");
    copies_ = function_of<unsigned()>("stand_in_blocking_copies");
    kernels_ = function_of<unsigned()>("stand_in_launches");
    graphs_ = function_of<unsigned()>("stand_in_graphs");
    if (!waits_ || !copies_ || !kernels_ || !graphs_) GTEST_SKIP() << "a card does not count them";
    options_ = quiet(folder_);
    options_.device = "cuda:0";
    options_.workers = 0;
    options_.batch = 10;
  }

  /// Returns what a fit of so many steps of 10 samples does.
  Counts counts(const std::string& name, int64_t steps) {
    torch::manual_seed(1);
    ModelOptions model{.classes = 10, .sample_shape = {3, 32, 32}};
    if (name == "gpt")
      model = {.classes = 64, .sample_shape = {48}, .width = 64, .layers = 2, .heads = 4};
    DatasetPtr data =
        tensor_dataset(torch::rand({10 * steps, 3, 32, 32}), torch::arange(10 * steps) % 10);
    if (name == "gpt") {
      const auto tokens = torch::randint(64, {10 * steps, 48});
      data = tensor_dataset(tokens, tokens.roll(-1, 1));
    }
    Learner learner(models::make(name, model), Splits{.train = data}, options_);
    const Counts before{waits_(), copies_(), kernels_(), graphs_()};
    learner.fit(1);
    return {waits_() - before.waits, copies_() - before.copies, kernels_() - before.kernels,
            graphs_() - before.graphs};
  }
  /// Expects that ten more steps of a fit neither wait nor copy through the processor.
  void expect_none(const std::string& name, const std::string& what) {
    const Counts few = counts(name, 4), many = counts(name, 14);
    EXPECT_EQ(many.waits, few.waits) << name << ' ' << what;
    EXPECT_EQ(many.copies, few.copies) << name << ' ' << what;
  }

  unsigned (*waits_)() = nullptr;
  unsigned (*copies_)() = nullptr;
  unsigned (*kernels_)() = nullptr;
  unsigned (*graphs_)() = nullptr;
  LearnerOptions options_;
  TempDir folder_;
};

// LibTorch copies parts of a matrix so.
TEST_F(CudaWaits, CountCopiesOfRowsToo) {
  auto* const copy_rows =
      function_of<int(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, int kind, void* stream)>("cudaMemcpy2DAsync");
  const std::array<char, 6> from{1, 2, 3, 4, 5, 6};
  std::array<char, 4> to{};
  const unsigned before = copies_();
  EXPECT_EQ(copy_rows(to.data(), 2, from.data(), 3, 2, 2, /*kind=*/4, nullptr), 0);
  EXPECT_EQ(to, (std::array<char, 4>{1, 2, 4, 5}));
  EXPECT_EQ(copies_(), before + 1);
  const auto pinned = torch::zeros({2, 3}, torch::TensorOptions().pinned_memory(true));
  EXPECT_EQ(copy_rows(pinned.data_ptr(), 8, pinned.data_ptr(), 8, 8, 1, /*kind=*/4, nullptr), 0);
  EXPECT_EQ(copies_(), before + 1);
}

// Both fits wait once an epoch for as much, such as for the losses of the log.
TEST_F(CudaWaits, ASteadyStepHasNone) {
  for (const char* name : {"mlp", "resnet9", "gpt"})
    for (const char* precision : {"fp32", "bf16", "bf16-true"})
      for (const int64_t workers : {0, 2}) {
        options_.precision = precision;
        options_.workers = workers;
        expect_none(name, std::string(precision) + " with " + std::to_string(workers) +
                              " threads of the loader");
      }
}

// The first steps are done kernel by kernel, and the third is recorded.
TEST_F(CudaWaits, ARecordedStepIsOneGraphAndAFewKernels) {
  for (const char* name : {"mlp", "resnet9", "gpt"}) {
    options_.graph = false;
    const unsigned without = (counts(name, 14).kernels - counts(name, 4).kernels) / 10;
    options_.graph = true;
    expect_none(name, "recorded");
    const Counts few = counts(name, 4), many = counts(name, 14);
    EXPECT_EQ(few.graphs, 2) << name;
    EXPECT_EQ(many.graphs, 12) << name;
    const unsigned with = (many.kernels - few.kernels) / 10;
    std::printf("%s: %u kernels a step, %u beside a recorded one\n", name, without, with);
    EXPECT_GT(without, 15) << name;
    EXPECT_LT(with, 5) << name;
  }
}

TEST_F(CudaWaits, AStepOfAnyOptimizerHasNone) {
  for (const auto& kind : optimizer_kinds()) {
    options_.optimizer = {.kind = kind};
    for (const char* precision : {"fp32", "bf16-true"}) {
      options_.precision = precision;
      expect_none("mlp", kind + " in " + precision);
    }
  }
}

TEST_F(CudaWaits, AStepWithClippedGradientsHasNone) {
  options_.clip = {.norm = 1};
  expect_none("resnet9", "with clipped norms");
  options_.clip = {.value = 1};
  expect_none("resnet9", "with clipped values");
}

// What counts in a part of a batch is known from the labels on the host.
TEST_F(CudaWaits, AStepWithWeightsOfClassesHasNone) {
  options_.loss = {
      "cross_entropy",
      CrossEntropyOptions{.label_smoothing = 0.1, .class_weights = std::vector<double>(10, 2)}};
  for (const int64_t workers : {0, 2})
    for (const std::optional<int64_t> part : {std::optional<int64_t>(), {4}}) {
      options_.workers = workers;
      options_.micro_batch = part;
      expect_none("resnet9", "with weights of the classes");
    }
}

TEST_F(CudaWaits, AStepThatNeedsLessHasNone) {
  for (const int64_t workers : {0, 2}) {
    options_.workers = workers;
    options_.micro_batch = 4;
    for (const char* name : {"mlp", "resnet9", "gpt"}) expect_none(name, "in micro-batches");
    options_.micro_batch = {};
    for (const char* name : {"resnet9", "gpt"}) {
      options_.recompute = {"all"};
      expect_none(name, "recomputed");
      options_.offload = {"all"};
      expect_none(name, "recomputed and offloaded");
      options_.recompute = {};
      expect_none(name, "offloaded");
      options_.offload = {};
      options_.step_in_backward = true;
      expect_none(name, "with steps in the backward");
      options_.step_in_backward = false;
    }
  }
}

TEST_F(CudaWaits, AStepOfMixedBatchesHasNone) {
  for (const bool of_boxes : {false, true})
    for (const int64_t workers : {0, 2}) {
      options_.workers = workers;
      options_.callbacks = {of_boxes ? CallbackPtr(std::make_shared<Cutmix>(MixingOptions{}, 10))
                                     : std::make_shared<Mixup>(MixingOptions{}, 10)};
      expect_none("resnet9", options_.callbacks.front()->name());
    }
}

// States stay on the card until a value is asked for, once in a validation.
TEST_F(CudaWaits, ABatchOfAValidationHasNoneWithAnyMetric) {
  options_.metrics.clear();
  const auto counts = [&](bool of_values, int64_t batches) {
    const auto input = torch::rand({10 * batches, 8});
    const DatasetPtr data =
        tensor_dataset(input, of_values ? input : torch::arange(10 * batches) % 8);
    Learner learner(models::make("mlp", {.classes = 8, .sample_shape = {8}}), {.valid = data},
                    options_);
    const Counts before{waits_(), copies_()};
    (void)learner.validate();
    return Counts{waits_() - before.waits, copies_() - before.copies};
  };
  for (const auto& name : metric_names()) {
    const auto values = {"mae", "mse", "r2", "rmse"};
    const bool of_values = std::ranges::find(values, name) != values.end();
    options_.loss = of_values ? "mse" : "cross_entropy";
    options_.metrics = {name};
    EXPECT_EQ(counts(of_values, 4), counts(of_values, 14)) << name;
  }
}

// Losses and norms of an epoch are read at its end.
TEST_F(CudaWaits, AStepWithCallbacksThatMeasureHasNone) {
  const auto counted = [&](int64_t steps) {
    options_.callbacks = {std::make_shared<Ema>(), std::make_shared<GradientNorm>(),
                          std::make_shared<TensorBoard>(TensorBoardOptions{.every = 1}),
                          std::make_shared<JsonlLog>(JsonlLogOptions{.every = 1}),
                          std::make_shared<Throughput>(ThroughputOptions{.flops = true})};
    return counts("mlp", steps);
  };
  EXPECT_EQ(counted(4), counted(14));
}

TEST_F(CudaWaits, StopOnNanLooksAtTheLossOnceIn16Steps) {
  const unsigned few = counts("mlp", 8).waits;
  EXPECT_EQ(counts("mlp", 8 + 64).waits, few + 4);
}

TEST_F(CudaWaits, AStepOfFp16WaitsForItsOverflow) {
  if (!memory::kernels_compute()) return;  // what no kernel has looked for may be there
  options_.precision = "fp16";
  const Counts few = counts("mlp", 4), many = counts("mlp", 14);
  EXPECT_EQ(many.waits, few.waits + 10);
}

}  // namespace
}  // namespace tare::testing

// Counts on the CUDA stand-in how often a steady step waits for the card.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "contract/traits.h"
#include "learner/fixture.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/gradient_norm.h"
#include "tare/callback/jsonl_log.h"
#include "tare/callback/tensorboard.h"
#include "tare/memory/backend.h"
#include "tare/metric/metric.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

/// Finds a count of the stand-in; null on a real card.
unsigned (*count_of(const char* name))() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return library ? reinterpret_cast<unsigned (*)()>(dlsym(library, name)) : nullptr;
}

struct Counts {
  unsigned waits = 0, copies = 0;
  bool operator==(const Counts&) const = default;
};

class CudaWaits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = memory::CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    waits_ = count_of("stand_in_waits");
    copies_ = count_of("stand_in_blocking_copies");
    if (!waits_ || !copies_) GTEST_SKIP() << "a card does not count them";
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
    const Counts before{waits_(), copies_()};
    learner.fit(1);
    return {waits_() - before.waits, copies_() - before.copies};
  }

  unsigned (*waits_)() = nullptr;
  unsigned (*copies_)() = nullptr;
  LearnerOptions options_;
  TempDir folder_;
};

// Both fits wait once an epoch for as much, such as for the losses of the log.
TEST_F(CudaWaits, ASteadyStepHasNone) {
  for (const char* name : {"mlp", "resnet9", "gpt"})
    for (const char* precision : {"fp32", "bf16", "bf16-true"})
      for (const int64_t workers : {0, 2}) {
        options_.precision = precision;
        options_.workers = workers;
        EXPECT_EQ(counts(name, 4), counts(name, 14))
            << name << ' ' << precision << " with " << workers << " threads of the loader";
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
                          std::make_shared<JsonlLog>(JsonlLogOptions{.every = 1})};
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

// Copies beside the computation of a card, where the stand-in does them as late as a card may
// (STAND_IN_LAG): what is read too early, or given to somebody else too early, has other numbers.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdlib>
#include <functional>
#include <vector>

#include "contract/traits.h"
#include "learner/fixture.h"
#include "tare/memory/backend.h"
#include "tare/memory/offload.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

using Traits = memory::CudaTraits;

class LateCopies : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
  }

  [[nodiscard]] static torch::Tensor on_card(float value) {
    return torch::full({kElements}, value, torch::TensorOptions(Traits::device()));
  }
  /// Takes the memory that has become free, and expects that nobody else writes there.
  static void expect_free_memory_is_free(const std::vector<int64_t>& sizes) {
    constexpr int kBlocks = 32;  // more than there are
    std::vector<torch::Tensor> taken;
    for (int i = 0; i < kBlocks; ++i)
      taken.push_back(torch::full(sizes, 7.0, torch::TensorOptions(Traits::device())));
    memory::backend(Traits::device()).reclaim();  // waits for all copies
    for (const auto& tensor : taken) EXPECT_TRUE(tensor.eq(7).all().item<bool>());
  }

  static constexpr int64_t kElements = 1 << 18;
};

/// Returns what a copy on another stream reads of a tensor that is freed meanwhile. `recorded`: the
/// allocator knows of the other stream.
float read_beside(torch::Tensor& tensor, bool recorded, const std::function<void()>& meanwhile) {
  const c10::impl::VirtualGuardImpl card(c10::kCUDA);
  const c10::Stream side = card.getNewStream(Traits::device());
  c10::Event written(c10::kCUDA);
  written.record(card.getStream(Traits::device()));
  written.block(side);
  const auto host = torch::empty(tensor.sizes(), torch::TensorOptions().pinned_memory(true));
  {
    const c10::StreamGuard on(side);
    host.copy_(tensor, /*non_blocking=*/true);
  }
  if (recorded) tensor.record_stream(side);
  tensor.reset();
  meanwhile();
  card.synchronizeStream(side);
  return host[0].item<float>();
}

TEST_F(LateCopies, ReadABlockThatNobodyElseGetsMeanwhile) {
  torch::Tensor first = on_card(1), second;
  EXPECT_EQ(read_beside(first, true, [&] { second = on_card(2); }), 1);
}

// The other tests can fail.
TEST_F(LateCopies, OfTheStandInReadABlockThatWasFreedTooEarly) {
  if (!std::getenv("STAND_IN_LAG")) GTEST_SKIP() << "only the stand-in is late whenever it may be";
  torch::Tensor first = on_card(1), second;
  EXPECT_EQ(read_beside(first, false, [&] { second = on_card(2); }), 2);
}

struct TrainedLate {
  std::vector<double> losses{};
  torch::Tensor weights{};
};

TrainedLate train_with_late_copies(const TempDir& folder, c10::Device device, int64_t workers,
                                   bool offloads) {
  torch::manual_seed(1);
  LearnerOptions options = quiet(folder);
  options.device = device.str();
  options.batch = 8;
  options.workers = workers;
  if (offloads) options.offload = {"all"};
  auto generator = at::detail::createCPUGenerator(3);
  const auto pictures = torch::empty({40, 3, 32, 32}).normal_(0, 1, generator);
  Learner learner(models::make("resnet9", {.classes = 10, .sample_shape = {3, 32, 32}, .width = 4}),
                  {.train = tensor_dataset(pictures, torch::arange(40) % 10),
                   .valid = tensor_dataset(pictures.narrow(0, 0, 16), torch::arange(16) % 10)},
                  options);
  TrainedLate trained;
  for (const auto& row : learner.fit(2).epochs)
    trained.losses.insert(trained.losses.end(), {row.train_loss, row.valid_loss});
  trained.weights = flat(learner.model());
  return trained;
}

TEST_F(LateCopies, OfBatchesAndActivationsGiveTheNumbersOfTheHost) {
  const TempDir folder;
  const auto host = train_with_late_copies(folder, c10::kCPU, 0, false);
  // A card's own kernels add in any order.
  const double rounding = std::getenv("TARE_STAND_IN") ? 0 : 5e-2;
  for (const int64_t workers : {0, 2})
    for (const bool offloads : {false, true}) {
      const auto card = train_with_late_copies(folder, Traits::device(), workers, offloads);
      ASSERT_EQ(card.losses.size(), host.losses.size());
      for (size_t i = 0; i < host.losses.size(); ++i)
        EXPECT_NEAR(card.losses[i], host.losses[i], rounding)
            << workers << " threads, " << (offloads ? "offloaded" : "kept") << ", loss " << i;
      EXPECT_LE((card.weights - host.weights).norm().item<double>(),
                rounding * host.weights.norm().item<double>());
    }
}

TEST_F(LateCopies, OfABatchThatNobodyTakesEndBeforeItsMemoryIsFree) {
  struct StopAtTheSecond final : Callback {
    [[nodiscard]] std::string name() const override { return "stop"; }
    Action after_batch(FitContext& c) override {
      return c.step == 2 ? Action::stop_fit : Action::proceed;
    }
  };
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.device = Traits::device().str();
  options.batch = 4;
  options.workers = 2;
  options.callbacks = {std::make_shared<StopAtTheSecond>()};
  Learner learner(models::make("mlp", {.classes = 10, .sample_shape = {3, 128, 128}}),
                  {.train = tensor_dataset(torch::rand({32, 3, 128, 128}), torch::arange(32) % 10)},
                  options);
  learner.fit(1);
  expect_free_memory_is_free({4, 3, 128, 128});
}

TEST_F(LateCopies, OfAScopeThatNobodyAsksForEndBeforeItsMemoryIsFree) {
  const auto weights = [] { return on_card(0.5).requires_grad_(); };
  const torch::Tensor first = weights(), second = weights();
  torch::Tensor x = on_card(3);
  for (const torch::Tensor& weight : {first, second}) {
    memory::Offload offload(Traits::device(), {first, second});
    x = (x * weight).sigmoid();
    offload.finish();
  }
  // The scope of `first` comes back ahead of its need, and there is none.
  const auto gradient = torch::autograd::grad({x.sum()}, {second})[0];
  x.reset();
  expect_free_memory_is_free({kElements});
}

}  // namespace
}  // namespace tare::testing

// Weights that lie in many segments of a card's memory keep most of it from everybody else, until a
// purge moves them together. Reported for training loops: 15 to 20 GiB reserved and not usable at
// the second step.
#include <gtest/gtest.h>

#include "contract/traits.h"
#include "learner/fixture.h"
#include "tare/memory/backend.h"

namespace tare::testing {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;
constexpr int64_t kSegments = 18, kWeightBytes = 2 * kMiB;

at::Tensor bytes_on_card(int64_t bytes) {
  return torch::empty({bytes}, at::TensorOptions(memory::CudaTraits::device()).dtype(torch::kByte));
}

/// A model whose weights were made while most of the card was in use: each is in a segment of 1
/// GiB.
struct ScatteredImpl : torch::nn::Module {
  ScatteredImpl() {
    std::vector<at::Tensor> beside;
    for (int64_t i = 0; i < kSegments; ++i) {
      bytes_on_card(kGiB).reset();  // a segment that is free, the only one
      const auto weight = torch::zeros({kWeightBytes / 4}, memory::CudaTraits::device());
      weights.push_back(register_parameter("w" + std::to_string(i), weight));
      beside.push_back(bytes_on_card(kGiB - kWeightBytes));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = x;
    for (const auto& weight : weights) y = y + weight.mean();
    return y;
  }
  std::vector<at::Tensor> weights;
};
TORCH_MODULE(Scattered);

TEST(CudaFragments, APurgeMovesWeightsAndStateTogether) {
  if (const auto reason = memory::CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
  auto& backend = memory::backend(memory::CudaTraits::device());
  if (backend.memory_info().available_bytes < 26 * kGiB) GTEST_SKIP() << "the card is too small";
  backend.warm();
  backend.reclaim();
  const int64_t before = backend.usage().reserved_bytes;
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.device = "cuda:0";
  options.loss = "mse";
  options.metrics.clear();
  options.stop_on_nan = memory::kernels_compute();
  const auto data = tensor_dataset(torch::rand({64, 1}), torch::rand({64, 1}));
  Learner learner(Model(Scattered()), {.train = data}, options);
  learner.fit(1);
  EXPECT_GT(backend.usage().fragmented_bytes, 15 * kGiB);

  backend.set_budget(before + 24 * kGiB);
  EXPECT_THROW((void)bytes_on_card(10 * kGiB), c10::OutOfMemoryError);
  const PurgeReport report = learner.purge({.clear_opt = false});
  EXPECT_TRUE(report.compacted);
  // Weights and two states of AdamW.
  EXPECT_LE(backend.usage().reserved_bytes - before, 3 * kSegments * kWeightBytes + 20 * kMiB);
  bytes_on_card(10 * kGiB).reset();
  learner.fit(1);
  backend.set_budget({});
  learner.destroy();
  backend.reclaim();
  EXPECT_EQ(backend.usage().reserved_bytes, before);
}

}  // namespace
}  // namespace tare::testing

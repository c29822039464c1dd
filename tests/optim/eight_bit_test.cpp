// AdamW with moments of 8 bits: blocks, bytes, and how near it stays to AdamW.
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "optim/support.h"
#include "tare/base/error.h"
#include "tare/optim/fused.h"

namespace tare {
namespace {

using testing::all_of_8_bits;

/// A weight whose last block is not full, with gradients of several sizes.
struct BlockRun {
  explicit BlockRun(const OptimizerOptions& options, bool with_tensors = false,
                    c10::ScalarType type = c10::kFloat)
      : weight(torch::linspace(-1, 1, 900, type).view({3, 300}).requires_grad_(true)) {
    std::vector<ParameterGroup> groups(1);
    groups[0] = {.parameters = {{.name = "w", .tensor = weight}},
                 .lr = options.lr,
                 .momentum = momentum_of(options),
                 .weight_decay = options.weight_decay};
    optimizer = make_optimizer(options, groups, with_tensors);
  }
  void step(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      const auto at = torch::arange(900, torch::kFloat).view({3, 300});
      const auto gradient = torch::sin(at * 0.37 + static_cast<double>(i) * 0.2) *
                            torch::pow(10.0, torch::remainder(at, 3) - 2);
      weight.mutable_grad() = gradient.to(weight.scalar_type());
      optimizer->step();
    }
  }
  torch::Tensor weight;
  std::unique_ptr<Optimizer> optimizer;
};

double distance(const torch::Tensor& a, const torch::Tensor& b) {
  return (a.detach().to(torch::kDouble) - b.detach().to(torch::kDouble)).abs().max().item<double>();
}

TEST(EightBits, StayNearAdamW) {
  BlockRun eight(all_of_8_bits(1e-2)), wide({.kind = "adamw", .lr = 1e-2});
  const auto before = eight.weight.detach().clone();
  eight.step(50);
  wide.step(50);
  const double moved = (wide.weight.detach() - before).abs().mean().item<double>();
  const double apart = (wide.weight.detach() - eight.weight.detach()).abs().mean().item<double>();
  EXPECT_GT(moved, 0.05);
  EXPECT_LT(apart, 0.1 * moved) << "the codes have a relative error of a few percent";
}

TEST(EightBits, TensorsGiveWhatTheWalkOverMemoryGives) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    BlockRun walked(all_of_8_bits(1e-2), false, type), computed(all_of_8_bits(1e-2), true, type);
    EXPECT_TRUE(walked.optimizer->steps_atomically());
    EXPECT_FALSE(computed.optimizer->steps_atomically());
    walked.step(1);
    computed.step(1);
    EXPECT_LT(distance(walked.weight, computed.weight), 1e-6);
    for (size_t i = 0; i < walked.optimizer->state().size(); ++i) {
      const auto a = walked.optimizer->state()[i], b = computed.optimizer->state()[i];
      EXPECT_LE(distance(a.tensor, b.tensor), a.tensor.scalar_type() == torch::kByte ? 1 : 1e-6)
          << a.name << ": a number in the middle of two may become either";
    }
    walked.step(20);
    computed.step(20);
    EXPECT_LT(distance(walked.weight, computed.weight), 1e-2);
  }
}

TEST(EightBits, TakeAQuarterOfTheBytesAndAScaleForEachBlock) {
  BlockRun run(all_of_8_bits());
  run.optimizer->prepare();
  std::map<std::string, int64_t> bytes;
  for (const auto& [name, tensor] : run.optimizer->state())
    bytes[name] = static_cast<int64_t>(tensor.nbytes());
  const std::map<std::string, int64_t> expected{{"exp_avg/w", 900},
                                                {"exp_avg_sq/w", 900},
                                                {"exp_avg_scale/w", 4 * 4},
                                                {"exp_avg_sq_scale/w", 4 * 4},
                                                {"step/w", 4}};
  EXPECT_EQ(bytes, expected);
}

TEST(EightBits, SmallParametersKeepFloat32AndStepAsAdamW) {
  BlockRun small({.kind = "adamw8bit", .lr = 1e-2}), wide({.kind = "adamw", .lr = 1e-2});
  small.step(10);
  wide.step(10);
  EXPECT_EQ(distance(small.weight, wide.weight), 0);
  EXPECT_EQ(small.optimizer->state().front().tensor.scalar_type(), torch::kFloat);
}

// Without the floor a mean square beside a far greater one would become 0, and the next step would
// divide by eps alone.
TEST(EightBits, AMeanSquareAboveZeroStaysAboveZero) {
  for (const bool with_tensors : {false, true}) {
    BlockRun run(all_of_8_bits(1e-3), with_tensors);
    auto gradient = torch::full({3, 300}, 1e-6);
    gradient[0][0] = 100;
    run.weight.mutable_grad() = gradient;
    run.optimizer->step();
    for (const auto& [name, tensor] : run.optimizer->state())
      if (name == "exp_avg_sq/w") {
        EXPECT_EQ(tensor.min().item<int>(), 1) << with_tensors;
      }
    const auto before = run.weight.detach().clone();
    run.weight.mutable_grad() = torch::zeros({3, 300});
    run.optimizer->step();
    EXPECT_LT(distance(run.weight, before), 3e-3) << with_tensors;
  }
}

TEST(EightBits, AGradientThatIsNoNumberShows) {
  BlockRun run(all_of_8_bits());
  run.weight.mutable_grad() = torch::full({3, 300}, std::nan(""));
  run.optimizer->step();
  EXPECT_TRUE(run.weight.isnan().all().item<bool>());
}

TEST(EightBits, ARestoredStateContinuesBitForBit) {
  BlockRun straight(all_of_8_bits(1e-2)), resumed(all_of_8_bits(1e-2));
  straight.step(5);
  {
    const torch::NoGradGuard no_grad;
    resumed.weight.copy_(straight.weight);
  }
  std::vector<NamedTensor> saved = straight.optimizer->state();
  for (auto& entry : saved) entry.tensor = entry.tensor.clone();
  EXPECT_TRUE(resumed.optimizer->load_state(saved).empty());
  straight.step(5);
  resumed.step(5);
  EXPECT_EQ(distance(straight.weight, resumed.weight), 0);
  saved.front().tensor = saved.front().tensor.to(torch::kFloat);
  EXPECT_THROW((void)resumed.optimizer->load_state(saved), ShapeError)
      << "the state of adamw has other numbers in a buffer of this name";
}

}  // namespace
}  // namespace tare

// Blocks that recompute, offload or both: the same output, gradients, buffers and generators, bit
// for bit; with recompute with less memory between forward and backward.
#include "tare/model/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/model/precision.h"
#include "tare/model/registry.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t tracked() { return memory::backend(c10::kCPU).usage().allocated_bytes; }

struct Subject {
  const char* name;
  ModelOptions options;
  /// Not if one block is most of the model: its second forward is the peak then.
  bool lower_peak = true;
};
void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

class BlocksOfModel : public ::testing::TestWithParam<Subject> {
 protected:
  struct Outcome {
    torch::Tensor output{};
    std::vector<torch::Tensor> tensors{};  // gradients, buffers, what the generator gives next
    int64_t saved_bytes = 0, peak_bytes = 0;
  };

  [[nodiscard]] static torch::Tensor input(int64_t samples = 8) {
    auto generator = at::detail::createCPUGenerator(3);
    if (std::string(GetParam().name) == "gpt") return torch::randint(16, {samples, 12}, generator);
    auto shape = GetParam().options.sample_shape;
    shape.insert(shape.begin(), samples);
    return torch::empty(shape).normal_(0, 1, generator);
  }

  /// One forward and backward in training mode, after `set_up`.
  [[nodiscard]] static Outcome run(const std::vector<std::string>& recompute,
                                   const std::function<void(Model&)>& set_up = {},
                                   int64_t samples = 8) {
    torch::manual_seed(1);
    Model model = models::make(GetParam().name, GetParam().options);
    model.set_recompute(recompute);
    if (set_up) set_up(model);
    model.train(true);
    const torch::Tensor x = input(samples);
    torch::manual_seed(2);
    Outcome outcome;
    const memory::PeakScope peak(c10::kCPU);
    const int64_t before = tracked();
    auto loss = [&] {
      outcome.output = model.forward(x);
      return outcome.output.square().mean();
    }();
    outcome.saved_bytes = tracked() - before;
    loss.backward();
    outcome.peak_bytes = peak.peak_above_start_bytes();
    outcome.output = outcome.output.detach();
    for (const auto& parameter : model.parameters())
      outcome.tensors.push_back(parameter.tensor.grad());
    for (const auto& buffer : model.buffers()) outcome.tensors.push_back(buffer.tensor);
    outcome.tensors.push_back(torch::rand({4}));
    return outcome;
  }

  static void expect_equal(const Outcome& a, const Outcome& b) {
    EXPECT_TRUE(torch::equal(a.output, b.output));
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (size_t i = 0; i < a.tensors.size(); ++i) {
      ASSERT_EQ(a.tensors[i].defined(), b.tensors[i].defined()) << "tensor " << i;
      if (!a.tensors[i].defined()) continue;
      EXPECT_TRUE(torch::equal(a.tensors[i], b.tensors[i])) << "tensor " << i;
    }
  }
};

TEST_P(BlocksOfModel, IsBitEqualWithLessMemory) {
  const int64_t before = tracked();
  {
    const Outcome kept = run({}), recomputed = run({"all"});
    expect_equal(kept, recomputed);
    EXPECT_LT(recomputed.saved_bytes, kept.saved_bytes * 2 / 3);
    // So many samples that activations outweigh the scratch memory of convolutions, in which
    // processors differ.
    constexpr int64_t kSamples = 64;
    if (GetParam().lower_peak) {
      EXPECT_LT(run({"all"}, {}, kSamples).peak_bytes, run({}, {}, kSamples).peak_bytes);
    }
  }
  EXPECT_EQ(tracked(), before) << "a graph was kept";
}

TEST_P(BlocksOfModel, IsBitEqualWithFrozenLayers) {
  const auto freeze = [](Model& model) {
    const auto groups = static_cast<int64_t>(model.layer_groups().size());
    for (const auto& parameter : model.parameters())
      if (parameter.group < groups / 2) torch::Tensor(parameter.tensor).set_requires_grad(false);
  };
  expect_equal(run({}, freeze), run({"all"}, freeze));
}

// So many samples that tensors are large enough to move.
TEST_P(BlocksOfModel, IsBitEqualOffloaded) {
  const int64_t before = tracked(), samples = 96;
  {
    const auto move = [](Model& model) { model.set_offload({"all"}); };
    const Outcome kept = run({}, {}, samples);
    expect_equal(kept, run({}, move, samples));
    expect_equal(kept, run({"all"}, move, samples));
    const AutocastScope autocast(AutocastState{.enabled = true});
    expect_equal(run({}, {}, samples), run({}, move, samples));
  }
  EXPECT_EQ(tracked(), before) << "a graph was kept";
}

TEST_P(BlocksOfModel, IsBitEqualInReducedPrecision) {
  const auto in_bf16 = [](const std::vector<std::string>& recompute) {
    const AutocastScope autocast(AutocastState{.enabled = true});
    return run(recompute);
  };
  const Outcome kept = in_bf16({});
  EXPECT_EQ(kept.output.scalar_type(), torch::kBFloat16);
  expect_equal(kept, in_bf16({"all"}));
}

TEST_P(BlocksOfModel, KeepsNothingWithoutAGradient) {
  Model model = models::make(GetParam().name, GetParam().options);
  model.set_recompute({"all"});
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(model.forward(input()).grad_fn(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, BlocksOfModel,
    ::testing::Values(
        Subject{"resnet18",
                {.classes = 4, .sample_shape = {3, 32, 32}, .width = 4, .dropout = 0.2}},
        Subject{"resnet50", {.classes = 4, .sample_shape = {3, 32, 32}, .width = 4}},
        Subject{"resnet9", {.classes = 4, .sample_shape = {1, 16, 16}, .width = 4, .dropout = 0.2}},
        Subject{"convnet", {.classes = 4, .sample_shape = {1, 16, 16}, .width = 4}, false},
        Subject{"vit",
                {.classes = 4,
                 .sample_shape = {1, 32, 32},
                 .width = 16,
                 .layers = 3,
                 .heads = 2,
                 .dropout = 0.1}},
        Subject{"unet", {.classes = 4, .sample_shape = {1, 16, 16}, .width = 4}},
        Subject{"mobilenet_v3_small", {.classes = 4, .sample_shape = {3, 32, 32}, .width = 8}},
        Subject{"gpt",
                {.classes = 16,
                 .sample_shape = {12},
                 .width = 16,
                 .layers = 3,
                 .heads = 2,
                 .dropout = 0.1}}),
    [](const auto& subject) { return std::string(subject.param.name); });

// A body with what goes wrong most easily: a buffer that its output depends on, random numbers, a
// second input, a parameter that is not used.
struct HardImpl : torch::nn::Module, Block {
  HardImpl() {
    linear = register_module("linear", torch::nn::Linear(4, 4));
    unused = register_parameter("unused", torch::ones({2}));
    count = register_buffer("count", torch::ones({}));
  }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& scale) {
    const auto body = [this](const torch::Tensor& in, const torch::Tensor& by) {
      ++runs;
      if (fail_at == runs) throw std::runtime_error("no");
      const auto y = linear(in) * count.clone() * by * torch::rand({4});
      const torch::NoGradGuard no_grad;
      count.add_(1);
      return y;
    };
    return in_block(*this, body, x, scale);
  }
  torch::nn::Linear linear{nullptr};
  torch::Tensor unused, count;
  int runs = 0, fail_at = 0;
};
TORCH_MODULE(Hard);

struct HardOutcome {
  std::vector<torch::Tensor> tensors;
  bool operator==(const HardOutcome& other) const {
    return std::ranges::equal(tensors, other.tensors,
                              [](const auto& a, const auto& b) { return torch::equal(a, b); });
  }
};

HardOutcome run_hard(Activations activations, bool input_gradient) {
  torch::manual_seed(1);
  Hard hard;
  hard->set_activations(activations);
  const auto x = torch::rand({3, 4}).set_requires_grad(input_gradient);
  const auto scale = torch::rand({4}).set_requires_grad(true);
  auto y = hard(hard(x, scale), scale);
  y.square().sum().backward();
  EXPECT_FALSE(hard->unused.grad().defined());
  HardOutcome outcome{
      {y.detach(), scale.grad(), hard->linear->weight.grad(), hard->count, torch::rand({4})}};
  if (input_gradient) outcome.tensors.push_back(x.grad());
  return outcome;
}

TEST(Block, RepeatsTheForwardWithItsBuffersAndGenerators) {
  for (const bool input_gradient : {false, true})
    EXPECT_EQ(run_hard(Activations{}, input_gradient),
              run_hard({.recompute = true}, input_gradient));
}

TEST(Block, LeavesBuffersAndGeneratorsAloneIfTheSecondForwardFails) {
  Hard hard;
  hard->set_activations({.recompute = true});
  auto y = hard(torch::rand({3, 4}), torch::rand({4}));
  hard->fail_at = 2;
  torch::manual_seed(4);
  EXPECT_THROW(y.sum().backward(), std::exception);
  EXPECT_EQ(hard->count.item<float>(), 2);
  const auto next = torch::rand({4});
  torch::manual_seed(4);
  EXPECT_TRUE(torch::equal(next, torch::rand({4})));
}

TEST(Block, RefusesABackwardWithOtherWeightsOrAnotherMode) {
  const auto message = [](auto change) {
    Hard hard;
    hard->set_activations({.recompute = true});
    auto y = hard(torch::rand({3, 4}), torch::rand({4})).sum();
    change(*hard);
    try {
      y.backward();
    } catch (const StateError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message([](HardImpl& hard) {
                const torch::NoGradGuard no_grad;
                hard.linear->weight.mul_(2);
              }),
              HasSubstr("have changed since its forward"));
  EXPECT_THAT(message([](HardImpl& hard) { hard.eval(); }), HasSubstr("changed"));
  EXPECT_EQ(message([](HardImpl&) {}), "no error");
}

TEST(Block, RefusesASecondDerivative) {
  Hard hard;
  hard->set_activations({.recompute = true});
  const auto x = torch::rand({3, 4}).set_requires_grad(true);
  auto y = hard(x, torch::rand({4})).sum();
  try {
    (void)torch::autograd::grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true);
    FAIL();
  } catch (const StateError& error) {
    EXPECT_THAT(error.what(), HasSubstr("create_graph"));
  }
}

TEST(Block, IsChosenByItsNameOrOneAbove) {
  Model model = models::make("resnet18", {.sample_shape = {3, 32, 32}, .width = 4});
  const auto recomputing = [&] {
    std::vector<std::string> names;
    for (const auto& item : model.module()->named_modules("", false)) {
      const auto* block = dynamic_cast<Block*>(item.value().get());
      if (block && block->activations().recompute) names.push_back(item.key());
    }
    return names;
  };
  EXPECT_THAT(model.blocks(), ElementsAre("layer1.0", "layer1.1", "layer2.0", "layer2.1",
                                          "layer3.0", "layer3.1", "layer4.0", "layer4.1"));
  model.set_recompute({"layer2", "layer4.1"});
  EXPECT_THAT(recomputing(), ElementsAre("layer2.0", "layer2.1", "layer4.1"));
  model.set_recompute({"all"});
  EXPECT_EQ(recomputing(), model.blocks());
  model.set_recompute({});
  EXPECT_THAT(recomputing(), ElementsAre());
}

TEST(Block, RecomputesAndOffloadsIndependently) {
  Model model = models::make("convnet", {.sample_shape = {1, 16, 16}, .width = 4});
  const auto first = model.blocks().front();
  auto& block = dynamic_cast<Block&>(model.submodule(first));
  model.set_recompute({first});
  model.set_offload({"all"});
  EXPECT_EQ(block.activations(), (Activations{.recompute = true, .offload = true}));
  model.set_recompute({});
  EXPECT_EQ(block.activations(), (Activations{.offload = true}));
}

TEST(Block, RefusesANameWithoutABlock) {
  const auto message = [](const char* family, const std::string& name) {
    Model model = models::make(family, {.sample_shape = {1, 16, 16}, .width = 0});
    EXPECT_THROW(model.set_offload({name}), ConfigError);
    try {
      model.set_recompute({name});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(
      message("resnet9", "layer9"),
      HasSubstr("'layer9' names no block of the model; blocks: prep, layer1, layer2, layer3"));
  EXPECT_THAT(message("mlp", "all"),
              HasSubstr("[recompute] has no effect, because the model has no block that can be "
                        "recomputed: mark its blocks as "
                        "docs/needing-less.md says"));
}

}  // namespace
}  // namespace tare

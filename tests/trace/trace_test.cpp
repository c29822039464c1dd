// Traces on the meta device: what they hold, and what they refuse.
#include "tare/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <thread>

#include "tare/memory/host_allocator.h"
#include "tare/memory/phase.h"
#include "tare/model/registry.h"
#include "trace/support.h"

namespace tare::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

int64_t host_bytes() { return memory::host_allocator::counters().live_bytes; }

TEST(Trace, HoldsBirthsAndFreesInOrder) {
  const Trace trace = plan::trace([] {
    auto a = torch::empty({10});
    const auto b = torch::empty({3}, torch::kLong);
    a = torch::empty({5});
  });
  EXPECT_THAT(sequence(trace), ElementsAre(Pair(0, 40), Pair(1, 24), Pair(2, 20), Pair(0, 0),
                                           Pair(1, 0), Pair(2, 0)));
}

TEST(Trace, LeavesEmptyTensorsOut) {
  EXPECT_TRUE(plan::trace([] { const auto empty = torch::empty({0, 5}); }).events.empty());
}

TEST(Trace, NamesPhaseAndOperator) {
  const Trace trace = plan::trace([] {
    const memory::Phase phase(memory::PhaseKind::forward);
    const auto y = torch::ones({4}).add(torch::ones({4}));
  });
  ASSERT_GE(trace.events.size(), 3u);
  EXPECT_EQ(trace.events[0].phase, static_cast<uint32_t>(memory::PhaseKind::forward));
  EXPECT_EQ(trace.ops[trace.events[2].op], "aten::add");
  EXPECT_EQ(trace.ops[trace.events.back().op], "");
}

TEST(Trace, TakesNoHostMemoryForAModel) {
  const int64_t before = host_bytes();
  std::optional<Model> model;
  const Trace trace = plan::trace([&] { model.emplace(models::make("resnet18", {.width = 8})); });
  EXPECT_EQ(host_bytes(), before);
  EXPECT_TRUE(model->parameters().front().tensor.is_meta());
  EXPECT_GT(trace.events.size(), 100u);
}

TEST(Trace, BlocksMayOutliveItAndBeFreedOnAnotherThread) {
  std::optional<at::Tensor> kept;
  const Trace first = plan::trace([&] { kept = torch::empty({10}); });
  const Trace second = plan::trace([&] { std::thread([&] { kept.reset(); }).join(); });
  EXPECT_THAT(sequence(first), ElementsAre(Pair(0, 40)));
  EXPECT_TRUE(second.events.empty());
}

TEST(Trace, SeesFreesOnAnotherThread) {
  const Trace trace = plan::trace([] {
    std::optional<at::Tensor> tensor = torch::empty({10});
    std::thread([&] { tensor.reset(); }).join();
  });
  EXPECT_THAT(sequence(trace), ElementsAre(Pair(0, 40), Pair(0, 0)));
}

TEST(Trace, RefusesASecondOneMeanwhile) {
  EXPECT_THROW(static_cast<void>(plan::trace([] { static_cast<void>(plan::trace([] {})); })),
               StateError);
}

TEST(Trace, RestoresTheAllocatorAfterAnException) {
  auto* const before = c10::GetAllocator(c10::kMeta);
  EXPECT_THROW(static_cast<void>(plan::trace([] { throw std::runtime_error("no"); })),
               std::runtime_error);
  EXPECT_EQ(c10::GetAllocator(c10::kMeta), before);
  EXPECT_EQ(plan::trace([] { const auto a = torch::empty({1}); }).events.size(), 2u);
}

TEST(Trace, CannotPredictWhatDependsOnAValue) {
  try {
    static_cast<void>(plan::trace([] { static_cast<void>(torch::ones({1}).item<float>()); }));
    FAIL() << "no error";
  } catch (const NotPlannable& error) {
    EXPECT_EQ(error.op(), "aten::_local_scalar_dense");
    EXPECT_THAT(
        error.what(),
        HasSubstr("[plan] the memory cannot be predicted: aten::_local_scalar_dense reads"));
    EXPECT_EQ("[plan] the memory cannot be predicted: " + error.reason(), error.what());
  }
}

TEST(Trace, NamesAnOperatorWithoutShapeOnlyKernel) {
  try {
    static_cast<void>(plan::trace([] { torch::bincount(torch::ones({3}, torch::kLong)); }));
    FAIL() << "no error";
  } catch (const NotPlannable& error) {
    EXPECT_EQ(error.op(), "aten::bincount");
    EXPECT_THAT(error.what(), HasSubstr("has no shape-only kernel"));
  }
}

TEST(Trace, CannotPredictItInsideABackwardPassEither) {
  EXPECT_THROW(
      static_cast<void>(plan::trace([] {
        auto x = torch::ones({3}).requires_grad_();
        x.register_hook([](const at::Tensor& grad) { return grad * grad.sum().item<float>(); });
        x.sum().backward();
      })),
      NotPlannable);
}

TEST(MetaScope, IsOfItsThread) {
  const MetaScope scope;
  c10::Device there = c10::kMeta;
  std::thread([&] { there = torch::ones({2}).device(); }).join();
  EXPECT_EQ(there, c10::kCPU);
  EXPECT_EQ(torch::ones({2}).device(), c10::kMeta);
  EXPECT_EQ(torch::ones({2}, torch::kCPU).device(), c10::kMeta);
}

TEST(MetaScope, LeavesOtherProgramsAlone) {
  { const MetaScope scope; }
  EXPECT_EQ(torch::ones({2}).device(), c10::kCPU);
  EXPECT_EQ(torch::ones({2}).sum().item<float>(), 2);
  const auto meta = torch::empty({2}, torch::kMeta);
  EXPECT_THROW(
      static_cast<void>(at::native_batch_norm(meta.view({1, 2}), {}, {}, {}, {}, true, 0.1, 1e-5)),
      c10::Error);  // LibTorch has no kernel of its own, and ours is for MetaScope
}

// Convolutions, both walks of batch norm, layer norm and attention, and their backward passes.
void train_a_mixture(bool channels_last) {
  namespace F = torch::nn::functional;
  const auto format =
      channels_last ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
  const auto images = torch::empty({32, 3, 12, 12}).contiguous(format);
  const auto weight = torch::empty({8, 3, 3, 3}).requires_grad_(),
             up = torch::empty({8, 6, 2, 2}).requires_grad_(),
             bias = torch::empty({6}).requires_grad_(), scale = torch::empty({6}).requires_grad_();
  auto x = F::conv2d(images, weight, F::Conv2dFuncOptions().stride(2).padding(1));
  x = F::conv_transpose2d(x, up, F::ConvTranspose2dFuncOptions().stride(2).bias(bias));
  x = F::batch_norm(x, {}, {}, F::BatchNormFuncOptions().weight(scale).bias(bias).training(true));
  x = F::layer_norm(x, F::LayerNormFuncOptions({12, 12}));
  x = at::scaled_dot_product_attention(x, x, x);
  x.sum().backward();
}

TEST(Trace, OfACardDependsOnNoProcessorAndNoThreads) {
  for (const bool channels_last : {false, true}) {
    const auto with = [&](int threads, Machine machine) {
      at::set_num_threads(threads);
      return sequence(plan::trace([&] { train_a_mixture(channels_last); }, machine));
    };
    const auto one = with(1, Machine::card), four = with(4, Machine::card);
    EXPECT_EQ(one, four);
    EXPECT_NE(with(1, Machine::host), with(4, Machine::host)) << "the host's threads have scratch";
    at::set_num_threads(1);
  }
}

TEST(Trace, OfACardsConvolutionHasItsResultsAndNothingElse) {
  const auto run = [] {
    const auto input = torch::empty({4, 2, 9, 9}).requires_grad_(),
               weight = torch::empty({6, 2, 3, 3}).requires_grad_(),
               bias = torch::empty({6}).requires_grad_();
    mark("forward");
    const auto output = torch::conv2d(input, weight, bias, {2, 2}, {1, 1});
    EXPECT_EQ(output.sizes(), (std::vector<int64_t>{4, 6, 5, 5}));
    mark("done");
  };
  const Trace trace = plan::trace(run, Machine::card);
  ASSERT_EQ(trace.at("done") - trace.at("forward"), 1u);
  EXPECT_EQ(trace.events[trace.at("forward")].bytes, 4 * 6 * 5 * 5 * 4);
}

TEST(Trace, OfACardNamesWhatARecurrentLayerTakesBesides) {
  constexpr Machine kTuring{.capability = 75};
  const auto run = [](c10::ScalarType type) {
    torch::nn::LSTM layer(torch::nn::LSTMOptions(4, 8));
    layer->to(type);
    static_cast<void>(layer(torch::empty({5, 3, 4}, type)));
  };
  EXPECT_NO_THROW(static_cast<void>(plan::trace([&] { run(torch::kFloat); })));
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    EXPECT_THAT(not_counted_on_card(plan::trace([&] { run(type); }, Machine::card)),
                ElementsAre(HasSubstr("cuDNN's recurrent layers")));
  EXPECT_NO_THROW(static_cast<void>(plan::trace([&] { run(torch::kHalf); }, kTuring)));
  try {
    static_cast<void>(plan::trace([&] { run(torch::kBFloat16); }, kTuring));
    FAIL() << "cuDNN has no such layer";
  } catch (const NotPlannable& error) {
    EXPECT_THAT(error.what(), HasSubstr("plan in float32, and with cuDNN"));
  }
}

TEST(Trace, PlansABatchThatNoMachineHolds) {
  constexpr int64_t kBatch = 1 << 22;
  const Trace trace = plan::trace([] {
    auto model = models::make("convnet");
    const auto output = model.forward(torch::empty({kBatch, 1, 28, 28}));
  });
  int64_t largest = 0;
  for (const Event& event : trace.events) largest = std::max(largest, event.bytes);
  EXPECT_GE(largest, kBatch * 16 * 28 * 28 * 4);  // what block1 gives: 196 GiB
}

}  // namespace
}  // namespace tare::plan

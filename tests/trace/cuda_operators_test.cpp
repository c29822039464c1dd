// Compares the allocations of sums and attention on a card with their traces, played back on it.
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/var_mean.h>
#include <gmock/gmock.h>
#include <torch/autograd.h>
#include <torch/nn.h>
#include <torch/types.h>

#include <functional>
#include <numeric>
#include <random>

#include "contract/traits.h"
#include "support/environment.h"
#include "tare/memory/backend.h"
#include "tare/memory/event_log.h"
#include "tare/trace/card_sum.h"
#include "tare/trace/card_workspace.h"
#include "tare/trace/estimate.h"
#include "tare/trace/flat_weights.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/target.h"
#include "tare/trace/trace.h"

namespace tare::plan {
namespace {

class CudaOperators : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = memory::CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
  }
  static memory::DeviceBackend& backend() { return memory::backend(memory::CudaTraits::device()); }
};

/// The sizes of the blocks that the work allocates on the card, in order.
std::vector<int64_t> allocated(const std::function<void()>& work) {
  const memory::EventLog log({.device = memory::CudaTraits::device()});
  work();
  std::vector<int64_t> sizes;
  for (const auto& event : log.history().events)
    if (event.kind == memory::EventKind::allocation) sizes.push_back(event.bytes);
  return sizes;
}

struct Reduction {
  const char* name = "";
  std::function<void(const at::Tensor&, at::IntArrayRef)> compute;
  ReductionForm form{};
  c10::ScalarType type = at::kFloat;
  std::vector<int64_t> result_bytes{4};  // for each output
  bool one_dim = false;                  // removes a single dimension
};
void PrintTo(const Reduction& reduction, std::ostream* out) { *out << reduction.name; }

class CudaReductions : public CudaOperators, public ::testing::WithParamInterface<Reduction> {};

TEST_P(CudaReductions, TakeTheBuffersThatArePlanned) {
  const memory::Multiprocessors card = backend().traits().planner->multiprocessors;
  std::mt19937_64 draw(1);
  int split = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<int64_t> sizes(1 + draw() % 4);
    int64_t elements = 1;
    for (int64_t& size : sizes) {
      constexpr std::array<int64_t, 10> kSizes{1, 2, 3, 8, 10, 64, 100, 256, 1000, 4096};
      size = kSizes[draw() % kSizes.size()];
      if (elements * size > (1 << 22)) size = 1;
      elements *= size;
    }
    at::Tensor x =
        torch::empty(sizes, at::TensorOptions(memory::CudaTraits::device()).dtype(GetParam().type));
    const auto last = static_cast<int64_t>(sizes.size()) - 1;
    if (draw() % 3 == 0) x = x.transpose(0, last);
    std::vector<int64_t> gone;
    for (int64_t dim = 0; dim <= last; ++dim)
      if (draw() % 2 == 0 && (gone.empty() || !GetParam().one_dim)) gone.push_back(dim);
    if (gone.empty()) gone.push_back(last);
    std::vector<SummedDim> dims;
    for (int64_t dim = 0; dim <= last; ++dim)
      dims.push_back({.size = x.size(dim),
                      .stride = x.stride(dim),
                      .is_gone = std::ranges::find(gone, dim) != gone.end()});
    const auto [parts, semaphores] = buffers_of(card_sum(dims, GetParam().form), card);
    const Trace trace = plan::trace(
        [&] { GetParam().compute(at::empty_strided(x.sizes(), x.strides(), x.dtype()), gone); },
        Machine::card);
    ASSERT_EQ(trace.sums.size(), 1U);
    EXPECT_EQ(buffers_of(trace.sums.front(), card).parts, parts);
    int64_t outputs = 1;
    for (const SummedDim& dim : dims) outputs *= dim.is_gone ? 1 : dim.size;
    std::vector<int64_t> expected;
    for (const int64_t bytes : GetParam().result_bytes) expected.push_back(outputs * bytes);
    if (parts > 0) expected.insert(expected.end(), {parts, semaphores});
    split += parts > 0 ? 1 : 0;
    const std::vector<int64_t> real = allocated([&] { GetParam().compute(x, gone); });
    EXPECT_EQ(real, expected) << x.sizes() << " strides " << x.strides() << " over "
                              << at::IntArrayRef(gone);
  }
  EXPECT_GT(split, 10);
}

INSTANTIATE_TEST_SUITE_P(
    Of, CudaReductions,
    ::testing::Values(
        Reduction{"sum", [](const at::Tensor& x, at::IntArrayRef gone) { (void)x.sum(gone); }},
        Reduction{"norm", [](const at::Tensor& x, at::IntArrayRef gone) { (void)x.norm(2, gone); }},
        Reduction{"vector_norm_of_half",
                  [](const at::Tensor& x, at::IntArrayRef gone) {
                    (void)at::linalg_vector_norm(x, 1, gone);
                  },
                  {},
                  at::kHalf,
                  {2}},
        Reduction{"amax", [](const at::Tensor& x, at::IntArrayRef gone) { (void)x.amax(gone); }},
        Reduction{"amin_of_bfloat16",
                  [](const at::Tensor& x, at::IntArrayRef gone) { (void)x.amin(gone); },
                  {.part_bytes = 2},
                  at::kBFloat16,
                  {2}},
        Reduction{"argmax",
                  [](const at::Tensor& x, at::IntArrayRef gone) { (void)x.argmax(gone[0]); },
                  {.part_bytes = 16},
                  at::kFloat,
                  {8},
                  true},
        Reduction{"max",
                  [](const at::Tensor& x, at::IntArrayRef gone) { (void)x.max(gone[0]); },
                  {.part_bytes = 16},
                  at::kFloat,
                  {4, 8},
                  true},
        Reduction{"all",
                  [](const at::Tensor& x, at::IntArrayRef gone) { (void)x.all(gone[0]); },
                  {.part_bytes = 1},
                  at::kBool,
                  {1},
                  true},
        Reduction{"var",
                  [](const at::Tensor& x, at::IntArrayRef gone) {
                    (void)x.var(gone, std::optional<at::Scalar>(0));
                  },
                  {.part_bytes = 16, .vector = 2}},
        Reduction{
            "var_mean_of_half",
            [](const at::Tensor& x,
               at::IntArrayRef gone) { (void)at::var_mean(x, gone, std::optional<at::Scalar>(0)); },
            {.part_bytes = 16, .vector = 2},
            at::kHalf,
            {2, 2}}),
    [](const auto& reduction) { return std::string(reduction.param.name); });

struct Attention {
  int64_t batch = 2, heads = 3, time = 0, features = 0;
  bool causal = false, masked = false, trained = true;
  at::ScalarType type = at::kFloat;
  double dropout = 0;
  int64_t of_value = 0;  // features; 0: as many
};

/// Runs attention and its backward pass.
void attend(const Attention& a, c10::Device device) {
  const auto options = at::TensorOptions(device).dtype(a.type).requires_grad(a.trained);
  const auto made = [&](int64_t features) {
    return torch::empty({a.batch, a.time, a.heads, features}, options).transpose(1, 2);
  };
  const auto query = made(a.features), key = made(a.features),
             value = made(a.of_value > 0 ? a.of_value : a.features);
  std::optional<at::Tensor> mask;
  if (a.masked) mask = torch::ones({a.time, a.time}, at::TensorOptions(device).dtype(torch::kBool));
  const auto result =
      at::scaled_dot_product_attention(query, key, value, mask, a.dropout, a.causal);
  if (!a.trained) return;
  const auto gradient = torch::ones_like(result);
  (void)torch::autograd::grad({result}, {query, key, value}, {gradient});
}

/// Returns the sizes of the blocks that are planned for attention, in order.
std::vector<int64_t> planned_sizes(const Attention& a, const Machine& card) {
  const c10::Device device = memory::CudaTraits::device();
  const Trace planned = trace([&] { attend(a, device); }, card);
  std::vector<int64_t> sizes;
  for (const Event& event : planned.events)
    if (event.bytes > 0) sizes.push_back(event.bytes);
  return sizes;
}

TEST_F(CudaOperators, AttentionTakesWhatIsPlanned) {
  const c10::Device device = memory::CudaTraits::device();
  const std::vector<Attention> cases{
      {.batch = 16, .heads = 8, .time = 128, .features = 32, .causal = true},
      {.time = 100, .features = 64},
      {.time = 100, .features = 64, .trained = false},
      {.time = 100, .features = 64, .masked = true},
      {.time = 104, .features = 64, .masked = true},
      {.time = 1000, .features = 128, .causal = true},
      {.time = 65, .features = 68},
      {.time = 70, .features = 200},
      {.time = 1, .features = 4},
      {.batch = 1, .heads = 1, .time = 33, .features = 16},
      {.batch = 16, .heads = 8, .time = 128, .features = 32, .causal = true, .type = at::kHalf},
      {.time = 100, .features = 64, .type = at::kBFloat16},
      {.time = 100, .features = 64, .trained = false, .type = at::kHalf},
      {.time = 1000, .features = 128, .causal = true, .type = at::kHalf},
      {.time = 65, .features = 68, .type = at::kBFloat16},
      {.time = 70, .features = 200, .type = at::kHalf},
      {.time = 1000, .features = 64, .type = at::kBFloat16},
      {.time = 100, .features = 64, .masked = true, .type = at::kHalf},
      {.time = 1000, .features = 128, .masked = true, .type = at::kHalf},
      {.time = 130, .features = 96, .masked = true, .type = at::kHalf},
      {.time = 130, .features = 96},
      {.time = 140, .features = 256, .type = at::kHalf},
      {.time = 1000, .features = 24, .masked = true, .type = at::kBFloat16},
      {.batch = 1, .time = 300, .features = 200, .masked = true, .type = at::kHalf},
      {.batch = 1, .heads = 1, .time = 5000, .features = 16, .trained = false, .type = at::kHalf},
      {.time = 100, .features = 64, .dropout = 0.1},
      {.time = 100, .features = 64, .type = at::kHalf, .dropout = 0.1},
      {.time = 128, .features = 64, .type = at::kHalf, .dropout = 0.125},
      {.time = 100, .features = 64, .trained = false, .type = at::kBFloat16, .dropout = 0.125},
      {.time = 100, .features = 64, .causal = true, .type = at::kBFloat16, .dropout = 0.5},
      {.time = 100, .features = 64, .masked = true, .type = at::kHalf, .dropout = 0.125},
      {.time = 128, .features = 128, .type = at::kHalf},
      {.time = 256, .features = 32, .trained = false, .type = at::kHalf},
      {.batch = 1, .time = 1, .features = 64, .type = at::kHalf},
      {.batch = 1, .time = 1, .features = 64, .type = at::kHalf, .dropout = 0.125},
      {.batch = 1, .time = 2, .features = 64, .type = at::kHalf, .dropout = 0.125},
      {.time = 140, .features = 192, .trained = false, .type = at::kHalf},
      {.time = 140, .features = 64, .type = at::kHalf, .of_value = 32},
      {.time = 140, .features = 192, .type = at::kHalf, .of_value = 128}};
  const Machine card = parse_target(device.str()).machine();
  std::optional<MeasuredCard> measured;  // the stand-in's library has no workspace of its own
  if (memory::kernels_compute()) measured.emplace(device);
  for (const Attention& a : cases) {
    if (a.type == at::kBFloat16 && card.capability < 80) {
      EXPECT_THROW(static_cast<void>(trace([&] { attend(a, device); }, card)), NotPlannable);
      continue;
    }
    EXPECT_EQ(allocated([&] { attend(a, device); }), planned_sizes(a, card))
        << "batch " << a.batch << " heads " << a.heads << " time " << a.time << " features "
        << a.features << ' ' << a.type << (a.masked ? " masked" : "") << " dropout " << a.dropout
        << (a.trained ? " trained" : "");
  }
}

// The frontend of cuDNN adds its own part to the workspace of the backward.
TEST_F(CudaOperators, WorkspacesOfAttentionAreMeasuredOnTheCard) {
  if (memory::kernels_compute()) GTEST_SKIP() << "only the stand-in's workspace has a known size";
  const c10::Device device = memory::CudaTraits::device();
  const Target target = parse_target(device.str());
  if (target.capability / 10 != 9 && target.capability / 10 != 10)
    GTEST_SKIP() << "cuDNN's attention is for other cards";
  const Attention a{.time = 96, .features = 32, .type = at::kHalf, .dropout = 0.25};
  const auto work = [&] { attend(a, device); };
  const Trace elsewhere = trace(work, target.machine());
  EXPECT_THAT(not_counted_on_card(elsewhere), ::testing::ElementsAre(kAttentionWorkspaces));
  const testing::ScopedVariable workspace("STAND_IN_CUDNN_BYTES", std::string("3000000"));
  const MeasuredCard card(device);
  const at::Tensor before = at::globalContext().defaultGenerator(device).get_state();
  EXPECT_TRUE(not_counted_on_card(trace(work, target.machine())).empty());
  EXPECT_TRUE(before.equal(at::globalContext().defaultGenerator(device).get_state()));
  const auto planned = planned_sizes(a, target.machine());
  EXPECT_EQ(allocated(work), planned);
  EXPECT_EQ(std::ranges::count_if(planned, [](int64_t bytes) { return bytes >= 3000000; }), 2);
}

/// Runs a recurrent layer over [5, 3, 8], or [3, 5, 8] with the batch first, and its backward pass.
template <class Layer>
void recur(Layer layer, c10::Device device, at::ScalarType type, bool batch_first) {
  const std::vector<int64_t> sizes{batch_first ? 3 : 5, batch_first ? 5 : 3, 8};
  const auto x = torch::empty(sizes, at::TensorOptions(device).dtype(type))
                     .requires_grad_(layer->is_training());
  const c10::AutoGradMode mode(layer->is_training());
  const auto result = std::get<0>(layer->forward(x));
  if (layer->is_training()) torch::autograd::backward({result}, {torch::ones_like(result)});
}

/// Returns the sizes of the blocks that the layer allocates on the card, in order. `flat`: its
/// weights are in one block. A seed lets LibTorch make the state of dropout anew.
template <class Layer>
std::vector<int64_t> recurrent_sizes(Layer layer, at::ScalarType type, bool trains, bool flat) {
  const c10::Device device = memory::CudaTraits::device();
  layer->train(trains);
  layer->to(device, type);
  for (at::Tensor& weight : layer->parameters())
    if (!flat) weight.set_data(weight.detach().clone());
  torch::manual_seed(1);
  return allocated([&] { recur(layer, device, type, layer->options_base.batch_first()); });
}

/// Returns the trace of a layer from the mark "forward" on.
template <class Options, class Layer>
Trace recurrent_trace(const Options& options, const Layer&, at::ScalarType type, bool trains,
                      bool flat, const Machine& card) {
  return trace(
      [&] {
        Layer layer(options);
        layer->train(trains);
        layer->to(type);
        if (flat) flatten_weights(*layer);
        mark("forward");
        recur(layer, memory::CudaTraits::device(), type, layer->options_base.batch_first());
      },
      card);
}

std::vector<int64_t> sizes_from(const Trace& planned, std::string_view name) {
  std::vector<int64_t> sizes;
  for (size_t i = planned.at(name); i < planned.events.size(); ++i)
    if (planned.events[i].bytes > 0) sizes.push_back(planned.events[i].bytes);
  return sizes;
}

/// Compares a layer on the card with its trace there, and with that of a card elsewhere.
template <class Layer, class Options>
void expect_recurrent_as_planned(const std::string& name, const Options& options) {
  const c10::Device device = memory::CudaTraits::device();
  const Machine card = parse_target(device.str()).machine();
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16})
    for (const bool trains : {true, false})
      for (const bool flat : {true, false}) {
        SCOPED_TRACE(::testing::Message() << name << ' ' << type << (trains ? " trained" : "")
                                          << (flat ? "" : ", weights apart"));
        Layer layer(options);
        const auto planned = [&] {
          return recurrent_trace(options, layer, type, trains, flat, card);
        };
        if (type == at::kBFloat16 && card.capability < 80) {
          EXPECT_THROW(static_cast<void>(planned()), NotPlannable);
          continue;
        }
        const auto real = recurrent_sizes(layer, type, trains, flat);
        const Trace elsewhere = planned();
        EXPECT_THAT(not_counted_on_card(elsewhere), ::testing::ElementsAre(kRecurrentMemory));
        const auto sum_of = [](const std::vector<int64_t>& sizes) {
          return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
        };
        EXPECT_LT(sum_of(sizes_from(elsewhere, "forward")), sum_of(real));
        const MeasuredCard measured(device);
        const Trace here = planned();
        EXPECT_THAT(not_counted_on_card(here), ::testing::IsEmpty());
        EXPECT_EQ(sizes_from(here, "forward"), real);
      }
}

// The weights and what a training keeps for its backward are cuDNN's, and so are the workspaces.
TEST_F(CudaOperators, RecurrentLayersTakeWhatIsPlanned) {
  std::optional<testing::ScopedVariable> workspace;
  if (!memory::kernels_compute()) workspace.emplace("STAND_IN_CUDNN_BYTES", "3000000");
  namespace nn = torch::nn;
  const auto expect_all = [](auto options, const std::string& name, auto layer) {
    using Layer = decltype(layer);
    const auto expect = [&](const char* what, const auto& changed) {
      expect_recurrent_as_planned<Layer>(name + ' ' + what, changed);
    };
    expect("plain", options);
    expect("deep", decltype(options)(options).num_layers(3));
    expect("without biases", decltype(options)(options).bias(false));
    expect("both ways", decltype(options)(options).bidirectional(true).num_layers(2));
    expect("with dropout", decltype(options)(options).num_layers(2).dropout(0.5));
    expect("batch first", decltype(options)(options).batch_first(true));
  };
  expect_all(nn::LSTMOptions(8, 16), "LSTM", nn::LSTM(nullptr));
  expect_all(nn::LSTMOptions(8, 16).proj_size(4), "LSTM with projections", nn::LSTM(nullptr));
  expect_all(nn::GRUOptions(8, 16), "GRU", nn::GRU(nullptr));
  expect_all(nn::RNNOptions(8, 16), "RNN", nn::RNN(nullptr));
  expect_all(nn::RNNOptions(8, 16).nonlinearity(torch::kReLU), "RNN of ReLU", nn::RNN(nullptr));
}

// cuDNN says where each weight is and how much the layers keep for the backward.
TEST_F(CudaOperators, RecurrentLayersOfCudnnTakeSensibleSizes) {
  const c10::Device device = memory::CudaTraits::device();
  const auto largest_of = [&](auto layer, c10::ScalarType type) {
    layer->to(device, type);
    const auto buffer = layer->parameters().front().storage().data_ptr().get();
    for (const at::Tensor& weight : layer->parameters())
      EXPECT_EQ(weight.storage().data_ptr().get(), buffer) << "weights are parts of one buffer";
    const auto sizes = allocated([&] {
      const auto x =
          torch::randn({5, 3, 8}, at::TensorOptions(device).dtype(type)).requires_grad_();
      std::get<0>(layer(x)).sum().backward();
      for (const at::Tensor& weight : layer->parameters())
        EXPECT_EQ(weight.grad().sizes(), weight.sizes());
    });
    return std::ranges::max(sizes);
  };
  constexpr int64_t kMost = int64_t{64} << 20;  // cuDNN's workspace takes 32 MiB on an H200
  namespace nn = torch::nn;
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    if (type == at::kBFloat16 && !memory::backend(device).traits().planner->computes_bfloat16)
      continue;  // cuDNN does not compute it on the card
    for (const bool both : {false, true})
      for (const bool bias : {false, true}) {
        const auto in = [&](auto options) {
          return options.num_layers(2).bidirectional(both).bias(bias).dropout(both ? 0.5 : 0);
        };
        EXPECT_LT(largest_of(nn::LSTM(in(nn::LSTMOptions(8, 16))), type), kMost);
        EXPECT_LT(largest_of(nn::LSTM(in(nn::LSTMOptions(8, 16).proj_size(4))), type), kMost);
        EXPECT_LT(largest_of(nn::GRU(in(nn::GRUOptions(8, 16))), type), kMost);
        EXPECT_LT(largest_of(nn::RNN(in(nn::RNNOptions(8, 16))), type), kMost);
      }
  }
}

}  // namespace
}  // namespace tare::plan

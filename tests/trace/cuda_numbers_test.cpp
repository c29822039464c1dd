// Operators and layers give on a card the numbers of the host, in the forward and the backward
// pass; on the CUDA stand-in those that it cannot compute are refused by name.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/graph_task.h>

#include <optional>
#include <set>
#include <span>

#include "contract/traits.h"
#include "tare/base/immortal.h"
#include "tare/memory/backend.h"
#include "tare/model/kernels.h"
#include "trace/on_card.h"
#include "trace/operator_cases.h"

namespace tare::plan {
namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// Runs work on a device, with random numbers that the host draws, and keeps what its operators
/// return and the gradients of its leaves.
class Numbers {
 public:
  Numbers(const std::function<void()>& work, c10::Device device) : device_(device) {
    static Immortal<c10::RegistrationHandleRAII> registered(
        c10::Dispatcher::singleton().registerFallback(
            kKey, c10::KernelFunction::makeFromBoxedFunction<&Numbers::call>(), "tests"));
    static_cast<void>(registered);
    torch::manual_seed(1);
    current_ = this;
    {
      const c10::impl::IncludeDispatchKeyGuard observed(kKey);
      work();
    }
    for (const Tensor& leaf : leaves_)
      if (leaf.grad().defined()) all.emplace_back("a gradient", leaf.grad().cpu());
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  std::vector<std::pair<std::string, Tensor>> all{};  ///< on the host, by the operators' names

 private:
  using Stack = torch::jit::Stack;

  static void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
    const c10::impl::ExcludeDispatchKeyGuard inside(kKey);
    // A backward pass has operators of its own on each device, and on a card a thread too.
    const bool is_backward = torch::autograd::get_current_graph_task_id() >= 0;
    if (is_backward)
      op.redispatchBoxed(below, stack);
    else
      current_->run(op, below, *stack);
  }

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet below, Stack& stack) {
    const auto& schema = op.schema();
    const size_t count = schema.arguments().size();
    for (const c10::IValue& value : torch::jit::last(stack, count))
      if (value.isTensor()) find_leaf(value.toTensor());
    if (is_random(schema))
      draw(op, stack);
    else
      op.redispatchBoxed(below, &stack);
    for (c10::IValue& value : std::span(stack).last(schema.returns().size()))
      if (value.isTensor() && value.toTensor().defined()) value = keep(schema, value.toTensor());
  }

  static bool is_random(const c10::FunctionSchema& schema) {
    return schema.name().ends_with("_like") ? schema.name().find("rand") != std::string::npos
                                            : schema.argumentIndexWithName("generator") &&
                                                  schema.arguments().front().name() == "self";
  }

  /// Draws on the host, and moves what was drawn to where it belongs.
  void draw(const c10::OperatorHandle& op, Stack& stack) const {
    const torch::NoGradGuard no_grad;
    const auto& arguments = op.schema().arguments();
    c10::IValue& self = torch::jit::peek(stack, 0, arguments.size());
    const Tensor there = self.toTensor(), here = there.detach().cpu().contiguous();
    self = here;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].name() == "device")
        torch::jit::peek(stack, i, arguments.size()) = c10::Device(c10::kCPU);
    op.callBoxed(&stack);
    const bool in_place = arguments.front().alias_info() != nullptr;
    if (in_place) stack.back() = there.copy_(here);
  }

  void find_leaf(const Tensor& t) {
    if (!t.defined() || !t.requires_grad() || !t.is_leaf()) return;
    for (const Tensor& leaf : leaves_)
      if (leaf.is_same(t)) return;
    leaves_.push_back(t);
  }

  Tensor keep(const c10::FunctionSchema& schema, Tensor t) {
    const bool is_made = t.device().is_cpu() && !t.requires_grad();
    if (is_made) t = t.to(device_);
    const auto* const alias = schema.returns().front().alias_info();
    const bool is_view = alias != nullptr && !alias->isWrite();  // maybe of what is not filled yet
    // On a card cuDNN wants the weights of recurrent layers in one block.
    const bool is_layout = schema.name() == "aten::_cudnn_rnn_flatten_weight";
    if (!is_view && !is_layout && schema.name().find("empty") == std::string::npos)
      all.emplace_back(schema.name(), t.detach().cpu().clone());
    return t;
  }

  inline static thread_local Numbers* current_ = nullptr;
  c10::Device device_;
  std::vector<Tensor> leaves_{};
};

/// Computes in float32 without TF32, whose ten bits of mantissa would be seen.
class NumbersOnCard : public OnCard<::testing::TestWithParam<Case>> {
 protected:
  void SetUp() override {
    OnCard::SetUp();
    if (!IsSkipped()) without_tf32_.emplace(KernelOptions{.tf32 = false});
  }

 private:
  std::optional<KernelScope> without_tf32_;
};

/// Whether operators of the case draw inside, where each device has a generator of its own.
bool draws_inside(const std::string& name) {
  return std::ranges::any_of(
      std::array{"drop", "rrelu", "encoder", "decoder", "both_ways_deep", "frac_pool"},
      [&](const char* part) { return name.find(part) != std::string::npos; });
}

void expect_same(const Numbers& card, const Numbers& expected) {
  ASSERT_EQ(expected.all.size(), card.all.size());
  constexpr double kRounding = 1e-4;  // sums of at most some hundred float32 in another order
  for (size_t i = 0; i < expected.all.size(); ++i) {
    const auto& [name, numbers] = expected.all[i];
    EXPECT_EQ(name, card.all[i].first);
    EXPECT_TRUE(torch::allclose(card.all[i].second, numbers, kRounding, kRounding, true))
        << name << ", call " << i;
  }
}

/// The gradients, by their sizes.
std::vector<std::vector<int64_t>> gradient_sizes(const Numbers& numbers) {
  std::vector<std::vector<int64_t>> sizes;
  for (const auto& [name, tensor] : numbers.all)
    if (name == "a gradient") sizes.push_back(tensor.sizes().vec());
  return sizes;
}

TEST_P(NumbersOnCard, AreTheHosts) {
  const Numbers host(GetParam().work, c10::kCPU);
  const Numbers card(GetParam().work, memory::CudaTraits::device());
  if (!draws_inside(GetParam().name)) return expect_same(card, host);
  expect_same(Numbers(GetParam().work, memory::CudaTraits::device()), card);
  EXPECT_EQ(gradient_sizes(card), gradient_sizes(host));
}

INSTANTIATE_TEST_SUITE_P(All, NumbersOnCard, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

/// Tests of what the stand-in adds to a card's own code.
class StandIn : public OnCard<::testing::Test> {
 protected:
  void SetUp() override {
    if (!std::getenv("TARE_STAND_IN")) GTEST_SKIP() << "a card computes all of its operators";
    OnCard::SetUp();
  }
};

/// Returns the operators that have a kernel for CUDA and none for the host.
std::vector<c10::OperatorHandle> without_host() {
  std::vector<c10::OperatorHandle> all;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CUDA)) {
    const auto op = dispatcher.findOp(name);
    if (op && op->hasSchema() && !op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU))
      all.push_back(*op);
  }
  return all;
}

TEST_F(StandIn, RefusesByNameWhatItCannotCompute) {
  // Other operators of the host give their numbers, or they have none.
  const std::set<std::string> served{"aten::_conv_depthwise2d",
                                     "aten::_cudnn_init_dropout_state",
                                     "aten::_fused_dropout",
                                     "aten::_fused_rms_norm_backward",
                                     "aten::_masked_scale",
                                     "aten::_scaled_dot_product_cudnn_attention",
                                     "aten::_scaled_dot_product_cudnn_attention_backward",
                                     "aten::_scaled_dot_product_efficient_attention",
                                     "aten::_scaled_dot_product_efficient_attention_backward",
                                     "aten::_scaled_dot_product_flash_attention",
                                     "aten::_scaled_dot_product_flash_attention_backward",
                                     "aten::_thnn_fused_gru_cell",
                                     "aten::_thnn_fused_gru_cell_backward",
                                     "aten::_thnn_fused_lstm_cell",
                                     "aten::_thnn_fused_lstm_cell_backward_impl",
                                     "aten::_use_cudnn_ctc_loss",
                                     "aten::_use_cudnn_ctc_loss.Tensor",
                                     "aten::_use_miopen_ctc_loss",
                                     "aten::_use_miopen_ctc_loss.Tensor",
                                     "aten::conv_depthwise3d",
                                     "aten::cudnn_batch_norm",
                                     "aten::cudnn_batch_norm_backward",
                                     "aten::cudnn_convolution",
                                     "aten::cudnn_convolution_relu",
                                     "aten::cudnn_convolution_transpose",
                                     "aten::record_stream"};
  size_t others = 0;
  for (const auto& op : without_host()) {
    const std::string name = toString(op.operator_name());
    if (served.contains(name)) continue;
    ++others;
    try {
      torch::jit::Stack nothing;
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CUDA), &nothing);
      ADD_FAILURE() << name;
    } catch (const c10::NotImplementedError& error) {
      EXPECT_THAT(error.what_without_backtrace(),
                  ::testing::HasSubstr("the CUDA stand-in cannot compute " + name));
    }
  }
  EXPECT_GT(others, 69);
}

TEST_F(StandIn, RefusesCudnnsCtcByName) {
  const Tensor x = torch::rand({8, 2, 5}, memory::CudaTraits::device()).log_softmax(2);
  const Tensor targets = torch::tensor({1, 2, 1, 3, 3}, torch::kInt);
  try {
    (void)at::ctc_loss(x, targets, {8, 8}, {2, 3});
    FAIL() << "cuDNN takes whole numbers of 32 bits on the host";
  } catch (const c10::NotImplementedError& error) {
    EXPECT_THAT(error.what_without_backtrace(),
                ::testing::HasSubstr("the CUDA stand-in cannot compute aten::_cudnn_ctc_loss"));
  }
}

TEST_F(StandIn, RefusesSparseTensors) {
  const auto card = memory::CudaTraits::device();
  const Tensor dense = torch::rand({3, 3}, card);
  const auto work = [&] {
    const Tensor place = torch::zeros({2, 1}, torch::TensorOptions(card).dtype(torch::kLong));
    torch::addmm(dense, torch::sparse_coo_tensor(place, torch::ones({1}, card), {3, 3}), dense);
  };
  EXPECT_THROW(work(), c10::NotImplementedError);
}

TEST_F(StandIn, DoesNotCountTheHostsTemporaries) {
  const auto on_card = [](at::IntArrayRef sizes) {
    return torch::rand(sizes, memory::CudaTraits::device());
  };
  const Tensor images = on_card({4, 8, 16, 16}), weights = on_card({8, 8, 3, 3});
  const memory::PeakScope peak(c10::kCPU);
  const Tensor result = torch::conv2d(images, weights).softmax(1).matmul(on_card({14, 64}));
  EXPECT_GT(result.sum().item<double>(), 0);
  EXPECT_EQ(peak.peak_above_start_bytes(), 0);
}

}  // namespace
}  // namespace tare::plan

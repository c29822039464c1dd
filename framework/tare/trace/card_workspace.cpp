// Measures the workspaces of cuDNN's convolutions, attention and recurrent layers on a card.
#include "tare/trace/card_workspace.h"

#include <ATen/Context.h>
#include <ATen/ops/_cudnn_init_dropout_state.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/_cudnn_rnn_backward.h>
#include <ATen/ops/_cudnn_rnn_flatten_weight.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "tare/memory/backend.h"
#include "tare/memory/compute_capability.h"
#include "tare/memory/event_log.h"
#include "tare/runtime/keep_generator.h"
#include "tare/trace/blocks.h"
#include "tare/trace/measurements.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;

std::optional<c10::Device> measured_card;
bool has_measured = false;

constexpr int64_t kConvolution = -2, kAttention = -3, kRecurrent = -4;  // none of the host's
constexpr size_t kMostEvents = 1024;                                    // an operator has some ten

/// Begins a key with the name of the card, and its capability: two kinds of card may have one name.
Measurements::Key key_for(int64_t kind, const std::string& card) {
  Measurements::Key key{kind, recorded_machine().capability, static_cast<int64_t>(card.size())};
  for (const char c : card) key.push_back(c);
  return key;
}

/// Returns everything that cuDNN's choice depends on.
Measurements::Key key_of(const Convolution& call, const std::string& card) {
  const auto& context = at::globalContext();
  Measurements::Key key = key_for(kConvolution, card);
  for (const Layout* layout : {&call.input, &call.weight, &call.grad_output}) append(key, *layout);
  for (const auto* list : {&call.stride, &call.padding, &call.dilation, &call.output_padding})
    append(key, *list);
  for (const bool wanted : call.mask) key.push_back(wanted);
  key.insert(key.end(), {call.transposed, call.groups, context.deterministicCuDNN(),
                         context.allowTF32CuDNN()});
  return key;
}

Measurements::Key key_of(const CardAttention& call, const std::string& card) {
  Measurements::Key key = key_for(kAttention, card);
  for (const Layout* layout : {&call.query, &call.key, &call.value, &call.mask, &call.grad})
    append(key, *layout);
  key.insert(key.end(), {call.with_sums, call.causal, std::bit_cast<int64_t>(call.dropout)});
  return key;
}

Measurements::Key key_of(const CardRecurrent& call, const std::string& card) {
  Measurements::Key key = key_for(kRecurrent, card);
  key.insert(key.end(), {static_cast<int64_t>(call.mode), call.inputs, call.hidden, call.layers,
                         call.projected, call.bidirectional, call.train,
                         std::bit_cast<int64_t>(call.dropout), static_cast<int64_t>(call.type),
                         call.steps, call.samples, at::globalContext().allowTF32CuDNN()});
  return key;
}

/// Whether cuDNN computes the call on the card of the recording: bfloat16 from Ampere on
/// (ATen/native/Convolution.cpp: use_cudnn).
bool by_cudnn(const Convolution& call) {
  return at::globalContext().userEnabledCuDNN() &&
         (call.input.type != at::kBFloat16 || recorded_machine().capability >= memory::kAmpere);
}

int64_t bytes_of(const Layout& layout) {
  return layout.sizes.empty() ? 0
                              : c10::multiply_integers(layout.sizes) *
                                    static_cast<int64_t>(c10::elementSize(layout.type));
}

/// Returns the bytes of the operands, of a result as large as the largest of them and of a
/// workspace as large as all: where they fit, no measurement runs out of memory.
int64_t needed_bytes(const Convolution& call) {
  const int64_t input = bytes_of(call.input), weight = bytes_of(call.weight),
                grad = bytes_of(call.grad_output);
  return 2 * (input + weight + grad + std::max({input, weight, grad}));
}

/// The backward has a result for each operand, and adds up in float32.
int64_t needed_bytes(const CardAttention& call) {
  const int64_t operands = bytes_of(call.query) + bytes_of(call.key) + bytes_of(call.value);
  return 6 * operands + 2 * bytes_of(call.mask) + 2 * bytes_of(call.grad);
}

/// The reserve has the gates and the state of each step, and there is a gradient for each operand.
int64_t needed_bytes(const CardRecurrent& call) {
  const int64_t each = call.inputs + 2 * call.directions() * call.features() +
                       call.layers * call.directions() * (call.gates() + 2) * call.hidden;
  return 4 * static_cast<int64_t>(c10::elementSize(call.type)) *
         (call.steps * call.samples * each + call.weights());
}

Tensor on_card(const Layout& layout, c10::Device card) {
  if (layout.sizes.empty()) return {};
  return at::empty_strided(layout.sizes, layout.strides,
                           at::TensorOptions(layout.type).device(card));
}

std::vector<Tensor> run(const Convolution& call, const Tensor& input, const Tensor& weight,
                        const Tensor& grad_output) {
  if (!call.backward())
    return {at::convolution(input, weight, {}, call.stride, call.padding, call.dilation,
                            call.transposed, call.output_padding, call.groups)};
  const auto [grad_input, grad_weight, grad_bias] = at::convolution_backward(
      grad_output, input, weight, std::nullopt, call.stride, call.padding, call.dilation,
      call.transposed, call.output_padding, call.groups, call.mask);
  return {grad_input, grad_weight};
}

using Results =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

/// Returns the most bytes at once of the blocks that were born and freed in the log.
int64_t transient_bytes(const memory::EventHistory& history) {
  std::unordered_set<uint64_t> freed;
  for (const auto& event : history.events)
    if (event.kind == memory::EventKind::free) freed.insert(event.block);
  int64_t now = 0, most = 0;
  for (const auto& event : history.events) {
    if (!freed.contains(event.block)) continue;
    now += event.kind == memory::EventKind::allocation ? event.bytes : -event.bytes;
    most = std::max(most, now);
  }
  return most;
}

/// Does the work, and returns the bytes of its workspace: what is freed again.
template <class Work>
int64_t transient(c10::Device card, const Work& work) {
  const memory::EventLog log({.device = card, .capacity = kMostEvents});
  const auto results = work();
  return transient_bytes(log.history());
}

/// Does the work, and returns its workspace as one block.
template <class Work>
AllocationTrace workspace_of(c10::Device card, const Work& work) {
  AllocationTrace trace;
  const int64_t workspace = transient(card, work);
  if (workspace > 0) trace.steps.push_back({.block = 0, .bytes = workspace});
  return trace;
}

/// The operands have no gaps, so that nothing but the workspace is freed.
AllocationTrace measure(const Convolution& call, c10::Device card) {
  const Tensor input = on_card(call.input, card), weight = on_card(call.weight, card),
               grad_output = on_card(call.grad_output, card);
  return workspace_of(card, [&] { return run(call, input, weight, grad_output); });
}

AllocationTrace measure(const CardAttention& call, c10::Device card) {
  const runtime::KeepGenerator generator(card);
  const Tensor query = on_card(call.query, card), key = on_card(call.key, card),
               value = on_card(call.value, card), mask = on_card(call.mask, card);
  const auto bias = mask.defined() ? std::optional(mask) : std::nullopt;
  const auto forward = [&]() -> Results {
    return at::_scaled_dot_product_cudnn_attention(query, key, value, bias, call.with_sums,
                                                   call.dropout, call.causal);
  };
  if (!call.backward()) return workspace_of(card, forward);
  const Tensor grad = on_card(call.grad, card);
  const Results f = forward();
  return workspace_of(card, [&] {
    return at::_scaled_dot_product_cudnn_attention_backward_symint(
        grad, query, key, value, std::get<0>(f), std::get<1>(f), std::get<6>(f), std::get<7>(f),
        mask, std::get<2>(f), std::get<3>(f), std::get<4>(f), std::get<5>(f), call.dropout,
        call.causal);
  });
}

/// The operands of recurrent layers on a card.
class RecurrentOnCard {
 public:
  RecurrentOnCard(const CardRecurrent& call, c10::Device card)
      : call_(call), options_(at::TensorOptions(call.type).device(card)) {
    for (int64_t layer = 0; layer < call.layers; ++layer)
      for (int64_t direction = 0; direction < call.directions(); ++direction) add_weights(layer);
    block_ = at::_cudnn_rnn_flatten_weight(weights_, each(), call.inputs, mode(), call.hidden,
                                           call.projected, call.layers, /*batch_first=*/false,
                                           call.bidirectional);
  }

  [[nodiscard]] RecurrentMemory measure() {
    RecurrentMemory memory{.weights = static_cast<int64_t>(block_.nbytes())};
    if (call_.steps == 0) return memory;
    const c10::Device card = options_.device();
    if (call_.drops())
      dropout_state_ = at::_cudnn_init_dropout_state(call_.dropout, /*train=*/true,
                                                     /*dropout_seed=*/0, options_.dtype(at::kByte));
    memory.dropout_state =
        static_cast<int64_t>(dropout_state_.defined() ? dropout_state_.nbytes() : 0);
    const Tensor input = at::empty({call_.steps, call_.samples, call_.inputs}, options_);
    const Tensor hidden = state(call_.features()),
                 cell = call_.mode == RecurrentMode::lstm ? state(call_.hidden) : Tensor();
    CudnnResults results;
    memory.forward = transient(card, [&] { return results = forward(input, hidden, cell); });
    const Tensor &output = std::get<0>(results), &reserve = std::get<3>(results);
    memory.reserve = static_cast<int64_t>(reserve.nbytes());
    if (call_.train)
      memory.backward = transient(card, [&] {
        return at::_cudnn_rnn_backward(
            input, weights_, each(), block_, hidden, cell, output, output, hidden, cell, mode(),
            call_.hidden, call_.projected, call_.layers, /*batch_first=*/false, call_.dropout,
            call_.train, call_.bidirectional, /*batch_sizes=*/{}, dropout_state_, reserve,
            {true, true, cell.defined(), false});  // that of the weights has a workspace as large
      });
    return memory;
  }

 private:
  void add_weights(int64_t layer) {
    const int64_t rows = call_.gates() * call_.hidden;
    const int64_t from = layer == 0 ? call_.inputs : call_.directions() * call_.features();
    weights_.push_back(at::empty({rows, from}, options_));
    weights_.push_back(at::empty({rows, call_.features()}, options_));
    for (int i = 0; i < 2; ++i) weights_.push_back(at::empty({rows}, options_));
    if (call_.projected > 0)
      weights_.push_back(at::empty({call_.projected, call_.hidden}, options_));
  }
  [[nodiscard]] int64_t each() const { return call_.projected > 0 ? 5 : 4; }
  [[nodiscard]] int64_t mode() const { return static_cast<int64_t>(call_.mode); }
  [[nodiscard]] Tensor state(int64_t features) const {
    return at::empty({call_.layers * call_.directions(), call_.samples, features}, options_);
  }
  [[nodiscard]] CudnnResults forward(const Tensor& input, const Tensor& hidden,
                                     const Tensor& cell) const {
    return at::_cudnn_rnn(input, weights_, each(), block_, hidden, cell, mode(), call_.hidden,
                          call_.projected, call_.layers, /*batch_first=*/false, call_.dropout,
                          call_.train, call_.bidirectional, /*batch_sizes=*/{}, dropout_state_);
  }

  CardRecurrent call_;
  at::TensorOptions options_;
  std::vector<Tensor> weights_;
  Tensor block_, dropout_state_;
};

// The parts of a measurement, in order.
constexpr std::array kParts{&RecurrentMemory::weights, &RecurrentMemory::reserve,
                            &RecurrentMemory::forward, &RecurrentMemory::backward,
                            &RecurrentMemory::dropout_state};

AllocationTrace measure(const CardRecurrent& call, c10::Device card) {
  const RecurrentMemory memory = RecurrentOnCard(call, card).measure();
  AllocationTrace trace;
  for (const auto part : kParts)
    trace.steps.push_back({.block = trace.steps.size(), .bytes = memory.*part});
  return trace;
}

/// Returns the measurement of a call, which is kept or made; unset: it is not known.
template <class Call>
std::optional<AllocationTrace> known_work(const Call& call) {
  if (!measured_card) return std::nullopt;
  const auto& card = memory::backend(*measured_card);
  const auto key = key_of(call, card.name());
  auto work = measurements().known(key);
  if (!work && needed_bytes(call) < card.memory_info().available_bytes)
    work = measurements().of(key, [&] {
      has_measured = true;
      const OnTheHost real;  // on no host, but beside the trace
      return measure(call, *measured_card);
    });
  return work;
}

/// Returns the bytes of the workspace of a call; unset: it is not known.
template <class Call>
std::optional<int64_t> known_workspace(const Call& call) {
  const auto work = known_work(call);
  if (!work) return std::nullopt;
  return work->steps.empty() ? 0 : work->steps.front().bytes;
}

}  // namespace

MeasuredCard::MeasuredCard(std::optional<c10::Device> card)
    : before_(std::exchange(measured_card, card)) {}

MeasuredCard::~MeasuredCard() {
  if (measured_card && std::exchange(has_measured, false))
    (void)memory::backend(*measured_card).reclaim();
  measured_card = before_;
}

c10::DataPtr hold_workspace(const Convolution& call) {
  const bool computes = by_cudnn(call), chooses = computes && !at::globalContext().benchmarkCuDNN();
  if (const auto bytes = chooses ? known_workspace(call) : std::nullopt) return hold(*bytes);
  meta_mark(computes ? kUnknownWorkspace : kOwnConvolution);
  return {};
}

c10::DataPtr hold_workspace(const CardAttention& call, int64_t at_least) {
  if (const auto bytes = known_workspace(call)) return hold(*bytes);
  meta_mark(kUnknownAttention);
  return hold(at_least);
}

std::optional<RecurrentMemory> recurrent_memory(const CardRecurrent& call) {
  const auto work = known_work(call);
  if (!work || work->steps.size() != kParts.size()) return std::nullopt;
  RecurrentMemory memory;
  for (size_t i = 0; i < kParts.size(); ++i) memory.*kParts[i] = work->steps[i].bytes;
  return memory;
}

}  // namespace tare::plan

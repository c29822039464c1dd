// Measures the workspaces of cuDNN's convolutions and attention on a card.
#include "tare/trace/card_workspace.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "tare/memory/backend.h"
#include "tare/memory/compute_capability.h"
#include "tare/memory/event_log.h"
#include "tare/trace/blocks.h"
#include "tare/trace/measurements.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;

std::optional<c10::Device> measured_card;
bool has_measured = false;

constexpr int64_t kConvolution = -2, kAttention = -3;  // no key of the host begins so
constexpr size_t kMostEvents = 1024;                   // an operator has some ten

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

/// Puts the card's random numbers back where they were.
class SameRandomNumbers {
 public:
  explicit SameRandomNumbers(c10::Device card)
      : generator_(at::globalContext().defaultGenerator(card)), state_(state()) {}
  ~SameRandomNumbers() {
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_state(state_);
  }
  SameRandomNumbers(const SameRandomNumbers&) = delete;
  SameRandomNumbers& operator=(const SameRandomNumbers&) = delete;

 private:
  [[nodiscard]] Tensor state() {
    const std::scoped_lock lock(generator_.mutex());
    return generator_.get_state();
  }

  at::Generator generator_;
  Tensor state_;
};

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

/// Does the work, and returns as one block the workspace: what is freed again.
template <class Work>
AllocationTrace workspace_of(c10::Device card, const Work& work) {
  const memory::EventLog log({.device = card, .capacity = kMostEvents});
  const auto results = work();
  AllocationTrace trace;
  const int64_t workspace = transient_bytes(log.history());
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
  const SameRandomNumbers same(card);
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

/// Returns the bytes of the workspace of a call, which are kept or measured; unset: unknown.
template <class Call>
std::optional<int64_t> known_workspace(const Call& call) {
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

}  // namespace tare::plan

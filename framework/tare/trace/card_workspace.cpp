// Measures the workspaces of cuDNN's convolutions on a card.
#include "tare/trace/card_workspace.h"

#include <ATen/Context.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "tare/memory/backend.h"
#include "tare/memory/event_log.h"
#include "tare/trace/blocks.h"
#include "tare/trace/measurements.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;

std::optional<c10::Device> measured_card;
bool has_measured = false;

constexpr int64_t kOfACard = -2;      // no key of the host begins so
constexpr size_t kMostEvents = 1024;  // a convolution has some ten

/// Returns everything that cuDNN's choice depends on.
Measurements::Key key_of(const Convolution& call, const std::string& card) {
  const auto& context = at::globalContext();
  Measurements::Key key{kOfACard, static_cast<int64_t>(card.size())};
  for (const char c : card) key.push_back(c);
  for (const Layout* layout : {&call.input, &call.weight, &call.grad_output}) append(key, *layout);
  for (const auto* list : {&call.stride, &call.padding, &call.dilation, &call.output_padding})
    append(key, *list);
  for (const bool wanted : call.mask) key.push_back(wanted);
  key.push_back(recorded_machine().capability);  // two kinds of card may have one name
  key.insert(key.end(), {call.transposed, call.groups, context.deterministicCuDNN(),
                         context.allowTF32CuDNN()});
  return key;
}

/// Whether cuDNN computes the call on the card of the recording: bfloat16 from Ampere on
/// (ATen/native/Convolution.cpp: use_cudnn).
bool by_cudnn(const Convolution& call) {
  constexpr int64_t kAmpere = 80;
  return at::globalContext().userEnabledCuDNN() &&
         (call.input.type != at::kBFloat16 || recorded_machine().capability >= kAmpere);
}

int64_t bytes_of(const Layout& layout) {
  return layout.sizes.empty() ? 0
                              : c10::multiply_integers(layout.sizes) *
                                    static_cast<int64_t>(c10::elementSize(layout.type));
}

/// Whether the operands, a result as large as the largest of them and a workspace as large as all
/// fit, so that no measurement runs out of memory.
bool has_memory(const Convolution& call, const memory::DeviceBackend& card) {
  const int64_t input = bytes_of(call.input), weight = bytes_of(call.weight),
                grad = bytes_of(call.grad_output);
  const int64_t operands = input + weight + grad;
  return 2 * (operands + std::max({input, weight, grad})) < card.memory_info().available_bytes;
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

/// The work is one block, the workspace: what is freed again while the operands have no gaps.
AllocationTrace measure(const Convolution& call, c10::Device card) {
  has_measured = true;
  const OnTheHost real;  // on no host, but beside the trace
  const Tensor input = on_card(call.input, card), weight = on_card(call.weight, card),
               grad_output = on_card(call.grad_output, card);
  const memory::EventLog log({.device = card, .capacity = kMostEvents});
  const std::vector<Tensor> results = run(call, input, weight, grad_output);
  AllocationTrace work;
  const int64_t workspace = transient_bytes(log.history());
  if (workspace > 0) work.steps.push_back({.block = 0, .bytes = workspace});
  return work;
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
  if (!by_cudnn(call)) {
    meta_mark(kOwnConvolution);
    return {};
  }
  if (measured_card && !at::globalContext().benchmarkCuDNN()) {
    const auto& card = memory::backend(*measured_card);
    const auto key = key_of(call, card.name());
    auto work = measurements().known(key);
    if (!work && has_memory(call, card))
      work = measurements().of(key, [&] { return measure(call, *measured_card); });
    if (work) return hold(work->steps.empty() ? 0 : work->steps.front().bytes);
  }
  meta_mark(kUnknownWorkspace);
  return {};
}

}  // namespace tare::plan

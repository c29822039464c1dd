// Measures operators by the observers of LibTorch.
#include "tare/bench/operator_times.h"

// LibTorch's libraries are release builds, which leave unset what a check of this header reads.
#ifndef NDEBUG
#define NDEBUG
#endif
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tare/base/error.h"
#include "tare/callback/operator_flops.h"
#include "tare/memory/phase.h"

namespace tare::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Values = c10::ArrayRef<const c10::IValue>;

/// Says what the name of an operator contains, and its class.
struct Pattern {
  std::string_view part;
  OperatorClass kind;
};

// The first that fits counts.
constexpr std::array kPatterns{
    Pattern{"attention", OperatorClass::attention},
    Pattern{"conv", OperatorClass::convolution},
    Pattern{"rnn", OperatorClass::recurrent},
    Pattern{"lstm", OperatorClass::recurrent},
    Pattern{"gru", OperatorClass::recurrent},
    Pattern{"mm", OperatorClass::product},
    Pattern{"linear_pointwise", OperatorClass::product},
    Pattern{"::mv", OperatorClass::product},
    Pattern{"addmv", OperatorClass::product},
    Pattern{"batch_norm", OperatorClass::norm},
    Pattern{"layer_norm", OperatorClass::norm},
    Pattern{"group_norm", OperatorClass::norm},
    Pattern{"rms_norm", OperatorClass::norm},
    Pattern{"pool", OperatorClass::pool},
    Pattern{"upsample", OperatorClass::pool},
    Pattern{"softmax", OperatorClass::reduction},
    Pattern{"loss", OperatorClass::reduction},
    Pattern{"cross_entropy", OperatorClass::reduction},
    Pattern{"::sum", OperatorClass::reduction},
    Pattern{"::mean", OperatorClass::reduction},
    Pattern{"::amax", OperatorClass::reduction},
    Pattern{"::argmax", OperatorClass::reduction},
    Pattern{"::norm", OperatorClass::reduction},
    Pattern{"copy", OperatorClass::copy},
    Pattern{"clone", OperatorClass::copy},
    Pattern{"::cat", OperatorClass::copy},
    Pattern{"index", OperatorClass::copy},
    Pattern{"embedding", OperatorClass::copy},
    Pattern{"gather", OperatorClass::copy},
    Pattern{"relu", OperatorClass::pointwise},
    Pattern{"gelu", OperatorClass::pointwise},
    Pattern{"silu", OperatorClass::pointwise},
    Pattern{"swish", OperatorClass::pointwise},
    Pattern{"sigmoid", OperatorClass::pointwise},
    Pattern{"tanh", OperatorClass::pointwise},
    Pattern{"threshold", OperatorClass::pointwise},
    Pattern{"dropout", OperatorClass::pointwise},
    Pattern{"bernoulli", OperatorClass::pointwise},
    Pattern{"::add", OperatorClass::pointwise},
    Pattern{"::sub", OperatorClass::pointwise},
    Pattern{"::mul", OperatorClass::pointwise},
    Pattern{"::div", OperatorClass::pointwise},
    Pattern{"fill", OperatorClass::pointwise},
    Pattern{"::zero", OperatorClass::pointwise},
    Pattern{"where", OperatorClass::pointwise},
};

OperatorClass class_of(std::string_view name) {
  if (memory::current_phase() == static_cast<uint32_t>(memory::PhaseKind::step))
    return OperatorClass::step;
  for (const Pattern& pattern : kPatterns)
    if (name.find(pattern.part) != std::string_view::npos) return pattern.kind;
  return OperatorClass::other;
}

/// Calls `take` with each tensor of the values.
void each_tensor(const c10::IValue& value, const auto& take) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) take(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& one : value.toTensorVector())
      if (one.defined()) take(one);
  }
}

/// Returns the bytes of a tensor; a row that stands for many counts once.
double bytes_of(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return 0;
  double elements = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i)
    if (tensor.stride(i) != 0) elements *= static_cast<double>(tensor.size(i));
  return elements * static_cast<double>(tensor.element_size());
}

/// Says which operands an operator writes, and whether its results are new.
struct Effects {
  std::vector<bool> writes{};  // by operand
  bool makes_views = false;    // of its operands
  bool has_own_results = true;
};

Effects effects_of(const c10::FunctionSchema& schema) {
  Effects effects;
  for (const c10::Argument& one : schema.arguments())
    effects.writes.push_back(one.alias_info() && one.alias_info()->isWrite());
  for (const c10::Argument& one : schema.returns()) {
    if (!one.alias_info()) continue;
    effects.has_own_results = false;
    if (!one.alias_info()->isWrite()) effects.makes_views = true;
  }
  return effects;
}

/// Whether an operator only takes memory.
bool only_allocates(std::string_view name) {
  return name.find("empty") != std::string_view::npos || name == "aten::resize_" ||
         name == "aten::set_";
}

std::string shapes_of(Values inputs) {
  std::string text;
  size_t count = 0;
  for (const c10::IValue& input : inputs)
    each_tensor(input, [&](const at::Tensor& one) {
      if (++count > 4) return;
      if (!text.empty()) text += ' ';
      if (one.scalar_type() != c10::kFloat) text += std::string(c10::toString(one.scalar_type()));
      text += '[';
      for (int64_t i = 0; i < one.dim(); ++i)
        text += (i > 0 ? "," : "") + std::to_string(one.size(i));
      text += ']';
    });
  if (count > 4) text += " and " + std::to_string(count - 4) + " more";
  return text;
}

/// Holds an operator, while it works.
struct Call final : at::ObserverContext {
  Call* caller = nullptr;
  Clock::time_point start{};
  double others_s = 0;      // of operators in it that have figures of their own
  double others_bytes = 0;  // that these move
  bool counts_all = false;  // what it calls is its own
  OperatorClass kind = OperatorClass::other;
  std::string operands{};
  Flops flops{};
  double bytes = 0;
  bool has_own_results = true;
  std::optional<c10::Device> device{};  // that works on the operands; unset: the host
};

thread_local Call* innermost = nullptr;

}  // namespace

struct OperatorTimes::State {
  explicit State(bool waits) : waits_for_device(waits) {}

  static std::unique_ptr<at::ObserverContext> started(const at::RecordFunction& function) {
    State* const state = current;
    if (!state || !state->counts || (innermost && innermost->counts_all)) return nullptr;
    const std::string_view name = function.name();
    auto call = std::make_unique<Call>();
    call->caller = innermost;
    call->kind = class_of(name);
    const Values inputs = function.inputs();
    call->operands = shapes_of(inputs);
    for (const c10::IValue& input : inputs)  // which are gone when the operator ends
      each_tensor(input, [&](const at::Tensor& one) {
        if (!one.is_cpu() && !one.is_meta()) call->device = one.device();
      });
    if (const FlopFormula* const formula = flop_formula_of(name)) {
      const at::Tensor& operand = inputs[formula->operand].toTensor();
      call->flops.*flop_type_of(*formula, operand) = formula->flops(inputs);
      call->counts_all = true;
    }
    const Effects& effects = state->effects(function);
    call->has_own_results = effects.has_own_results;
    if (!effects.makes_views && !only_allocates(name)) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        const double times = i < effects.writes.size() && effects.writes[i] ? 2 : 1;
        each_tensor(inputs[i],
                    [&](const at::Tensor& one) { call->bytes += times * bytes_of(one); });
      }
    } else {
      call->has_own_results = false;
    }
    innermost = call.get();
    call->start = Clock::now();
    return call;
  }

  static void ended(const at::RecordFunction& function, at::ObserverContext* context) {
    if (!context) return;
    auto& call = static_cast<Call&>(*context);
    State* const state = current;
    if (state && state->waits_for_device && call.device)
      c10::impl::VirtualGuardImpl(call.device->type()).synchronizeDevice(call.device->index());
    const double seconds = std::chrono::duration<double>(Clock::now() - call.start).count();
    innermost = call.caller;
    if (state && call.has_own_results)
      for (const c10::IValue& result : function.outputs())
        each_tensor(result, [&](const at::Tensor& one) { call.bytes += bytes_of(one); });
    if (call.caller) {
      call.caller->others_s += seconds;
      call.caller->others_bytes += std::max(call.bytes, call.others_bytes);
    }
    if (!state) return;
    const std::lock_guard lock(state->mutex);
    OperatorFigures& all = state->all[{function.name(), call.operands, call.kind}];
    ++all.calls;
    all.seconds += seconds - call.others_s;
    all.flops += call.flops;
    all.bytes = std::max(0.0, call.bytes - call.others_bytes);
  }

  const Effects& effects(const at::RecordFunction& function) {
    static const Effects unknown;
    const auto name = function.operator_name();
    if (!name) return unknown;
    const std::lock_guard lock(mutex);
    const auto found = known_effects.find(*name);
    if (found != known_effects.end()) return found->second;
    const auto schema = c10::Dispatcher::singleton().findSchema(*name);
    return known_effects.emplace(*name, schema ? effects_of(schema->schema()) : unknown)
        .first->second;
  }

  static std::atomic<State*> current;  // threads of a backward find it

  const bool waits_for_device;
  std::atomic<bool> counts = false;
  at::CallbackHandle handle = 0;
  std::mutex mutex;
  std::unordered_map<c10::OperatorName, Effects> known_effects;
  std::map<std::tuple<std::string, std::string, OperatorClass>, OperatorFigures> all;
};

std::atomic<OperatorTimes::State*> OperatorTimes::State::current{nullptr};

OperatorTimes::OperatorTimes(bool waits_for_device)
    : state_(std::make_unique<State>(waits_for_device)) {
  State* none = nullptr;
  if (!State::current.compare_exchange_strong(none, state_.get()))
    throw StateError("bench", "the operators of this process are being measured already",
                     "end that first");
  state_->handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&State::started, &State::ended)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

OperatorTimes::~OperatorTimes() {
  at::removeCallback(state_->handle);
  State::current = nullptr;
}

void OperatorTimes::resume() { state_->counts = true; }
void OperatorTimes::pause() { state_->counts = false; }

std::vector<OperatorFigures> OperatorTimes::figures() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<OperatorFigures> figures;
  for (const auto& [key, one] : state_->all) {
    figures.push_back(one);
    std::tie(figures.back().name, figures.back().operands, figures.back().kind) = key;
  }
  std::ranges::sort(figures, std::ranges::greater(), &OperatorFigures::seconds);
  return figures;
}

const char* to_string(OperatorClass kind) {
  constexpr std::array kNames{"matrix products",  "convolutions",    "attention",
                              "recurrent layers", "norms",           "pooling",
                              "pointwise",        "sums and losses", "copies and gathers",
                              "optimizer's step", "other operators"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace tare::bench

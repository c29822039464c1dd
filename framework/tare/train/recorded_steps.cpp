// Records steps of a fit, and does them again.
#include "tare/train/recorded_steps.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/model/precision.h"

namespace tare {
namespace {

constexpr size_t kMostKnown = 64;  // layouts that are counted

/// Returns what decides whether a recorded step fits a batch: the layout of its tensors, and the
/// sizes and shares of its parts, which are numbers of the record.
std::vector<double> layout_of(const Batch& batch, const std::vector<BatchPart>& parts) {
  std::vector<double> layout;
  const auto add = [&](const NamedTensors& list) {
    for (const auto& [name, tensor] : list) {
      layout.push_back(static_cast<double>(tensor.scalar_type()));
      for (const int64_t size : tensor.sizes()) layout.push_back(static_cast<double>(size));
      for (const int64_t stride : tensor.strides()) layout.push_back(static_cast<double>(stride));
      layout.push_back(-1);
    }
  };
  add(batch.inputs);
  add(batch.targets);
  for (const BatchPart& part : parts) {
    layout.push_back(static_cast<double>(part.batch.size()));
    layout.push_back(part.share);
    layout.push_back(part.counted.value_or(-1) == 0 ? 1 : 0);
  }
  return layout;
}

/// Returns a batch with memory of its own.
Batch own_batch(const Batch& batch) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& tensor : batch.tensors()) tensors.push_back(at::empty_like(tensor));
  return batch.with(tensors);
}

void copy(const Batch& from, const Batch& to) {
  const c10::NoGradGuard no_grad;
  const auto copy_list = [](const NamedTensors& source, const NamedTensors& target) {
    for (size_t i = 0; i < source.size(); ++i)
      target[i].tensor.copy_(source[i].tensor, /*non_blocking=*/true);
  };
  copy_list(from.inputs, to.inputs);
  copy_list(from.targets, to.targets);
}

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::optional<RefusedOption> refused_by_graph(const LearnerOptions& options) {
  if (!options.graph) return std::nullopt;
  const auto refused = [](const std::string& problem, const std::string& allowed) {
    return RefusedOption{"graph", problem, allowed, "true"};
  };
  if (!options.stages.empty())
    return refused("records the step of one card, and stages are several", "false beside stages");
  if (options.precision == "fp16")
    return refused("fixes the factor of the loss, which fp16 changes",
                   "false beside fp16, or precision: bf16");
  if (options.step_in_backward)
    return refused("records a step behind the backward, and step_in_backward steps inside it",
                   "one of them");
  if (!options.optimizers.empty())
    return refused("is for one optimizer, and there are several", "false beside optimizers");
  if (!options.recompute.empty())
    return refused("records a forward once, and recompute does it twice with equal random numbers",
                   "one of them");
  if (!options.offload.empty())
    return refused("records the work of the card alone, and offload takes the memory of the host",
                   "one of them");
  return std::nullopt;
}

void check_graph_option(const LearnerOptions& options, const std::string& where) {
  if (const auto refused = refused_by_graph(options))
    throw ConfigError(where, refused->field, refused->problem, refused->allowed, refused->got);
}

ConfigError no_graphs(c10::Device device, const std::string& where) {
  return {where, "graph", "needs a device that records work, which " + device.str() + " does not",
          "true on a CUDA card, else false", "true"};
}

RecordedSteps::RecordedSteps(LearnerState& state, const FitSchedules& schedules)
    : state_(state),
      with_optimizer_(state.optimizer->reads_rates_of_tensors() && !schedules.sets_momentum() &&
                      !schedules.sets_beta2() && !schedules.sets_weight_decay()) {
  if (!make_graph()) throw no_graphs(state.device.is_meta() ? c10::kCPU : state.device, "learner");
}

std::unique_ptr<memory::DeviceGraph> RecordedSteps::make_graph() const {
  const memory::DeviceGraph* other = nullptr;
  for (const Known& known : known_)
    if (known.step) other = known.step->graph.get();
  if (state_.planned_graph) return state_.planned_graph();
  if (state_.device.is_meta()) return nullptr;
  return memory::backend(state_.device).make_graph(other);
}

size_t RecordedSteps::steps() const {
  return static_cast<size_t>(
      std::ranges::count_if(known_, [](const Known& known) { return known.step != nullptr; }));
}

RecordedStep* RecordedSteps::find(const Batch& batch, const std::vector<BatchPart>& parts,
                                  bool& fresh) {
  watch_optimizer();
  fresh = false;
  std::vector<double> layout = layout_of(batch, parts);
  const auto at = std::ranges::find(known_, layout, &Known::layout);
  if (at == known_.end()) {
    if (known_.size() == kMostKnown)
      std::erase_if(known_, [](const Known& known) { return !known.step; });
    known_.push_back({.layout = std::move(layout), .seen = 1});
    return nullptr;
  }
  if (at->step && at->step->addresses != addresses()) at->step.reset();
  if (!at->step) fresh = ++at->seen > kEager && steps() < kMost;
  return at->step.get();
}

RecordedStep& RecordedSteps::record(const Batch& batch, const std::vector<BatchPart>& parts,
                                    const Work& work) {
  auto step = std::make_unique<RecordedStep>();
  step->batch = own_batch(batch);
  step->with_optimizer = with_optimizer_;
  step->addresses = addresses();
  std::vector<BatchPart> own = parts;
  const at::Tensor& first = batch.input();
  for (BatchPart& part : own) {
    const int64_t start =
        (part.batch.input().storage_offset() - first.storage_offset()) / first.stride(0);
    part.batch = step->batch.narrow(start, part.batch.size());
  }
  copy(batch, step->batch);
  set_rates();
  step->graph = make_graph();
  auto& groups = state_.optimizer->groups();
  if (with_optimizer_)
    for (size_t i = 0; i < groups.size(); ++i) groups[i].rate = rates_[i].tensor;
  struct WithoutRates {
    std::vector<ParameterGroup>& groups;
    ~WithoutRates() {
      for (auto& group : groups) group.rate.reset();
    }
  } const after{groups};
  try {
    step->graph->record([&] { work(*step, own); });
  } catch (const std::exception& error) {
    if (memory::classify(std::current_exception())) throw;
    throw ConfigError("learner.fit", "graph",
                      "asks for a step that cannot be recorded: " + first_line(error),
                      "false, or a model and a loss that neither wait for the card, as item() "
                      "does, nor take sizes from values",
                      "true");
  }
  ++recorded_;
  const auto at = std::ranges::find(known_, layout_of(batch, parts), &Known::layout);
  at->step = std::move(step);
  return *at->step;
}

void RecordedSteps::replay(RecordedStep& step, const Batch& batch) {
  copy(batch, step.batch);
  if (step.with_optimizer) set_rates();
  step.graph->replay();
  ++replays_;
}

void RecordedSteps::round_rates() {
  if (!with_optimizer_) return;
  for (ParameterGroup& group : state_.optimizer->groups()) group.lr = static_cast<float>(group.lr);
}

/// A callback may change more than the rates.
void RecordedSteps::watch_optimizer() {
  if (!with_optimizer_) return;
  std::vector<double> fixed = fixed_numbers();
  if (fixed_.empty()) fixed_ = fixed;
  if (fixed == fixed_) return;
  with_optimizer_ = false;
  for (Known& known : known_) known.step.reset();
}

std::vector<double> RecordedSteps::fixed_numbers() const {
  std::vector<double> fixed;
  for (const ParameterGroup& group : state_.optimizer->groups())
    for (const double number : {group.momentum, group.beta2.value_or(-1), group.weight_decay})
      fixed.push_back(number);
  return fixed;
}

void RecordedSteps::set_rates() {
  const auto& groups = state_.optimizer->groups();
  rates_.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    auto& [tensor, value] = rates_[i];
    if (tensor.defined() && value == groups[i].lr) continue;
    if (!tensor.defined())
      tensor = at::empty({}, at::TensorOptions(at::kFloat).device(state_.device));
    value = groups[i].lr;
    tensor.fill_(value);
  }
}

std::vector<const void*> RecordedSteps::addresses() const {
  std::vector<const void*> all;
  if (state_.device.is_meta()) return all;
  for (const Parameter& parameter : state_.model.parameters())
    all.push_back(parameter.tensor.const_data_ptr());
  for (const auto& [name, tensor] : state_.model.buffers()) all.push_back(tensor.const_data_ptr());
  return all;
}

void RecordedSteps::clear() { known_.clear(); }

void RecordedSteps::account(Ledger& ledger) const {
  for (const Rate& rate : rates_) ledger.add(Category::workspace, "rate", rate.tensor);
  for (const Known& known : known_) {
    if (!known.step) continue;
    for (const auto* list : {&known.step->batch.inputs, &known.step->batch.targets})
      for (const auto& [name, tensor] : *list)
        ledger.add(Category::batch, "recorded." + name, tensor);
    for (const RecordedStep::Part& part : known.step->parts) {
      for (const at::Tensor& output : part.outputs)
        ledger.add(Category::activations, "recorded.output", output);
      ledger.add(Category::activations, "recorded.loss", part.loss);
    }
    ledger.add(Category::activations, "recorded.loss", known.step->loss);
    for (const auto& [parameter, gradient] : known.step->gradients)
      ledger.add(Category::gradients, "recorded", gradient);
  }
}

}  // namespace tare

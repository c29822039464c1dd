// Plans the next fit of a Learner, to find its micro-batches and what it recomputes.
#include "tare/plan/next_fit.h"

#include <new>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/model/generators.h"
#include "tare/model/registry.h"
#include "tare/plan/plan_fit.h"
#include "tare/plan/recompute.h"

namespace tare {
namespace {

/// How a fit began.
struct Baseline {
  int64_t allocated_bytes = 0;
  ParameterNames stateful{};  // those for which the optimizer had its state
};

/// Lets the optimizer of a second Learner keep state for these parameters alone.
void prepare_state(LearnerState& other, const ParameterNames& stateful) {
  std::vector<at::Tensor> fresh;
  for (const auto& parameter : other.model.parameters())
    if (parameter.tensor.requires_grad() && !stateful.contains(parameter.name))
      fresh.push_back(parameter.tensor);
  for (at::Tensor& tensor : fresh) tensor.set_requires_grad(false);
  Optimizer& optimizer = other.ensure_optimizer();
  optimizer.prepare();
  for (at::Tensor& tensor : fresh) tensor.set_requires_grad(true);
  if (!fresh.empty()) (void)optimizer.set_groups(other.groups());
}

/// Brings a second Learner of the model to the state of the first: frozen layers, optimizer state.
std::function<void(LearnerState&)> like(const Model& model, ParameterNames stateful) {
  ParameterNames frozen;
  for (const auto& parameter : model.parameters())
    if (!parameter.tensor.requires_grad()) frozen.insert(parameter.name);
  return [frozen = std::move(frozen), stateful = std::move(stateful)](LearnerState& other) {
    for (const auto& parameter : other.model.parameters())
      if (frozen.contains(parameter.name)) at::Tensor(parameter.tensor).set_requires_grad(false);
    other.hold_frozen();
    if (!stateful.empty()) prepare_state(other, stateful);
  };
}

std::optional<int64_t> suggested(const LearnerState& state, int64_t failed, const Baseline& start) {
  // The plan does not know what is free on each of several cards, so trying finds the size.
  if (!state.model.spec() || state.devices().size() > 1) return std::nullopt;
  const GeneratorScope generators(state.device);
  try {
    const auto target = plan::parse_target(state.device.str());
    PlanRequest request = request_of(state, start.stateful, target.machine());
    request.options.recompute = state.recomputing;
    return planned_micro_batch(request, target, target.capacity_bytes - start.allocated_bytes,
                               failed);
  } catch (const Error& error) {  // then the size is found by trying
    log::debug("no plan of a micro-batch: " + printable(error.what()));
  } catch (const c10::Error& error) {  // out of memory for the samples that it reads
    log::debug("no plan of a micro-batch: " + printable(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {  // not even for a message
  }
  return std::nullopt;
}

}  // namespace

ParameterNames stateful_parameters(const LearnerState& state) {
  ParameterNames names;
  if (!state.optimizer) return names;
  for (const auto& entry : state.optimizer->state())  // "<buffer>/<parameter>"
    names.insert(entry.name.substr(entry.name.rfind('/') + 1));
  return names;
}

PlanRequest request_of(const LearnerState& state, const ParameterNames& stateful,
                       plan::Machine machine) {
  const auto& spec = state.model.spec();
  PlanRequest request{.options = state.options,
                      .ranks = state.options.group ? state.options.group->size() : 1,
                      .machine = machine};
  request.options.group.reset();
  request.epochs = kMostEpochs;  // nobody knows how many
  if (machine.is_card() && state.devices().size() > 1)
    for (const c10::Device device : state.devices())
      request.cards.push_back(plan::parse_target(device.str()));
  if (spec) request.model = [spec] { return models::make(*spec); };
  request.train = std::make_shared<BatchAllocations>(state.data.train, true);
  if (state.data.valid) request.valid = std::make_shared<BatchAllocations>(state.data.valid, false);
  request.before = like(state.model, stateful);
  return request;
}

std::function<std::optional<int64_t>(int64_t)> suggestion_by_plan(const LearnerState& state) {
  const Baseline start{memory::backend(state.device).usage().allocated_bytes,
                       stateful_parameters(state)};
  return [&state, start](int64_t failed) { return suggested(state, failed, start); };
}

void choose_recompute(LearnerState& state) {
  if (!is_auto(state.options.recompute)) return;
  const GeneratorScope generators(state.devices());
  const auto target = plan::parse_target(state.device.str());
  PlanRequest request = request_of(state, stateful_parameters(state), target.machine());
  (void)choose_recompute(
      request, target,
      target.capacity_bytes - memory::backend(state.device).usage().allocated_bytes);
  auto& chosen = request.options.recompute;
  if (chosen == state.recomputing) return;
  state.sizes.clear();  // more or less is kept for the backward
  state.model.set_recompute(chosen);
  state.recomputing = std::move(chosen);
  log::info("recompute: auto takes " + std::to_string(state.recomputing.size()) + " of " +
            std::to_string(state.model.blocks().size()) + " blocks");
}

}  // namespace tare

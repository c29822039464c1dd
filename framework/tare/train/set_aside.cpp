// Copies the state of a Learner, and puts it back.
#include "tare/train/set_aside.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_set>

#include "tare/memory/phase.h"

namespace tare {
namespace {

/// Returns the optimizers that step: the parts of a set, or the only one.
std::vector<Optimizer*> parts_of(LearnerState& state) {
  auto* set = dynamic_cast<OptimizerSet*>(state.optimizer.get());
  if (!set) return {state.optimizer.get()};
  std::vector<Optimizer*> parts;
  for (const std::string& name : state.optimizer_names()) parts.push_back(&set->part(name));
  return parts;
}

void set_rates(std::vector<ParameterGroup>& groups, const std::vector<ParameterGroup>& before) {
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].lr = before[i].lr;
    groups[i].momentum = before[i].momentum;
    groups[i].weight_decay = before[i].weight_decay;
  }
}

/// Returns the groups without the parameters that have no state yet.
std::vector<ParameterGroup> with_state(std::vector<ParameterGroup> groups,
                                       const std::vector<NamedTensor>& state) {
  std::unordered_set<std::string> names;
  for (const auto& entry : state) names.insert(entry.name.substr(entry.name.rfind('/') + 1));
  for (ParameterGroup& group : groups)
    std::erase_if(group.parameters, [&](const Parameter& p) { return !names.contains(p.name); });
  std::erase_if(groups, [](const ParameterGroup& group) { return group.parameters.empty(); });
  return groups;
}

size_t count(const std::vector<ParameterGroup>& groups) {
  size_t all = 0;
  for (const auto& group : groups) all += group.parameters.size();
  return all;
}

}  // namespace

SetAside::SetAside(LearnerState& state)
    : state_(state),
      modes_(state.model),
      made_with_rate_(state.made_with_rate),
      epochs_done_(state.epochs_done),
      restored_epoch_(state.restored_epoch),
      restored_validation_(state.restored_validation),
      lent_figures_(state.lent_figures),
      rows_(state.history.size()),
      trained_on_(state.trained_on),
      scaler_(state.scaler),
      sizes_(state.sizes.found()),
      recomputing_(state.recomputing) {
  const memory::Phase phase(memory::PhaseKind::step);
  generators_.take(state.devices());
  const bool all = static_cast<bool>(state.options.task);
  for (const auto& parameter : state.model.parameters())
    if (all || parameter.tensor.requires_grad())
      weights_.push_back({parameter.tensor, copied(parameter.tensor)});
  for (const auto& buffer : state.model.buffers())
    weights_.push_back({buffer.tensor, copied(buffer.tensor)});
  copy_optimizer();
  pending_ = std::exchange(state.pending, std::nullopt);
  for (const auto& parameter : state.model.parameters()) {
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    if (gradient.defined()) gradients_.emplace_back(parameter.tensor, std::exchange(gradient, {}));
  }
  state.set_aside = this;
}

SetAside::~SetAside() { state_.set_aside = nullptr; }

at::Tensor SetAside::copied(const at::Tensor& tensor) const {
  const c10::AutoGradMode no_grad(false);
  if (!tensor.is_meta())
    return tensor.detach().to(c10::kCPU, /*non_blocking=*/false, /*copy=*/true);
  return state_.for_card ? at::Tensor() : at::empty_like(tensor.detach());
}

void SetAside::copy_optimizer() {
  had_optimizer_ = state_.optimizer != nullptr;
  if (!had_optimizer_) return;
  all_groups_ = state_.optimizer->groups();
  for (Optimizer* part : parts_of(state_)) groups_.push_back(part->groups());
  for (const auto& [name, tensor] : state_.optimizer->state())
    optimizer_state_.push_back({name, copied(tensor)});
}

void SetAside::restore() {
  const c10::AutoGradMode no_grad(false);
  restore_host();
  for (const auto& parameter : state_.model.parameters()) parameter.tensor.mutable_grad().reset();
  for (auto& [parameter, gradient] : std::exchange(gradients_, {}))
    parameter.mutable_grad() = std::move(gradient);
  for (const Copy& copy : weights_)
    if (copy.values.defined()) copy.tensor.detach().copy_(copy.values);
  restore_optimizer();
  generators_.restore();
}

// The optimizer frees the tensors that the copied state lacks before it loads that state, so that
// loading allocates nothing.
void SetAside::restore_optimizer() {
  if (!had_optimizer_) return state_.optimizer.reset();
  Optimizer& optimizer = *state_.optimizer;
  if (optimizer_state_.empty()) {
    optimizer.clear();
  } else {
    auto known = with_state(all_groups_, optimizer_state_);
    const bool some = count(known) < count(all_groups_);
    if (some) (void)optimizer.set_groups(std::move(known));
    if (!state_.device.is_meta()) (void)optimizer.load_state(optimizer_state_);  // else no values
    if (some) (void)optimizer.set_groups(all_groups_);
  }
  set_rates(optimizer.groups(), all_groups_);
  const auto parts = parts_of(state_);
  for (size_t i = 0; i < parts.size(); ++i) set_rates(parts[i]->groups(), groups_[i]);
}

void SetAside::restore_host() {
  state_.made_with_rate = made_with_rate_;
  state_.epochs_done = epochs_done_;
  state_.restored_epoch = restored_epoch_;
  state_.restored_validation = restored_validation_;
  state_.lent_figures = lent_figures_;
  state_.history.resize(rows_);
  state_.pending = std::move(pending_);
  state_.trained_on = std::move(trained_on_);
  state_.scaler = scaler_;
  state_.sizes.clear();
  state_.sizes.add(sizes_);
  if (state_.recomputing == recomputing_) return;
  state_.model.set_recompute(recomputing_);
  state_.recomputing = recomputing_;
}

void SetAside::account(Ledger& ledger) const {
  for (const Copy& copy : weights_) ledger.add(Category::workspace, "set aside", copy.values);
  for (const auto& [name, tensor] : optimizer_state_)
    ledger.add(Category::workspace, "set aside." + name, tensor);
  for (const auto& [parameter, gradient] : gradients_)
    ledger.add(Category::gradients, "set aside", gradient);
}

}  // namespace tare

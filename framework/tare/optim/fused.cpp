#include "tare/optim/fused.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_map>

#include "tare/base/error.h"

namespace tare {
namespace {

using at::Tensor;

constexpr const char* kStep = "step";

template <class F>
void each_parameter(const std::vector<ParameterGroup>& groups, F&& use) {
  size_t index = 0;
  for (const auto& group : groups) {
    for (const auto& parameter : group.parameters) use(index++, group, parameter);
  }
}

size_t count(const std::vector<ParameterGroup>& groups) {
  size_t all = 0;
  for (const auto& group : groups) all += group.parameters.size();
  return all;
}

// An in-place operation with a scalar would allocate on the host; the data pointer does not.
void raise(std::vector<Tensor>& steps) {
  if (steps.empty()) return;
  if (!steps.front().device().is_cpu()) {
    at::_foreach_add_(steps, 1);
    return;
  }
  for (auto& step : steps) *step.mutable_data_ptr<float>() += 1;
}

void require_like(const NamedTensor& given, const Tensor& wanted) {
  if (given.tensor.sizes() == wanted.sizes() && given.tensor.scalar_type() == wanted.scalar_type())
    return;
  const auto text = [](const Tensor& t) {
    return std::string(c10::toString(t.scalar_type())) + " " + c10::str(t.sizes());
  };
  throw ShapeError("optimizer.load_state", "'" + given.name + "' as " + text(wanted),
                   text(given.tensor));
}

}  // namespace

int64_t FusedOptimizer::Slot::bytes() const {
  int64_t all = 0;
  for (const auto* t : {&buffers[0], &buffers[1], &step}) {
    if (t->defined()) all += static_cast<int64_t>(t->storage().nbytes());
  }
  return all;
}

FusedOptimizer::FusedOptimizer(std::vector<ParameterGroup> groups, std::vector<std::string> buffers,
                               bool counts)
    : Optimizer(std::move(groups)),
      names_(std::move(buffers)),
      counts_(counts),
      slots_(count(groups_)) {
  check_layout();
}

void FusedOptimizer::check_layout() const {
  each_parameter(groups_, [](size_t, const ParameterGroup&, const Parameter& p) {
    if (!p.tensor.is_non_overlapping_and_dense()) {
      throw ConfigError("optimizer", "parameter '" + p.name +
                                         "' is a view with holes or overlaps; make it contiguous");
    }
  });
}

bool FusedOptimizer::fits(const Slot& slot, const Tensor& parameter) const {
  const Tensor& first = slot.buffers[0];
  return first.defined() && first.device() == parameter.device() &&
         first.dtype() == parameter.dtype();
}

bool FusedOptimizer::ready() const {
  if (buckets_.empty()) return false;
  size_t index = 0;
  for (const auto& group : groups_) {
    const bool needed = needs_state(group);
    for (const auto& parameter : group.parameters) {
      if (needed && !fits(slots_[index], parameter.tensor)) return false;
      ++index;
    }
  }
  return std::ranges::all_of(
      buckets_, [&](const Bucket& b) { return b.with_state == needs_state(groups_[b.group]); });
}

FusedOptimizer::Slot FusedOptimizer::allocate(const Slot& old, const Tensor& parameter) const {
  Slot slot;
  for (size_t i = 0; i < names_.size(); ++i) {
    slot.buffers[i] =
        old.empty() ? at::zeros_like(parameter) : old.buffers[i].to(parameter.options());
  }
  if (counts_) {
    slot.step = old.empty() ? at::zeros({}, parameter.options().dtype(at::kFloat))
                            : old.step.to(parameter.device());
  }
  return slot;
}

void FusedOptimizer::prepare() {
  if (ready()) return;
  const c10::NoGradGuard no_grad;
  std::vector<Slot> slots = slots_;  // handles: an allocation that fails leaves the state as it was
  each_parameter(groups_, [&](size_t i, const ParameterGroup& group, const Parameter& p) {
    if (needs_state(group) && !fits(slots[i], p.tensor))
      slots[i] = allocate(slots[i], p.tensor.detach());
  });
  slots_ = std::move(slots);
  fill_buckets();
}

void FusedOptimizer::fill_buckets() {
  buckets_.clear();
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const bool with_state = needs_state(groups_[g]);
    for (const auto& parameter : groups_[g].parameters) {
      FusedLists& lists = bucket_for(g, parameter.tensor, with_state).lists;
      const Slot& slot = slots_[index++];
      lists.parameters.push_back(parameter.tensor);
      if (!with_state) continue;
      for (size_t i = 0; i < names_.size(); ++i) lists.buffers[i].push_back(slot.buffers[i]);
      if (counts_) lists.steps.push_back(slot.step);
    }
  }
}

FusedOptimizer::Bucket& FusedOptimizer::bucket_for(size_t group, const Tensor& parameter,
                                                   bool with_state) {
  for (auto& bucket : buckets_) {
    const Tensor& first = bucket.lists.parameters.front();
    if (bucket.group == group && first.device() == parameter.device() &&
        first.dtype() == parameter.dtype())
      return bucket;
  }
  buckets_.push_back({group, with_state, {}});
  return buckets_.back();
}

// The kernels walk raw memory: a gradient must lie there as its parameter does. Done for all before
// the first write.
void FusedOptimizer::settle_gradients() {
  for (const auto& group : groups_) {
    for (const auto& parameter : group.parameters) {
      Tensor& gradient = const_cast<Tensor&>(parameter.tensor).mutable_grad();
      if (!gradient.defined()) continue;
      if (gradient.layout() != at::kStrided) {
        throw ConfigError(
            "optimizer.step",
            "the gradient of '" + parameter.name +
                "' is sparse; use a dense one, or torch_optimizer() with a kind that takes it");
      }
      if (gradient.strides() == parameter.tensor.strides()) continue;
      gradient = at::empty_like(parameter.tensor.detach()).copy_(gradient);
    }
  }
}

void FusedOptimizer::step() {
  const c10::NoGradGuard no_grad;
  prepare();
  settle_gradients();
  for (auto& bucket : buckets_) step_bucket(bucket);
}

void FusedOptimizer::step_bucket(Bucket& bucket) {
  FusedLists& all = bucket.lists;
  bool complete = true;
  all.gradients.reserve(all.parameters.size());
  for (const auto& parameter : all.parameters) {
    all.gradients.push_back(parameter.grad());
    complete = complete && parameter.grad().defined();
  }
  FusedLists some;
  if (!complete) {
    const auto keep = [&](const std::vector<Tensor>& from, std::vector<Tensor>& to) {
      for (size_t i = 0; i < from.size(); ++i) {
        if (all.gradients[i].defined()) to.push_back(from[i]);
      }
    };
    keep(all.parameters, some.parameters);
    keep(all.gradients, some.gradients);
    keep(all.steps, some.steps);
    for (size_t i = 0; i < names_.size(); ++i) keep(all.buffers[i], some.buffers[i]);
  }
  FusedLists& lists = complete ? all : some;
  struct Release {  // no gradient may outlive the step through these lists
    std::vector<Tensor>& gradients;
    ~Release() { gradients.clear(); }
  } release{all.gradients};
  if (lists.parameters.empty()) return;
  raise(lists.steps);
  launch(groups_[bucket.group], lists);
}

void FusedOptimizer::clear() {
  buckets_.clear();
  slots_.assign(count(groups_), {});
}

std::vector<NamedTensor> FusedOptimizer::state() const {
  std::vector<NamedTensor> all;
  each_parameter(groups_, [&](size_t i, const ParameterGroup&, const Parameter& p) {
    const Slot& slot = slots_[i];
    if (slot.empty()) return;
    for (size_t b = 0; b < names_.size(); ++b)
      all.push_back({names_[b] + "/" + p.name, slot.buffers[b]});
    if (counts_) all.push_back({std::string(kStep) + "/" + p.name, slot.step});
  });
  return all;
}

void FusedOptimizer::check_state(const std::vector<NamedTensor>& state) const {
  for (const auto& entry : state) {
    const std::string buffer = entry.name.substr(0, entry.name.find('/'));
    const bool known =
        std::ranges::find(names_, buffer) != names_.end() || (counts_ && buffer == kStep);
    if (known) continue;
    throw ConfigError("optimizer.load_state",
                      "'" + printable(entry.name) + "' is not state of '" + kind() +
                          "'; load without the optimizer, or use the kind that wrote it");
  }
}

std::vector<std::string> FusedOptimizer::load_state(const std::vector<NamedTensor>& state) {
  check_state(state);
  std::unordered_map<std::string, const NamedTensor*> given;
  for (const auto& entry : state) given[entry.name] = &entry;
  std::vector<std::string> fresh;
  std::vector<std::pair<size_t, std::vector<const NamedTensor*>>>
      found;  // slot and its entries; none: fresh
  const Tensor scalar = at::zeros({}, at::kFloat);
  each_parameter(groups_, [&](size_t i, const ParameterGroup& group, const Parameter& p) {
    if (!needs_state(group)) return;
    std::vector<const NamedTensor*> entries;
    const auto look = [&](const std::string& buffer, const Tensor& like) {
      const auto at = given.find(buffer + "/" + p.name);
      if (at == given.end()) return;
      require_like(*at->second, like);
      entries.push_back(at->second);
    };
    for (const auto& name : names_) look(name, p.tensor);
    if (counts_) look(kStep, scalar);
    if (!entries.empty() && entries.size() != names_.size() + (counts_ ? 1 : 0)) {
      throw ConfigError("optimizer.load_state",
                        "the state of '" + p.name + "' is incomplete; load without the optimizer");
    }
    if (entries.empty()) fresh.push_back(p.name);
    found.emplace_back(i, std::move(entries));
  });
  prepare();
  const c10::NoGradGuard no_grad;
  for (auto& [i, entries] : found) {
    Slot& slot = slots_[i];
    for (size_t b = 0; b < names_.size(); ++b) {
      entries.empty() ? slot.buffers[b].zero_() : slot.buffers[b].copy_(entries[b]->tensor);
    }
    if (counts_) entries.empty() ? slot.step.zero_() : slot.step.copy_(entries.back()->tensor);
  }
  return fresh;
}

StateChange FusedOptimizer::set_groups(std::vector<ParameterGroup> groups) {
  std::unordered_map<std::string, Slot> old;
  each_parameter(groups_, [&](size_t i, const ParameterGroup&, const Parameter& p) {
    if (!slots_[i].empty()) old.emplace(p.name, slots_[i]);
  });
  StateChange change;
  std::vector<Slot> slots(count(groups));
  each_parameter(groups, [&](size_t i, const ParameterGroup& group, const Parameter& p) {
    const auto at = old.find(p.name);
    if (at != old.end() && at->second.buffers[0].sizes() == p.tensor.sizes()) {
      slots[i] = at->second;
      old.erase(at);
      ++change.kept;
    } else if (needs_state(group)) {
      ++change.fresh;
    }
  });
  for (const auto& [name, slot] : old) {
    ++change.freed;
    change.freed_bytes += slot.bytes();
  }
  groups_ = std::move(groups);
  slots_ = std::move(slots);
  buckets_.clear();
  check_layout();
  return change;
}

namespace {

class Sgd final : public FusedOptimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), {"momentum_buffer"}, /*counts=*/false),
        nesterov_(options.nesterov) {}
  [[nodiscard]] std::string kind() const override { return "sgd"; }

 protected:
  [[nodiscard]] bool needs_state(const ParameterGroup& group) const override {
    return group.momentum > 0;
  }
  // The buffer starts at zero and there is no dampening, so the first step needs no case of its
  // own.
  void launch(const ParameterGroup& g, FusedLists& lists) override {
    at::_fused_sgd_(
        lists.parameters, lists.gradients, lists.buffers[0], g.weight_decay, g.momentum, g.lr,
        /*dampening=*/0, nesterov_ && g.momentum > 0, /*maximize=*/false, /*is_first_step=*/false);
  }

 private:
  bool nesterov_;
};

class Adam final : public FusedOptimizer {
 public:
  Adam(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), {"exp_avg", "exp_avg_sq"}, /*counts=*/true),
        decoupled_(options.kind == "adamw"),
        beta2_(options.beta2),
        eps_(options.eps) {}
  [[nodiscard]] std::string kind() const override { return decoupled_ ? "adamw" : "adam"; }

 protected:
  void launch(const ParameterGroup& g, FusedLists& lists) override {
    const auto call = [&](auto kernel) {
      kernel(lists.parameters, lists.gradients, lists.buffers[0], lists.buffers[1],
             at::TensorList{}, lists.steps, g.lr, g.momentum, beta2_, g.weight_decay, eps_,
             /*amsgrad=*/false, /*maximize=*/false);
    };
    if (decoupled_) {
      call([](auto&&... a) { at::_fused_adamw_(a...); });
    } else {
      call([](auto&&... a) { at::_fused_adam_(a...); });
    }
  }

 private:
  bool decoupled_;
  double beta2_, eps_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups) {
  config::validate(options, "optimizer");
  if (options.nesterov && (options.kind != "sgd" || options.momentum <= 0)) {
    throw ConfigError("optimizer", "nesterov needs kind sgd and momentum > 0");
  }
  if (options.kind == "sgd") return std::make_unique<Sgd>(options, std::move(groups));
  return std::make_unique<Adam>(options, std::move(groups));
}

}  // namespace tare

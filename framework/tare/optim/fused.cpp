// Keeps the state of fused optimizers, and steps in buckets of tensors with one dtype and device.
#include "tare/optim/fused.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/optim/state_index.h"

namespace tare {
namespace {

using at::Tensor;

constexpr const char* kStep = "step";
constexpr const char* kScale = "_scale";

int64_t blocks_of(const Tensor& parameter) {
  return (parameter.numel() + kStateBlock - 1) / kStateBlock;
}

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
  if (steps.empty() || steps.front().is_meta()) return;
  if (!steps.front().device().is_cpu()) {
    at::_foreach_add_(steps, 1);
    return;
  }
  for (auto& step : steps) *step.mutable_data_ptr<float>() += 1;
}

}  // namespace

int64_t FusedOptimizer::Slot::bytes() const {
  int64_t all = 0;
  for (const Tensor* t : this->all()) {
    if (t->defined()) all += static_cast<int64_t>(t->storage().nbytes());
  }
  return all;
}

void FusedOptimizer::Slot::assign(const std::vector<const NamedTensor*>& entries) {
  size_t next = 0;
  for (const Tensor* t : all()) {
    if (!t->defined()) continue;
    if (entries.empty()) {
      t->fill_(t == &product ? 1 : 0);
    } else {
      t->copy_(entries[next++]->tensor);
    }
  }
}

FusedOptimizer::FusedOptimizer(std::vector<ParameterGroup> groups, FusedState kept)
    : Optimizer(std::move(groups)), kept_(std::move(kept)), slots_(count(groups_)) {
  check_layout();
}

std::vector<std::string> FusedOptimizer::names(const FusedState& kept) {
  std::vector<std::string> all = kept.buffers;
  if (kept.eight_bit)
    for (const auto& buffer : kept.buffers) all.push_back(buffer + kScale);
  if (kept.counts) all.emplace_back(kStep);
  if (!kept.product.empty()) all.push_back(kept.product);
  return all;
}

void FusedOptimizer::check_layout() const {
  each_parameter(groups_, [](size_t, const ParameterGroup&, const Parameter& p) {
    if (!p.tensor.is_non_overlapping_and_dense()) {
      throw ConfigError("optimizer", "parameter '" + p.name +
                                         "' is a view with holes or overlaps; make it contiguous");
    }
  });
}

bool FusedOptimizer::fits(const Slot& slot, const Parameter& parameter) const {
  const Tensor& first = slot.buffers[0];
  return first.defined() && first.device() == parameter.tensor.device() &&
         (kept_of(parameter).eight_bit || first.dtype() == parameter.tensor.dtype());
}

bool FusedOptimizer::ready() const {
  if (buckets_.empty()) return false;
  size_t index = 0;
  for (const auto& group : groups_) {
    const bool needed = needs_state(group);
    for (const auto& parameter : group.parameters) {
      if (needed && !fits(slots_[index], parameter)) return false;
      ++index;
    }
  }
  return std::ranges::all_of(
      buckets_, [&](const Bucket& b) { return b.with_state == needs_state(groups_[b.group]); });
}

FusedOptimizer::Slot FusedOptimizer::allocate(const Slot& old, const Parameter& parameter) const {
  const FusedState& kept = kept_of(parameter);
  const Tensor like = parameter.tensor.detach();
  const auto type = kept.eight_bit ? at::kByte : like.scalar_type();
  const auto numbers = like.options().dtype(at::kFloat);
  Slot slot;
  for (size_t i = 0; i < kept.buffers.size(); ++i) {
    slot.buffers[i] = old.empty() ? at::zeros_like(like, like.options().dtype(type))
                                  : old.buffers[i].to(like.device(), type);
    if (kept.eight_bit)
      slot.scales[i] =
          old.empty() ? at::zeros({blocks_of(like)}, numbers) : old.scales[i].to(like.device());
  }
  if (kept.counts) slot.step = old.empty() ? at::zeros({}, numbers) : old.step.to(like.device());
  if (!kept.product.empty())
    slot.product = old.empty() ? at::ones({}, numbers) : old.product.to(like.device());
  return slot;
}

void FusedOptimizer::prepare() {
  if (ready()) return;
  const c10::NoGradGuard no_grad;
  std::vector<Slot> slots = slots_;  // handles: an allocation that fails leaves the state as it was
  each_parameter(groups_, [&](size_t i, const ParameterGroup& group, const Parameter& p) {
    if (needs_state(group) && !fits(slots[i], p)) slots[i] = allocate(slots[i], p);
  });
  slots_ = std::move(slots);
  fill_buckets();
}

void FusedOptimizer::fill_buckets() {
  buckets_.clear();
  places_.clear();
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const bool with_state = needs_state(groups_[g]);
    for (const auto& parameter : groups_[g].parameters) {
      Bucket& bucket = bucket_for(g, parameter, with_state);
      FusedLists& lists = bucket.lists;
      places_[parameter.tensor.unsafeGetTensorImpl()] = {
          static_cast<size_t>(&bucket - buckets_.data()), lists.parameters.size()};
      const Slot& slot = slots_[index++];
      lists.parameters.push_back(parameter.tensor);
      if (!with_state) continue;
      const auto keep = [](const Tensor& tensor, std::vector<Tensor>& list) {
        if (tensor.defined()) list.push_back(tensor);
      };
      for (size_t i = 0; i < slot.buffers.size(); ++i) {
        keep(slot.buffers[i], lists.buffers[i]);
        keep(slot.scales[i], lists.scales[i]);
      }
      keep(slot.step, lists.steps);
      keep(slot.product, lists.products);
    }
  }
}

FusedOptimizer::Bucket& FusedOptimizer::bucket_for(size_t group, const Parameter& parameter,
                                                   bool with_state) {
  const Tensor& tensor = parameter.tensor;
  const FusedState& kept = kept_of(parameter);
  for (auto& bucket : buckets_) {
    const Tensor& first = bucket.lists.parameters.front();
    if (bucket.group == group && bucket.kept == kept && first.device() == tensor.device() &&
        first.dtype() == tensor.dtype())
      return bucket;
  }
  buckets_.push_back({group, with_state, kept, {}});
  return buckets_.back();
}

// The kernels walk raw memory: a gradient must lie there as its parameter does. Done for all before
// the first write.
void FusedOptimizer::align_gradients() {
  for (const auto& group : groups_)
    for (const auto& parameter : group.parameters) align_gradient(parameter);
}

void FusedOptimizer::align_gradient(const Parameter& parameter) {
  Tensor& gradient = parameter.tensor.mutable_grad();
  if (!gradient.defined()) return;
  if (gradient.layout() != at::kStrided) {
    throw ConfigError(
        "optimizer.step",
        "the gradient of '" + parameter.name +
            "' is sparse; use a dense one, or torch_optimizer() with a kind that takes it");
  }
  if (gradient.strides() == parameter.tensor.strides()) return;
  gradient = at::empty_like(parameter.tensor.detach()).copy_(gradient);
}

void FusedOptimizer::step() {
  const c10::NoGradGuard no_grad;
  prepare();
  align_gradients();
  for (auto& bucket : buckets_) step_bucket(bucket);
}

void FusedOptimizer::step_one(const Tensor& parameter) {
  const c10::NoGradGuard no_grad;
  if (places_.empty()) prepare();
  const auto [bucket, index] = places_.at(parameter.unsafeGetTensorImpl());
  const FusedLists& all = buckets_[bucket].lists;
  align_gradient({.name = "a parameter", .tensor = parameter});
  FusedLists one;
  one.parameters = {all.parameters[index]};
  one.gradients = {parameter.grad()};
  if (!all.steps.empty()) one.steps = {all.steps[index]};
  if (!all.products.empty()) one.products = {all.products[index]};
  for (size_t i = 0; i < all.buffers.size(); ++i) {
    if (!all.buffers[i].empty()) one.buffers[i] = {all.buffers[i][index]};
    if (!all.scales[i].empty()) one.scales[i] = {all.scales[i][index]};
  }
  raise(one.steps);
  launch(groups_[buckets_[bucket].group], one);
}

FusedLists FusedOptimizer::with_gradient(const FusedLists& all) {
  FusedLists some;
  const auto keep = [&](const std::vector<Tensor>& from, std::vector<Tensor>& to) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (all.gradients[i].defined()) to.push_back(from[i]);
    }
  };
  keep(all.parameters, some.parameters);
  keep(all.gradients, some.gradients);
  keep(all.steps, some.steps);
  keep(all.products, some.products);
  for (size_t i = 0; i < all.buffers.size(); ++i) {
    keep(all.buffers[i], some.buffers[i]);
    keep(all.scales[i], some.scales[i]);
  }
  return some;
}

void FusedOptimizer::step_bucket(Bucket& bucket) {
  FusedLists& all = bucket.lists;
  struct Release {  // no gradient may outlive the step through these lists
    std::vector<Tensor>& gradients;
    ~Release() { gradients.clear(); }
  } release{all.gradients};
  bool complete = true;
  for (const auto& parameter : all.parameters) {
    all.gradients.push_back(parameter.grad());
    complete = complete && all.gradients.back().defined();
  }
  std::optional<FusedLists> some;
  if (!complete) some = with_gradient(all);
  FusedLists& lists = some ? *some : all;
  if (lists.parameters.empty()) return;
  raise(lists.steps);
  launch(groups_[bucket.group], lists);
}

void FusedOptimizer::clear() {
  buckets_.clear();
  places_.clear();
  slots_.assign(count(groups_), {});
}

std::vector<NamedTensor> FusedOptimizer::state() const {
  std::vector<NamedTensor> all;
  each_parameter(groups_, [&](size_t i, const ParameterGroup&, const Parameter& p) {
    const Slot& slot = slots_[i];
    if (slot.empty()) return;
    const auto called = names(kept_of(p));
    auto name = called.begin();
    for (const Tensor* tensor : slot.all())
      if (tensor->defined()) all.push_back({*name++ + "/" + p.name, *tensor});
  });
  return all;
}

std::vector<const NamedTensor*> FusedOptimizer::entries_of(const Parameter& parameter,
                                                           const StateIndex& index) const {
  std::vector<const NamedTensor*> entries;
  const auto look = [&](const std::string& buffer, const Tensor& like) {
    const NamedTensor* entry = index.find(buffer, parameter.name);
    if (!entry) return;
    require_like(*entry, like, /*exact_type=*/true);
    entries.push_back(entry);
  };
  const FusedState& kept = kept_of(parameter);
  const auto number = at::device(at::kMeta).dtype(at::kFloat);
  for (const auto& name : kept.buffers)
    look(name, kept.eight_bit ? at::empty(parameter.tensor.sizes(), number.dtype(at::kByte))
                              : parameter.tensor);
  if (kept.eight_bit)
    for (const auto& name : kept.buffers)
      look(name + kScale, at::empty({blocks_of(parameter.tensor)}, number));
  if (kept.counts) look(kStep, at::zeros({}, at::kFloat));
  if (!kept.product.empty()) look(kept.product, at::zeros({}, at::kFloat));
  if (!entries.empty() && entries.size() != names(kept).size()) {
    throw_incomplete(parameter.name);
  }
  return entries;
}

FusedOptimizer::Found FusedOptimizer::find(const std::vector<NamedTensor>& state) {
  std::vector<std::string> known;
  for (const FusedState& kept : all_kept())
    for (const std::string& name : names(kept)) known.push_back(name);
  const StateIndex index(state, kind(), [&](const std::string& buffer) {
    return std::ranges::find(known, buffer) != known.end();
  });
  Found found{.entries = std::vector<std::vector<const NamedTensor*>>(slots_.size())};
  each_parameter(groups_, [&](size_t i, const ParameterGroup& group, const Parameter& p) {
    if (!needs_state(group)) return;
    found.entries[i] = entries_of(p, index);
    if (found.entries[i].empty()) found.fresh.push_back(p.name);
  });
  return found;
}

void FusedOptimizer::check_state(const std::vector<NamedTensor>& state) { (void)find(state); }

std::vector<std::string> FusedOptimizer::load_state(const std::vector<NamedTensor>& state) {
  Found found = find(state);
  prepare();
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].empty()) slots_[i].assign(found.entries[i]);
  }
  return std::move(found.fresh);
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
  places_.clear();
  check_layout();
  return change;
}

}  // namespace tare

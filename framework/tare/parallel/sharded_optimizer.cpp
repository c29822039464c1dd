// Divides the state of an optimizer over ranks.
#include "tare/parallel/sharded_optimizer.h"

#include <algorithm>
#include <utility>

namespace tare::parallel {

std::map<std::string, int64_t> owners_of(const std::vector<Parameter>& all, int64_t ranks) {
  std::vector<const Parameter*> ordered;
  for (const Parameter& one : all) ordered.push_back(&one);
  std::ranges::stable_sort(ordered, [](const Parameter* one, const Parameter* other) {
    return one->tensor.nbytes() > other->tensor.nbytes();
  });
  std::vector<size_t> bytes(static_cast<size_t>(ranks), 0);
  std::map<std::string, int64_t> owners;
  for (const Parameter* one : ordered) {
    const auto least = std::ranges::min_element(bytes);
    *least += one->tensor.nbytes();
    owners[one->name] = least - bytes.begin();
  }
  return owners;
}

ShardedOptimizer::ShardedOptimizer(Shard shard, std::vector<ParameterGroup> groups,
                                   const OptimizerFactory& make)
    : Optimizer(std::move(groups)), shard_(std::move(shard)), own_(make(groups_)) {
  (void)own_->set_groups(own_groups());  // it was made with all, by whose names it checks options
}

std::string ShardedOptimizer::kind() const { return own_->kind(); }

std::vector<ParameterGroup> ShardedOptimizer::own_groups() {
  std::vector<ParameterGroup> own;
  from_.clear();
  for (size_t i = 0; i < groups_.size(); ++i) {
    ParameterGroup group = groups_[i];
    std::erase_if(group.parameters,
                  [this](const Parameter& one) { return !shard_.owns(one.name); });
    if (group.parameters.empty() && i > 0) continue;  // the first one names the rates
    own.push_back(std::move(group));
    from_.push_back(i);
  }
  return own;
}

void ShardedOptimizer::set_rates() {
  for (size_t i = 0; i < from_.size(); ++i) {
    const ParameterGroup& all = groups_[from_[i]];
    ParameterGroup& own = own_->groups()[i];
    own.lr = all.lr;
    own.momentum = all.momentum;
    own.beta2 = all.beta2;
    own.weight_decay = all.weight_decay;
  }
}

void ShardedOptimizer::step() {
  set_rates();
  own_->step();
  if (!shard_.group) return;
  std::vector<std::vector<at::Tensor>> by_owner(static_cast<size_t>(shard_.group->size()));
  for (const ParameterGroup& group : groups_)
    for (const Parameter& one : group.parameters)
      by_owner[static_cast<size_t>(shard_.owners.at(one.name))].push_back(one.tensor);
  for (size_t owner = 0; owner < by_owner.size(); ++owner)
    shard_.group->broadcast(by_owner[owner], static_cast<int64_t>(owner));
}

void ShardedOptimizer::prepare() { own_->prepare(); }
void ShardedOptimizer::clear() { own_->clear(); }
std::vector<NamedTensor> ShardedOptimizer::state() const { return own_->state(); }

std::vector<std::string> ShardedOptimizer::load_state(const std::vector<NamedTensor>& state) {
  set_rates();
  return own_->load_state(state);
}

void ShardedOptimizer::check_state(const std::vector<NamedTensor>& state) {
  own_->check_state(state);
}

StateChange ShardedOptimizer::set_groups(std::vector<ParameterGroup> groups) {
  groups_ = std::move(groups);
  return own_->set_groups(own_groups());
}

}  // namespace tare::parallel

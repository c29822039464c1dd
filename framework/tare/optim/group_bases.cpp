// Keeps the values that the groups of an optimizer were made with, while a fit changes them.
#include "tare/optim/fit_schedules.h"
#include "tare/optim/optimizer_set.h"

namespace tare {

GroupBases::GroupBases(Optimizer& optimizer, const FitSchedules& schedules)
    : optimizer_(optimizer),
      momentum_(schedules.sets_momentum()),
      beta2_(schedules.sets_beta2()),
      weight_decay_(schedules.sets_weight_decay()) {
  if (const auto* set = dynamic_cast<const OptimizerSet*>(&optimizer))
    momentum_ = momentum_ || set->sets_momentum();
  for (const ParameterGroup& group : optimizer.groups())
    values_.push_back({group.momentum, group.beta2, group.weight_decay});
}

GroupBases::~GroupBases() {
  const auto restore = [this](ParameterGroup& group, const GroupBase& base) {
    if (momentum_) group.momentum = base.momentum;
    if (beta2_) group.beta2 = base.beta2;
    if (weight_decay_) group.weight_decay = base.weight_decay;
  };
  auto& groups = optimizer_.groups();
  for (size_t i = 0; i < groups.size(); ++i) restore(groups[i], values_[i]);
  auto* set = dynamic_cast<OptimizerSet*>(&optimizer_);
  if (!set) return;
  const auto stepped = set->stepped_groups();
  for (size_t i = 0; i < stepped.size(); ++i) restore(*stepped[i], values_[i]);
}

}  // namespace tare

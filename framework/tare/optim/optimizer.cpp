// Gives optimizers their common calls, and makes parameter groups.
#include "tare/optim/optimizer.h"

#include "tare/base/error.h"

namespace tare {

void Optimizer::step_one(const at::Tensor&) {
  throw StateError("optimizer.step_one", "with a " + kind() + " optimizer",
                   "use one that has a name in recipes");
}

void Optimizer::check_state(const std::vector<NamedTensor>&) {}

void Optimizer::zero_grad() {
  for (auto& group : groups_) {
    for (auto& parameter : group.parameters) parameter.tensor.mutable_grad().reset();
  }
}

void Optimizer::account(Ledger& ledger) const {
  for (const auto& [name, tensor] : state()) ledger.add(Category::optimizer, name, tensor);
}

std::vector<ParameterGroup> make_groups(const Model& model, const OptimizerOptions& options) {
  const auto& layers = model.layer_groups();
  // Without decay there is nothing to distinguish, and each group costs a kernel launch.
  const bool all_alike = options.decay_norm_and_bias || options.weight_decay == 0;
  std::vector<ParameterGroup> all;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const bool decay : {true, false}) {
      ParameterGroup group{.name = layers[i].name + (decay ? "" : " (no decay)"),
                           .parameters = {},
                           .lr = options.lr,
                           .momentum = momentum_of(options),
                           .beta2 = group_beta2_of(options),
                           .weight_decay = decay ? options.weight_decay : 0,
                           .layer_group = static_cast<int64_t>(i),
                           .decay = decay};
      for (const auto& p : model.parameters()) {
        const bool decays = all_alike || p.kind == ParameterKind::weight;
        if (p.group == group.layer_group && decays == decay && p.tensor.requires_grad())
          group.parameters.push_back(p);
      }
      if (!group.parameters.empty()) all.push_back(std::move(group));
    }
  }
  return all;
}

}  // namespace tare

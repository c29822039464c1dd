// Groups, checks and state of the elementwise optimizers, up to the call of their formulas.
#include "tare/optim/elementwise.h"

#include <algorithm>

namespace tare {

using at::Tensor;

Tensor decayed_gradient(const ParameterGroup& g, const ElementwiseStep& one) {
  return g.weight_decay == 0 ? one.gradient : one.gradient.add(one.parameter, g.weight_decay);
}

ElementwiseOptimizer::ElementwiseOptimizer(const OptimizerOptions& options,
                                           std::vector<ParameterGroup> groups, FusedState kept,
                                           bool with_tensors)
    : FusedOptimizer(std::move(groups), std::move(kept)),
      kind_(options.kind),
      beta2_(beta2_of(options)),
      eps_(eps_of(options)),
      with_tensors_(with_tensors) {}

bool ElementwiseOptimizer::steps_atomically() const {
  return std::ranges::all_of(groups_, [this](const ParameterGroup& group) {
    return std::ranges::all_of(group.parameters, [this](const Parameter& p) {
      return is_skipped(p.tensor) || is_walked(p.tensor);
    });
  });
}

void ElementwiseOptimizer::launch(const ParameterGroup& g, FusedLists& lists) {
  for (size_t i = 0; i < lists.parameters.size(); ++i) {
    const auto at = [&](const std::vector<Tensor>& list) {
      return list.empty() ? Tensor() : list[i];
    };
    const ElementwiseStep one{lists.parameters[i], lists.gradients[i], at(lists.buffers[0]),
                              at(lists.buffers[1])};
    if (is_skipped(one.parameter)) continue;
    if (is_walked(one.parameter))
      walk_one(g, one, at(lists.steps), at(lists.products));
    else
      compute_one(g, one, at(lists.steps), at(lists.products));
  }
}

// The plan of a step on the host has meta tensors, whose walk would allocate nothing.
bool ElementwiseOptimizer::is_skipped(const Tensor& tensor) const {
  return tensor.is_meta() && !with_tensors_;
}

bool ElementwiseOptimizer::is_walked(const Tensor& tensor) const {
  return tensor.device().is_cpu() && !with_tensors_;
}

}  // namespace tare

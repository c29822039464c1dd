// The optimizer Adagrad: Duchi, Hazan and Singer, "Adaptive Subgradient Methods", JMLR 12, 2011:
// the diagonal form.
#include <cmath>

#include "tare/optim/elementwise.h"

namespace tare {
namespace {

using at::Tensor;

class Adagrad final : public ElementwiseOptimizer {
 public:
  Adagrad(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(options, std::move(groups), {.buffers = {"sum"}}, with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor&,
                const Tensor&) const override {
    walk(one, [&]<class T>(T& p, T gradient, T& sum, T&) {
      gradient += static_cast<T>(g.weight_decay) * p;
      sum += gradient * gradient;
      p -= static_cast<T>(g.lr) * gradient / (std::sqrt(sum) + static_cast<T>(eps()));
    });
  }
  void compute_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor&,
                   const Tensor&) const override {
    const Tensor gradient = decayed_gradient(g, one);
    one.first.addcmul_(gradient, gradient);
    one.parameter.addcdiv_(gradient, one.first.sqrt().add_(eps()), -g.lr);
  }
};

}  // namespace

namespace optimizers {
void add_adagrad(Registry& all) {
  all.add("adagrad", "divides gradients by the root of the sum of their squares",
          [] { return elementwise_kind<Adagrad>({.eps = 1e-10}); });
}
}  // namespace optimizers

}  // namespace tare

// The optimizer Adadelta: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1;
// times lr, which is 1 there.
#include <cmath>

#include "tare/optim/elementwise.h"

namespace tare {
namespace {

using at::Tensor;

class Adadelta final : public ElementwiseOptimizer {
 public:
  Adadelta(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(options, std::move(groups), {.buffers = {"square_avg", "acc_delta"}},
                             with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor&,
                const Tensor&) const override {
    walk(one, [&]<class T>(T& p, T gradient, T& mean, T& deltas) {
      const T rho = static_cast<T>(beta2(g)), rest = static_cast<T>(1 - beta2(g));
      const T eps = static_cast<T>(this->eps());
      gradient += static_cast<T>(g.weight_decay) * p;
      mean = rho * mean + rest * gradient * gradient;
      const T delta = std::sqrt(deltas + eps) / std::sqrt(mean + eps) * gradient;
      deltas = rho * deltas + rest * delta * delta;
      p -= static_cast<T>(g.lr) * delta;
    });
  }
  void compute_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor&,
                   const Tensor&) const override {
    const Tensor gradient = decayed_gradient(g, one);
    one.first.mul_(beta2(g)).addcmul_(gradient, gradient, 1 - beta2(g));
    const Tensor root = one.first.add(eps()).sqrt_();
    const Tensor delta = one.second.add(eps()).sqrt_().div_(root).mul_(gradient);
    one.second.mul_(beta2(g)).addcmul_(delta, delta, 1 - beta2(g));
    one.parameter.add_(delta, -g.lr);
  }
};

}  // namespace

namespace optimizers {
void add_adadelta(Registry& all) {
  all.add("adadelta", "scales steps by the root mean square of earlier steps",
          [] { return elementwise_kind<Adadelta>({.beta2 = 0.9, .eps = 1e-6}); });
}
}  // namespace optimizers

}  // namespace tare

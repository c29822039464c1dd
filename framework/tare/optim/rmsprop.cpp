// The optimizer RMSprop: Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012. Its
// momentum is PyTorch's: of the scaled gradient.
#include <cmath>

#include "tare/optim/elementwise.h"

namespace tare {
namespace {

using at::Tensor;

class RmsProp final : public ElementwiseOptimizer {
 public:
  RmsProp(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(options, std::move(groups), kept_of(options), with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor&,
                const Tensor&) const override {
    const bool remembers = one.second.defined();
    walk(one, [&, remembers]<class T>(T& p, T gradient, T& mean, T& buffer) {
      const T lr = static_cast<T>(g.lr), decay = static_cast<T>(g.weight_decay);
      const T alpha = static_cast<T>(beta2(g)), rest = static_cast<T>(1 - beta2(g));
      gradient += decay * p;
      mean = alpha * mean + rest * gradient * gradient;
      const T scaled = gradient / (std::sqrt(mean) + static_cast<T>(eps()));
      buffer = static_cast<T>(g.momentum) * buffer + scaled;
      p -= lr * (remembers ? buffer : scaled);
    });
  }
  void compute_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor&,
                   const Tensor&) const override {
    const Tensor gradient = decayed_gradient(g, one);
    one.first.mul_(beta2(g)).addcmul_(gradient, gradient, 1 - beta2(g));
    const Tensor root = one.first.sqrt().add_(eps());
    if (!one.second.defined()) {
      one.parameter.addcdiv_(gradient, root, -g.lr);
      return;
    }
    one.second.mul_(g.momentum).addcdiv_(gradient, root);
    one.parameter.add_(one.second, -g.lr);
  }

 private:
  static FusedState kept_of(const OptimizerOptions& options) {
    if (momentum_of(options) > 0) return {.buffers = {"square_avg", "momentum_buffer"}};
    return {.buffers = {"square_avg"}};
  }
};

}  // namespace

namespace optimizers {
void add_rmsprop(Registry& all) {
  all.add("rmsprop", "divides gradients by the root of their mean square",
          [] { return elementwise_kind<RmsProp>({.momentum = 0, .beta2 = 0.99, .eps = 1e-8}); });
}
}  // namespace optimizers

}  // namespace tare

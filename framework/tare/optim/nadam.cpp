// The optimizer NAdam: Dozat, "Incorporating Nesterov Momentum into Adam", ICLR workshop 2016, with
// the schedule of momentum of its section 3 and PyTorch's decay of it, 0.004.
#include <ATen/ops/pow.h>

#include <cmath>

#include "tare/optim/elementwise.h"

namespace tare {
namespace {

using at::Tensor;

class Nadam final : public ElementwiseOptimizer {
 public:
  Nadam(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(
            options, std::move(groups),
            {.buffers = {"exp_avg", "exp_avg_sq"}, .counts = true, .product = "mu_product"},
            with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor& step,
                const Tensor& product) const override {
    const double t = *step.const_data_ptr<float>();
    const double mu = mu_at(g, t), mu_next = mu_at(g, t + 1);
    auto& so_far = *product.mutable_data_ptr<float>();
    so_far *= static_cast<float>(mu);
    const double of_gradient = g.lr * (1 - mu) / (1 - so_far);
    const double of_mean = g.lr * mu_next / (1 - so_far * mu_next);
    const double correction = 1 - std::pow(beta2(g), t);
    walk(one, [&]<class T>(T& p, T gradient, T& mean, T& square) {
      gradient += static_cast<T>(g.weight_decay) * p;
      mean += static_cast<T>(1 - g.momentum) * (gradient - mean);
      square =
          static_cast<T>(beta2(g)) * square + static_cast<T>(1 - beta2(g)) * gradient * gradient;
      const T root = std::sqrt(square / static_cast<T>(correction)) + static_cast<T>(eps());
      p -= static_cast<T>(of_gradient) * gradient / root;
      p -= static_cast<T>(of_mean) * mean / root;
    });
  }
  void compute_one(const ParameterGroup& g, const ElementwiseStep& one, const Tensor& step,
                   const Tensor& product) const override {
    const auto mu_of = [&](const Tensor& t) {
      return at::pow(kBase, t.mul(kDecay)).mul_(-0.5).add_(1).mul_(g.momentum);
    };
    const auto without = [](const Tensor& part) { return part.neg().add_(1); };
    const Tensor gradient = decayed_gradient(g, one), mu = mu_of(step),
                 mu_next = mu_of(step.add(1));
    product.mul_(mu);
    one.first.lerp_(gradient, 1 - g.momentum);
    one.second.mul_(beta2(g)).addcmul_(gradient, gradient, 1 - beta2(g));
    const Tensor root = one.second.div(without(at::pow(beta2(g), step))).sqrt_().add_(eps());
    const Tensor of_gradient = without(mu).mul_(g.lr).div_(without(product));
    const Tensor of_mean = mu_next.mul(g.lr).div_(without(product.mul(mu_next)));
    one.parameter.sub_(gradient.div(root).mul_(of_gradient));
    one.parameter.sub_(one.first.div(root).mul_(of_mean));
  }

 private:
  static constexpr double kBase = 0.96, kDecay = 0.004;

  static double mu_at(const ParameterGroup& g, double t) {
    return g.momentum * (1 - 0.5 * std::pow(kBase, t * kDecay));
  }
};

}  // namespace

namespace optimizers {
void add_nadam(Registry& all) {
  all.add("nadam", "steps as Adam, with Nesterov's momentum",
          [] { return elementwise_kind<Nadam>({.momentum = 0.9, .beta2 = 0.999, .eps = 1e-8}); });
}
}  // namespace optimizers

}  // namespace tare

// The optimizers for which ATen has no fused kernel: NAdam, RMSprop, Adadelta and Adagrad.
//
// Each is a function of one element and the numbers of its group. On the host it is called in one
// pass over the memory of a parameter, which allocates nothing; elsewhere the formula is written
// with tensors, which take memory meanwhile. Both compute as torch.optim of PyTorch 2 does without
// foreach.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/pow.h>

#include <algorithm>
#include <cmath>

#include "tare/optim/fused.h"
#include "tare/optim/optimizers.h"

namespace tare {
namespace {

using at::Tensor;

constexpr int64_t kGrain = 32768;  // elements for each thread at least

/// One parameter and what belongs to it. Buffers that a kind does not have are undefined.
struct One {
  Tensor parameter, gradient, first, second;
};

/// Calls `update(p, g, a, b)` for the elements of a parameter, its gradient and its buffers, which
/// have one layout in memory. Allocates nothing.
template <class Scalar, bool kTwo, class Update>
void walk(const One& one, const Update& update) {
  using Number = at::opmath_type<Scalar>;
  auto* p = one.parameter.mutable_data_ptr<Scalar>();
  const auto* g = one.gradient.const_data_ptr<Scalar>();
  auto* first = one.first.mutable_data_ptr<Scalar>();
  auto* second = kTwo ? one.second.mutable_data_ptr<Scalar>() : nullptr;
  at::parallel_for(0, one.parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Number x = p[i], a = first[i], b = 0;
      if constexpr (kTwo) b = second[i];
      update(x, static_cast<Number>(g[i]), a, b);
      p[i] = static_cast<Scalar>(x);
      first[i] = static_cast<Scalar>(a);
      if constexpr (kTwo) second[i] = static_cast<Scalar>(b);
    }
  });
}

template <class Update>
void walk(const One& one, const Update& update) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, one.parameter.scalar_type(),
                                  "optimizer.step", [&] {
                                    if (one.second.defined())
                                      walk<scalar_t, true>(one, update);
                                    else
                                      walk<scalar_t, false>(one, update);
                                  });
}

/// Returns the gradient with the decay of the weight.
Tensor decayed(const ParameterGroup& g, const One& one) {
  return g.weight_decay == 0 ? one.gradient : one.gradient.add(one.parameter, g.weight_decay);
}

class ElementwiseOptimizer : public FusedOptimizer {
 public:
  ElementwiseOptimizer(const OptimizerOptions& options, std::vector<ParameterGroup> groups,
                       FusedState kept, bool with_tensors)
      : FusedOptimizer(std::move(groups), std::move(kept)),
        kind_(options.kind),
        beta2_(beta2_of(options)),
        eps_(eps_of(options)),
        with_tensors_(with_tensors) {}
  [[nodiscard]] std::string kind() const final { return kind_; }
  [[nodiscard]] bool steps_atomically() const final {
    return std::ranges::all_of(groups_, [this](const ParameterGroup& group) {
      return std::ranges::all_of(group.parameters, [this](const Parameter& p) {
        return is_skipped(p.tensor) || is_walked(p.tensor);
      });
    });
  }

 protected:
  void launch(const ParameterGroup& g, FusedLists& lists) final {
    for (size_t i = 0; i < lists.parameters.size(); ++i) {
      const auto at = [&](const std::vector<Tensor>& list) {
        return list.empty() ? Tensor() : list[i];
      };
      const One one{lists.parameters[i], lists.gradients[i], at(lists.buffers[0]),
                    at(lists.buffers[1])};
      if (is_skipped(one.parameter)) continue;
      if (is_walked(one.parameter))
        walk_one(g, one, at(lists.steps), at(lists.products));
      else
        compute_one(g, one, at(lists.steps), at(lists.products));
    }
  }

  virtual void walk_one(const ParameterGroup& g, const One& one, const Tensor& step,
                        const Tensor& product) const = 0;
  /// Computes the formula on any device.
  virtual void compute_one(const ParameterGroup& g, const One& one, const Tensor& step,
                           const Tensor& product) const = 0;

  [[nodiscard]] double beta2() const { return beta2_; }
  [[nodiscard]] double eps() const { return eps_; }

 private:
  /// Whether the tensor is one in the plan of a step on the host, whose walk allocates nothing.
  [[nodiscard]] bool is_skipped(const Tensor& tensor) const {
    return tensor.is_meta() && !with_tensors_;
  }
  [[nodiscard]] bool is_walked(const Tensor& tensor) const {
    return tensor.device().is_cpu() && !with_tensors_;
  }

  std::string kind_;
  double beta2_, eps_;
  bool with_tensors_;
};

/// Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012; with momentum as PyTorch has
/// it: of the scaled gradient.
class RmsProp final : public ElementwiseOptimizer {
 public:
  RmsProp(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(options, std::move(groups), kept_of(options), with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const One& one, const Tensor&,
                const Tensor&) const override {
    const bool remembers = one.second.defined();
    walk(one, [&, remembers]<class T>(T& p, T gradient, T& mean, T& buffer) {
      const T lr = static_cast<T>(g.lr), decay = static_cast<T>(g.weight_decay);
      const T alpha = static_cast<T>(beta2()), rest = static_cast<T>(1 - beta2());
      gradient += decay * p;
      mean = alpha * mean + rest * gradient * gradient;
      const T scaled = gradient / (std::sqrt(mean) + static_cast<T>(eps()));
      buffer = static_cast<T>(g.momentum) * buffer + scaled;
      p -= lr * (remembers ? buffer : scaled);
    });
  }
  void compute_one(const ParameterGroup& g, const One& one, const Tensor&,
                   const Tensor&) const override {
    const Tensor gradient = decayed(g, one);
    one.first.mul_(beta2()).addcmul_(gradient, gradient, 1 - beta2());
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

/// Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1; times lr, which is 1
/// there.
class Adadelta final : public ElementwiseOptimizer {
 public:
  Adadelta(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(options, std::move(groups), {.buffers = {"square_avg", "acc_delta"}},
                             with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const One& one, const Tensor&,
                const Tensor&) const override {
    walk(one, [&]<class T>(T& p, T gradient, T& mean, T& deltas) {
      const T rho = static_cast<T>(beta2()), rest = static_cast<T>(1 - beta2());
      const T eps = static_cast<T>(this->eps());
      gradient += static_cast<T>(g.weight_decay) * p;
      mean = rho * mean + rest * gradient * gradient;
      const T delta = std::sqrt(deltas + eps) / std::sqrt(mean + eps) * gradient;
      deltas = rho * deltas + rest * delta * delta;
      p -= static_cast<T>(g.lr) * delta;
    });
  }
  void compute_one(const ParameterGroup& g, const One& one, const Tensor&,
                   const Tensor&) const override {
    const Tensor gradient = decayed(g, one);
    one.first.mul_(beta2()).addcmul_(gradient, gradient, 1 - beta2());
    const Tensor root = one.first.add(eps()).sqrt_();
    const Tensor delta = one.second.add(eps()).sqrt_().div_(root).mul_(gradient);
    one.second.mul_(beta2()).addcmul_(delta, delta, 1 - beta2());
    one.parameter.add_(delta, -g.lr);
  }
};

/// Duchi, Hazan and Singer, "Adaptive Subgradient Methods", JMLR 12, 2011: the diagonal form.
class Adagrad final : public ElementwiseOptimizer {
 public:
  Adagrad(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(options, std::move(groups), {.buffers = {"sum"}}, with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const One& one, const Tensor&,
                const Tensor&) const override {
    walk(one, [&]<class T>(T& p, T gradient, T& sum, T&) {
      gradient += static_cast<T>(g.weight_decay) * p;
      sum += gradient * gradient;
      p -= static_cast<T>(g.lr) * gradient / (std::sqrt(sum) + static_cast<T>(eps()));
    });
  }
  void compute_one(const ParameterGroup& g, const One& one, const Tensor&,
                   const Tensor&) const override {
    const Tensor gradient = decayed(g, one);
    one.first.addcmul_(gradient, gradient);
    one.parameter.addcdiv_(gradient, one.first.sqrt().add_(eps()), -g.lr);
  }
};

/// Dozat, "Incorporating Nesterov Momentum into Adam", ICLR workshop 2016, with the schedule of
/// momentum of its section 3 and PyTorch's decay of it, 0.004.
class Nadam final : public ElementwiseOptimizer {
 public:
  Nadam(const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors)
      : ElementwiseOptimizer(
            options, std::move(groups),
            {.buffers = {"exp_avg", "exp_avg_sq"}, .counts = true, .product = "mu_product"},
            with_tensors) {}

 protected:
  void walk_one(const ParameterGroup& g, const One& one, const Tensor& step,
                const Tensor& product) const override {
    const double t = *step.const_data_ptr<float>();
    const double mu = mu_at(g, t), mu_next = mu_at(g, t + 1);
    auto& so_far = *product.mutable_data_ptr<float>();
    so_far *= static_cast<float>(mu);
    const double of_gradient = g.lr * (1 - mu) / (1 - so_far);
    const double of_mean = g.lr * mu_next / (1 - so_far * mu_next);
    const double correction = 1 - std::pow(beta2(), t);
    walk(one, [&]<class T>(T& p, T gradient, T& mean, T& square) {
      gradient += static_cast<T>(g.weight_decay) * p;
      mean += static_cast<T>(1 - g.momentum) * (gradient - mean);
      square = static_cast<T>(beta2()) * square + static_cast<T>(1 - beta2()) * gradient * gradient;
      const T root = std::sqrt(square / static_cast<T>(correction)) + static_cast<T>(eps());
      p -= static_cast<T>(of_gradient) * gradient / root;
      p -= static_cast<T>(of_mean) * mean / root;
    });
  }
  void compute_one(const ParameterGroup& g, const One& one, const Tensor& step,
                   const Tensor& product) const override {
    const auto mu_of = [&](const Tensor& t) {
      return at::pow(kBase, t.mul(kDecay)).mul_(-0.5).add_(1).mul_(g.momentum);
    };
    const auto without = [](const Tensor& part) { return part.neg().add_(1); };
    const Tensor gradient = decayed(g, one), mu = mu_of(step), mu_next = mu_of(step.add(1));
    product.mul_(mu);
    one.first.lerp_(gradient, 1 - g.momentum);
    one.second.mul_(beta2()).addcmul_(gradient, gradient, 1 - beta2());
    const Tensor root = one.second.div(without(at::pow(beta2(), step))).sqrt_().add_(eps());
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

template <class Kind>
OptimizerKind kind_with(OptimizerKind defaults) {
  defaults.make = [](const OptimizerOptions& options, std::vector<ParameterGroup> groups,
                     bool with_tensors) {
    return std::make_unique<Kind>(options, std::move(groups), with_tensors);
  };
  return defaults;
}

}  // namespace

OptimizerKind nadam_kind() {
  return kind_with<Nadam>({.momentum = 0.9, .beta2 = 0.999, .eps = 1e-8});
}
OptimizerKind rmsprop_kind() {
  return kind_with<RmsProp>({.momentum = 0, .beta2 = 0.99, .eps = 1e-8});
}
OptimizerKind adadelta_kind() { return kind_with<Adadelta>({.beta2 = 0.9, .eps = 1e-6}); }
OptimizerKind adagrad_kind() { return kind_with<Adagrad>({.eps = 1e-10}); }

}  // namespace tare

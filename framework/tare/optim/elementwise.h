// ElementwiseOptimizer: the common part of the optimizers for which ATen has no fused kernel.
//
// Each is a function of one element and the numbers of its group. On the host it is called in one
// pass over the memory of a parameter, which allocates nothing; elsewhere the formula is written
// with tensors, which take memory meanwhile. Both compute as torch.optim of PyTorch 2 does without
// foreach. Internal.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tare/optim/fused.h"

namespace tare {

inline constexpr int64_t kWalkGrain = 32768;  ///< elements for each thread at least

/// Holds one parameter and what belongs to it. Buffers that a kind does not have are undefined.
struct ElementwiseStep {
  at::Tensor parameter, gradient, first, second;
};

/// Calls `update(p, g, a, b)` for the elements of a parameter, its gradient and its buffers, which
/// have one layout in memory. Allocates nothing.
template <class Scalar, bool kTwo, class Update>
void walk(const ElementwiseStep& one, const Update& update) {
  using Number = at::opmath_type<Scalar>;
  auto* p = one.parameter.mutable_data_ptr<Scalar>();
  const auto* g = one.gradient.const_data_ptr<Scalar>();
  auto* first = one.first.mutable_data_ptr<Scalar>();
  auto* second = kTwo ? one.second.mutable_data_ptr<Scalar>() : nullptr;
  at::parallel_for(0, one.parameter.numel(), kWalkGrain, [&](int64_t begin, int64_t end) {
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
void walk(const ElementwiseStep& one, const Update& update) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, one.parameter.scalar_type(),
                                  "optimizer.step", [&] {
                                    if (one.second.defined())
                                      walk<scalar_t, true>(one, update);
                                    else
                                      walk<scalar_t, false>(one, update);
                                  });
}

/// Returns the gradient with the decay of the weight.
[[nodiscard]] at::Tensor decayed_gradient(const ParameterGroup& g, const ElementwiseStep& one);

/// Keeps the state; a derived class has the formula, for the elements and with tensors.
class ElementwiseOptimizer : public FusedOptimizer {
 public:
  /// Takes the groups; `with_tensors`: it computes with tensors on the host too, see
  /// make_optimizer().
  ElementwiseOptimizer(const OptimizerOptions& options, std::vector<ParameterGroup> groups,
                       FusedState kept, bool with_tensors);
  [[nodiscard]] std::string kind() const final { return kind_; }
  [[nodiscard]] bool steps_atomically() const final;

 protected:
  void launch(const ParameterGroup& g, FusedLists& lists) final;

  /// Computes the formula for each element, by walk(). Must not allocate.
  virtual void walk_one(const ParameterGroup& g, const ElementwiseStep& one, const at::Tensor& step,
                        const at::Tensor& product) const = 0;
  /// Computes the formula with tensors, on any device.
  virtual void compute_one(const ParameterGroup& g, const ElementwiseStep& one,
                           const at::Tensor& step, const at::Tensor& product) const = 0;

  [[nodiscard]] double beta2(const ParameterGroup& g) const { return g.beta2.value_or(beta2_); }
  [[nodiscard]] double eps() const { return eps_; }

 private:
  [[nodiscard]] bool is_skipped(const at::Tensor& tensor) const;
  [[nodiscard]] bool is_walked(const at::Tensor& tensor) const;

  std::string kind_;
  double beta2_, eps_;
  bool with_tensors_;
};

/// Returns a kind of optimizer of the class Kind with these defaults.
template <class Kind>
[[nodiscard]] OptimizerKind elementwise_kind(OptimizerKind defaults) {
  defaults.weight_decay = true;
  defaults.make = [](const OptimizerOptions& options, std::vector<ParameterGroup> groups,
                     bool with_tensors) {
    return std::make_unique<Kind>(options, std::move(groups), with_tensors);
  };
  return defaults;
}

}  // namespace tare

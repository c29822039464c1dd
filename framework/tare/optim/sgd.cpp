// SGD with momentum and Nesterov's momentum, on ATen's fused kernel; 16-bit types on the host,
// which that kernel leaves as they are but for a few elements (LibTorch 2.11), by a loop.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_sgd.h>

#include "tare/optim/fused.h"

namespace tare {
namespace {

constexpr int64_t kGrain = 32768;  // elements of a thread at least

/// Steps one parameter, in float32 for each element; `buffer` may be undefined. Allocates nothing.
template <class Scalar>
void walk(const ParameterGroup& group, bool nesterov, const at::Tensor& parameter,
          const at::Tensor& gradient, const at::Tensor& buffer) {
  using Number = at::opmath_type<Scalar>;
  auto* p = parameter.mutable_data_ptr<Scalar>();
  const auto* g = gradient.const_data_ptr<Scalar>();
  auto* b = buffer.defined() ? buffer.mutable_data_ptr<Scalar>() : nullptr;
  const auto lr = static_cast<Number>(group.lr), decay = static_cast<Number>(group.weight_decay),
             momentum = static_cast<Number>(group.momentum);
  at::parallel_for(0, parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Number x = p[i];
      Number step = static_cast<Number>(g[i]) + decay * x;
      if (b != nullptr) {
        const Number mean = momentum * static_cast<Number>(b[i]) + step;
        b[i] = static_cast<Scalar>(mean);
        step = nesterov ? step + momentum * mean : mean;
      }
      p[i] = static_cast<Scalar>(x - lr * step);
    }
  });
}

class Sgd final : public FusedOptimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), {.buffers = {"momentum_buffer"}}),
        nesterov_(options.nesterov) {}
  [[nodiscard]] std::string kind() const override { return "sgd"; }
  [[nodiscard]] bool reads_rates_of_tensors() const override { return true; }

 protected:
  [[nodiscard]] bool needs_state(const ParameterGroup& group) const override {
    return group.momentum > 0;
  }
  // The buffer starts at zero and there is no dampening, so the first step needs no case of its
  // own.
  void launch(const ParameterGroup& g, FusedLists& lists) override {
    const at::Tensor& first = lists.parameters.front();
    if (first.dtype().itemsize() == 2 && first.is_cpu()) return walk_all(g, lists);
    if (g.rate.defined())
      return at::_fused_sgd_(lists.parameters, lists.gradients, lists.buffers[0], g.weight_decay,
                             g.momentum, g.rate, /*dampening=*/0, nesterov_ && g.momentum > 0,
                             /*maximize=*/false, /*is_first_step=*/false);
    at::_fused_sgd_(
        lists.parameters, lists.gradients, lists.buffers[0], g.weight_decay, g.momentum, g.lr,
        /*dampening=*/0, nesterov_ && g.momentum > 0, /*maximize=*/false, /*is_first_step=*/false);
  }

 private:
  // Its frame stays out of a step of the kernel.
  [[gnu::noinline]] void walk_all(const ParameterGroup& g, const FusedLists& lists) const {
    const auto& buffers = lists.buffers[0];
    AT_DISPATCH_REDUCED_FLOATING_TYPES(
        lists.parameters.front().scalar_type(), "optimizer.step", [&] {
          for (size_t i = 0; i < lists.parameters.size(); ++i)
            walk<scalar_t>(g, nesterov_, lists.parameters[i], lists.gradients[i],
                           buffers.empty() ? at::Tensor() : buffers[i]);
        });
  }

  bool nesterov_;
};

}  // namespace

namespace optimizers {
void add_sgd(Registry& all) {
  const OptimizerKind kind{
      .momentum = 0.9,
      .weight_decay = true,
      .nesterov = true,
      .make = [](const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool) {
        return std::make_unique<Sgd>(options, std::move(groups));
      }};
  all.add("sgd", "steps against the gradients, with momentum or Nesterov's momentum",
          [kind] { return kind; });
}
}  // namespace optimizers

}  // namespace tare

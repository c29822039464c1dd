// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), on ATen's fused kernels.
#include "tare/optim/adam.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

namespace tare {

FusedState adam_state() { return {.buffers = {"exp_avg", "exp_avg_sq"}, .counts = true}; }

void step_adamw(const AdamWStep& step, const FusedLists& lists) {
  if (step.rate.defined())
    return at::_fused_adamw_(lists.parameters, lists.gradients, lists.buffers[0], lists.buffers[1],
                             at::TensorList{}, lists.steps, step.rate, step.beta1, step.beta2,
                             step.weight_decay, step.eps, /*amsgrad=*/false, /*maximize=*/false);
  at::_fused_adamw_(lists.parameters, lists.gradients, lists.buffers[0], lists.buffers[1],
                    at::TensorList{}, lists.steps, step.lr, step.beta1, step.beta2,
                    step.weight_decay, step.eps, /*amsgrad=*/false, /*maximize=*/false);
}

namespace {

class Adam final : public FusedOptimizer {
 public:
  Adam(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), adam_state()),
        decoupled_(options.kind == "adamw"),
        beta2_(beta2_of(options)),
        eps_(eps_of(options)) {}
  [[nodiscard]] std::string kind() const override { return decoupled_ ? "adamw" : "adam"; }
  [[nodiscard]] bool reads_rates_of_tensors() const override { return true; }

 protected:
  void launch(const ParameterGroup& g, FusedLists& lists) override {
    if (decoupled_)
      return step_adamw({g.lr, g.momentum, g.beta2.value_or(beta2_), eps_, g.weight_decay, g.rate},
                        lists);
    if (g.rate.defined())
      return at::_fused_adam_(lists.parameters, lists.gradients, lists.buffers[0], lists.buffers[1],
                              at::TensorList{}, lists.steps, g.rate, g.momentum,
                              g.beta2.value_or(beta2_), g.weight_decay, eps_,
                              /*amsgrad=*/false, /*maximize=*/false);
    at::_fused_adam_(lists.parameters, lists.gradients, lists.buffers[0], lists.buffers[1],
                     at::TensorList{}, lists.steps, g.lr, g.momentum, g.beta2.value_or(beta2_),
                     g.weight_decay, eps_,
                     /*amsgrad=*/false, /*maximize=*/false);
  }

 private:
  bool decoupled_;
  double beta2_, eps_;
};

}  // namespace

namespace optimizers {
void add_adam(Registry& all) {
  const OptimizerKind kind{
      .momentum = 0.9,
      .beta2 = 0.999,
      .eps = 1e-8,
      .weight_decay = true,
      .make = [](const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool) {
        return std::make_unique<Adam>(options, std::move(groups));
      }};
  all.add("adam", "divides the mean gradient by the root of the mean square",
          [kind] { return kind; });
  all.add("adamw", "steps as Adam, with decoupled weight decay", [kind] { return kind; });
}
}  // namespace optimizers

}  // namespace tare

// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), on ATen's fused kernels.
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

#include "tare/optim/fused.h"

namespace tare {
namespace {

class Adam final : public FusedOptimizer {
 public:
  Adam(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), {.buffers = {"exp_avg", "exp_avg_sq"}, .counts = true}),
        decoupled_(options.kind == "adamw"),
        beta2_(beta2_of(options)),
        eps_(eps_of(options)) {}
  [[nodiscard]] std::string kind() const override { return decoupled_ ? "adamw" : "adam"; }

 protected:
  void launch(const ParameterGroup& g, FusedLists& lists) override {
    const auto call = [&](auto kernel) {
      kernel(lists.parameters, lists.gradients, lists.buffers[0], lists.buffers[1],
             at::TensorList{}, lists.steps, g.lr, g.momentum, beta2_, g.weight_decay, eps_,
             /*amsgrad=*/false, /*maximize=*/false);
    };
    if (decoupled_) {
      call([](auto&&... a) { at::_fused_adamw_(a...); });
    } else {
      call([](auto&&... a) { at::_fused_adam_(a...); });
    }
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

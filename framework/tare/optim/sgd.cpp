// SGD with momentum and Nesterov's momentum, on ATen's fused kernel.
#include <ATen/ops/_fused_sgd.h>

#include "tare/optim/fused.h"

namespace tare {
namespace {

class Sgd final : public FusedOptimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), {.buffers = {"momentum_buffer"}}),
        nesterov_(options.nesterov) {}
  [[nodiscard]] std::string kind() const override { return "sgd"; }

 protected:
  [[nodiscard]] bool needs_state(const ParameterGroup& group) const override {
    return group.momentum > 0;
  }
  // The buffer starts at zero and there is no dampening, so the first step needs no case of its
  // own.
  void launch(const ParameterGroup& g, FusedLists& lists) override {
    at::_fused_sgd_(
        lists.parameters, lists.gradients, lists.buffers[0], g.weight_decay, g.momentum, g.lr,
        /*dampening=*/0, nesterov_ && g.momentum > 0, /*maximize=*/false, /*is_first_step=*/false);
  }

 private:
  bool nesterov_;
};

}  // namespace

namespace optimizers {
void add_sgd(Registry& all) {
  const OptimizerKind kind{
      .momentum = 0.9,
      .make = [](const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool) {
        return std::make_unique<Sgd>(options, std::move(groups));
      }};
  all.add("sgd", "steps against the gradients, with momentum or Nesterov's momentum",
          [kind] { return kind; });
}
}  // namespace optimizers

}  // namespace tare

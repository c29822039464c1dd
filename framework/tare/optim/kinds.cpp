#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>

#include "tare/base/error.h"
#include "tare/optim/fused.h"

namespace tare {
namespace {

class Sgd final : public FusedOptimizer {
 public:
  Sgd(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), {"momentum_buffer"}, /*counts=*/false),
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

class Adam final : public FusedOptimizer {
 public:
  Adam(const OptimizerOptions& options, std::vector<ParameterGroup> groups)
      : FusedOptimizer(std::move(groups), {"exp_avg", "exp_avg_sq"}, /*counts=*/true),
        decoupled_(options.kind == "adamw"),
        beta2_(options.beta2),
        eps_(options.eps) {}
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

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups) {
  config::validate(options, "optimizer");
  if (options.nesterov && (options.kind != "sgd" || options.momentum <= 0)) {
    throw ConfigError("optimizer", "nesterov needs kind sgd and momentum > 0");
  }
  if (options.kind == "sgd") return std::make_unique<Sgd>(options, std::move(groups));
  return std::make_unique<Adam>(options, std::move(groups));
}

}  // namespace tare

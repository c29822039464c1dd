#include "tare/optim/elementwise.h"

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

/// What a kind is without options. No value: it has no such thing.
struct Defaults {
  std::optional<double> momentum{}, beta2{}, eps{};
};

Defaults defaults_of(const std::string& kind) {
  if (kind == "sgd") return {.momentum = 0.9};
  if (kind == "rmsprop") return {.momentum = 0, .beta2 = 0.99, .eps = 1e-8};
  if (kind == "adadelta") return {.beta2 = 0.9, .eps = 1e-6};
  if (kind == "adagrad") return {.eps = 1e-10};
  return {.momentum = 0.9, .beta2 = 0.999, .eps = 1e-8};
}

}  // namespace

void check_optimizer(const OptimizerOptions& options) {
  const Defaults has = defaults_of(options.kind);
  const auto check = [&](const char* name, const std::optional<double>& value,
                         const std::optional<double>& known) {
    if (value && !known)
      throw ConfigError("optimizer", name, "is not taken by " + options.kind, "leave it out",
                        config::to_node(*value).text);
  };
  check("momentum", options.momentum, has.momentum);
  check("beta2", options.beta2, has.beta2);
  check("eps", options.eps, has.eps);
  if (options.nesterov && (options.kind != "sgd" || momentum_of(options) <= 0))
    throw ConfigError("optimizer", "nesterov", "needs kind sgd and momentum > 0", "false", "true");
}

const std::vector<std::string>& optimizer_kinds() {
  static const std::vector<std::string> all{"adadelta", "adagrad", "adam", "adamw",
                                            "nadam",    "rmsprop", "sgd"};
  return all;
}

double momentum_of(const OptimizerOptions& options) {
  return options.momentum.value_or(defaults_of(options.kind).momentum.value_or(0));
}

double beta2_of(const OptimizerOptions& options) {
  return options.beta2.value_or(defaults_of(options.kind).beta2.value_or(0));
}

double eps_of(const OptimizerOptions& options) {
  return options.eps.value_or(defaults_of(options.kind).eps.value_or(0));
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups, bool with_tensors) {
  config::validate(options, "optimizer");
  check_optimizer(options);
  if (options.kind == "sgd") return std::make_unique<Sgd>(options, std::move(groups));
  if (options.kind.starts_with("adam")) return std::make_unique<Adam>(options, std::move(groups));
  return make_elementwise_optimizer(options, std::move(groups), with_tensors);
}

}  // namespace tare

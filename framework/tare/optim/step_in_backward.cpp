#include "tare/optim/step_in_backward.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

#include "tare/base/error.h"
#include "tare/memory/phase.h"

namespace tare {

class StepInBackward::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit Hook(const StepInBackward& owner) : owner_(owner) {}
  void operator()(const at::Tensor& parameter) override {
    if (!owner_.active_) return;
    const memory::Phase phase(memory::PhaseKind::step);
    owner_.optimizer_.step_one(parameter);
    parameter.mutable_grad().reset();
  }

 private:
  const StepInBackward& owner_;
};

StepInBackward::StepInBackward(Optimizer& optimizer) : optimizer_(optimizer) {
  if (!optimizer.steps_singly())
    throw ConfigError("step_in_backward", "a " + optimizer.kind() +
                                              " optimizer steps all parameters at once; use sgd, "
                                              "adam or adamw");
  for (const auto& group : optimizer.groups())
    for (const auto& parameter : group.parameters)
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor,
                                                     std::make_unique<Hook>(*this));
}

StepInBackward::~StepInBackward() {
  for (const auto& group : optimizer_.groups())
    for (const auto& parameter : group.parameters)
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

void StepInBackward::backward(const at::Tensor& loss) {
  struct Active {
    bool& on;
    ~Active() { on = false; }
  } active{active_};
  active_ = true;
  loss.backward();
}

}  // namespace tare

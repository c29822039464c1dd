// Steps each parameter from a hook of its gradient.
#include "tare/optim/step_in_backward.h"

#include <memory>

#include "tare/base/error.h"
#include "tare/memory/phase.h"
#include "tare/optim/gradient_hook.h"

namespace tare {

class StepInBackward::Hook final : public GradientHook {
 public:
  explicit Hook(const StepInBackward& owner) : owner_(owner) {}
  void operator()(const at::Tensor& parameter) override {
    if (!owner_.active_) return;
    const memory::ThreadPhase phase(memory::PhaseKind::step);  // a device has a thread of its own
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
      before_.push_back(
          {parameter.tensor, exchange_hook(parameter.tensor, std::make_unique<Hook>(*this))});
}

StepInBackward::~StepInBackward() {
  for (auto& [parameter, hook] : before_) (void)exchange_hook(parameter, std::move(hook));
}

void StepInBackward::backward(const at::Tensor& loss) {
  struct Active {
    bool& on;
    ~Active() { on = false; }
  } active{active_};
  active_ = true;
  optimizer_.prepare();
  loss.backward();
}

}  // namespace tare

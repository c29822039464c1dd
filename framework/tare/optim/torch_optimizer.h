// TorchOptimizer: any torch::optim optimizer as a tare::Optimizer, bit-equal to using it by hand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tare/optim/optimizer.h"

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
class OptimizerParamGroup;
class OptimizerParamState;
}  // namespace torch::optim

namespace tare {

class StateIndex;

/// Makes the torch optimizer for parameter groups; options set on a group take precedence over the
/// defaults.
using TorchFactory = std::function<std::unique_ptr<torch::optim::Optimizer>(
    std::vector<torch::optim::OptimizerParamGroup>)>;

/// Wraps a torch optimizer. lr, momentum (beta1) and weight_decay of the groups are read from the
/// torch optimizer's options and written back only if changed, so that a fit equals a hand-written
/// loop with the same optimizer, to the last bit. Weight decay applies to norms and biases too, as
/// in torch.
///
/// For SGD, Adam, AdamW, RMSprop and Adagrad, momentum (not Adagrad) and weight decay are mapped
/// too, and the state is saved by parameter name, as that of the fused optimizers
/// ("exp_avg/fc.weight", "step/fc.weight"). For another class only the learning rate is mapped, and
/// state() throws StateError once there is any. torch allocates inside a step: one that runs out of
/// memory may have updated some parameters and not others.
class TorchOptimizer final : public Optimizer {
 public:
  /// Throws ConfigError for an empty factory, one that returns nullptr, and LBFGS, which needs a
  /// closure.
  TorchOptimizer(TorchFactory factory, std::vector<ParameterGroup> groups);
  ~TorchOptimizer() override;

  [[nodiscard]] std::string kind() const override;
  void step() override;
  /// Makes the torch optimizer again after clear(); torch allocates its state in the first step.
  void prepare() override;
  /// Destroys the torch optimizer and its state; options set on its groups stay.
  void clear() override;
  [[nodiscard]] std::vector<NamedTensor> state() const override;
  std::vector<std::string> load_state(const std::vector<NamedTensor>& state) override;
  void check_state(const std::vector<NamedTensor>& state) override;
  StateChange set_groups(std::vector<ParameterGroup> groups) override;
  /// Lists the state without the step counters, which torch does not keep in tensors.
  void account(Ledger& ledger) const override;

  /// Returns the torch optimizer itself, made if necessary.
  [[nodiscard]] torch::optim::Optimizer& torch();

 private:
  struct Class;  // what is known of a concrete optimizer class
  using Options = std::unique_ptr<torch::optim::OptimizerOptions>;

  void visit_tensors(
      const std::function<void(const std::string& name, at::Tensor& tensor)>& visit) const;
  [[nodiscard]] std::unique_ptr<torch::optim::OptimizerParamState> read_state(
      const Parameter& parameter, const StateIndex& index) const;
  struct States;
  [[nodiscard]] States read_states(const std::vector<NamedTensor>& state);
  void build();
  void read_options();
  void write_options();

  TorchFactory factory_;
  const Class* class_ = nullptr;
  std::vector<Options> options_;  // of each group while the torch optimizer is not there
  std::unique_ptr<torch::optim::Optimizer> torch_;
};

/// Makes a factory for LearnerOptions: `.optimizer_factory =
/// torch_optimizer<torch::optim::RMSprop>()`, or with options:
/// `torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9))`. Include the
/// optimizer's own header, such as torch/optim/rmsprop.h.
template <class Concrete, class... Defaults>
[[nodiscard]] OptimizerFactory torch_optimizer(Defaults... defaults) {
  return [=](std::vector<ParameterGroup> groups) -> std::unique_ptr<Optimizer> {
    // The groups' class is known only where a concrete optimizer is.
    const TorchFactory factory = [=](auto made) {
      return std::make_unique<Concrete>(std::move(made), defaults...);
    };
    return std::make_unique<TorchOptimizer>(factory, std::move(groups));
  };
}

}  // namespace tare

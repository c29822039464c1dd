// Any torch::optim optimizer as a tare::Optimizer, bit-equal to using it by hand.
#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tare/optim/optimizer.h"

namespace tare {

class StateIndex;

/// Makes the torch optimizer for parameter groups; a group's own options, where it has some, go
/// before the defaults.
using TorchFactory = std::function<std::unique_ptr<torch::optim::Optimizer>(
    std::vector<torch::optim::OptimizerParamGroup>)>;

/// Wraps a torch optimizer. lr, momentum (beta1) and weight_decay of the groups come from the torch
/// optimizer's own options and are written back to it only where somebody has changed them, so that
/// a fit does what a hand-written loop with the same optimizer does, to the last bit. Weight decay
/// is as the torch optimizer has it: norms and biases too.
///
/// SGD, Adam, AdamW, RMSprop and Adagrad have momentum (Adagrad: none) and weight decay mapped, and
/// their state saved by parameter name, under the same names as the fused optimizers'
/// ("exp_avg/fc.weight", "step/fc.weight"). Of another class only the rate is mapped, and state()
/// throws StateError once there is some. torch allocates inside a step: a step that runs out of
/// memory may leave some parameters stepped and others not.
class TorchOptimizer final : public Optimizer {
 public:
  /// Throws ConfigError for an empty factory, one that gives nothing, and LBFGS, which needs a
  /// closure.
  TorchOptimizer(TorchFactory factory, std::vector<ParameterGroup> groups);
  ~TorchOptimizer() override;

  [[nodiscard]] std::string kind() const override;
  void step() override;
  /// Makes the torch optimizer where clear() dropped it; torch allocates the state itself at the
  /// first step.
  void prepare() override;
  /// Drops the torch optimizer and its state; options set on its groups stay.
  void clear() override;
  [[nodiscard]] std::vector<NamedTensor> state() const override;
  std::vector<std::string> load_state(const std::vector<NamedTensor>& state) override;
  StateChange set_groups(std::vector<ParameterGroup> groups) override;
  /// Without the step counters, which torch keeps outside of tensors.
  void account(Ledger& ledger) const override;

  /// The torch optimizer itself; made where it is not there.
  [[nodiscard]] torch::optim::Optimizer& torch();

 private:
  struct Class;  // what is known of a concrete optimizer class
  using Options = std::unique_ptr<torch::optim::OptimizerOptions>;

  void visit_tensors(
      const std::function<void(const std::string& name, at::Tensor& tensor)>& visit) const;
  [[nodiscard]] std::unique_ptr<torch::optim::OptimizerParamState> read_state(
      const Parameter& parameter, const StateIndex& index) const;
  void build();
  void read_options();
  void write_options();

  TorchFactory factory_;
  const Class* class_ = nullptr;
  std::vector<Options> options_;  // of each group while the torch optimizer is not there
  std::unique_ptr<torch::optim::Optimizer> torch_;
};

/// `.optimizer_factory = torch_optimizer<torch::optim::RMSprop>()`, or with options:
/// `torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9))`.
template <class Concrete, class... Defaults>
[[nodiscard]] OptimizerFactory torch_optimizer(Defaults... defaults) {
  return [=](std::vector<ParameterGroup> groups) -> std::unique_ptr<Optimizer> {
    const TorchFactory factory = [=](std::vector<torch::optim::OptimizerParamGroup> made) {
      return std::make_unique<Concrete>(std::move(made), defaults...);
    };
    return std::make_unique<TorchOptimizer>(factory, std::move(groups));
  };
}

}  // namespace tare

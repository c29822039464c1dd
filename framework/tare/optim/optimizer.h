// Optimizers on ATen's fused kernels: parameter groups, state by parameter name, and steps that
// allocate nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/memory/accountable.h"
#include "tare/model/model.h"

namespace tare {

/// Parameters that are stepped with the same numbers. The numbers may be changed between steps
/// (schedules do); the parameters only through Optimizer::set_groups().
struct ParameterGroup {
  std::string name{};                   ///< e.g. "layer1", "layer1 (no decay)"
  std::vector<Parameter> parameters{};  ///< trainable ones
  double lr = 0;
  double momentum = 0;  ///< beta1 of Adam and AdamW
  double weight_decay = 0;
  int64_t layer_group = 0;  ///< index into Model::layer_groups()
  bool decay = true;        ///< false: norms and biases, whose weight_decay stays 0
};

/// What set_groups() did to the state, counted in parameter tensors that have state.
struct StateChange {
  int64_t kept = 0;         ///< state stayed, by name
  int64_t fresh = 0;        ///< starts without state
  int64_t freed = 0;        ///< left the groups
  int64_t freed_bytes = 0;  ///< that went back to the allocator with them
};

/// Steps parameters by their gradients. Handles to the parameters keep them alive. Not thread-safe.
class Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  [[nodiscard]] virtual std::string kind()
      const = 0;  ///< "sgd", "adam", "adamw", "torch.rmsprop" ...
  [[nodiscard]] std::vector<ParameterGroup>& groups() { return groups_; }
  [[nodiscard]] const std::vector<ParameterGroup>& groups() const { return groups_; }

  /// One step. Parameters whose gradient is undefined are left out: they neither decay nor count a
  /// step.
  virtual void step() = 0;
  /// Makes every gradient undefined, which frees it.
  void zero_grad();

  /// Allocates the state of all parameters now; step() does it where that was not done.
  virtual void prepare() = 0;
  /// Frees the state; the next prepare() or step() starts anew.
  virtual void clear() = 0;
  /// Handles to the state, named "<buffer>/<parameter>": "exp_avg/fc.weight", "step/fc.weight".
  /// Empty before it exists.
  [[nodiscard]] virtual std::vector<NamedTensor> state() const = 0;
  /// Takes over a state by parameter name, copying; numbers of the groups (lr ...) stay. Everything
  /// is checked before the first byte is written. Entries of parameters that are not in the groups
  /// are ignored. Returns the names of parameters that had none and start fresh. Throws ConfigError
  /// for the state of another kind of optimizer or one that is incomplete for a parameter,
  /// ShapeError for another shape or dtype.
  virtual std::vector<std::string> load_state(const std::vector<NamedTensor>& state) = 0;
  /// Other groups, for freezing and unfreezing: state stays for parameters (by name) that stay, and
  /// is freed for others.
  virtual StateChange set_groups(std::vector<ParameterGroup> groups) = 0;
  /// Adds the state under Category::optimizer.
  virtual void account(Ledger& ledger) const;

 protected:
  std::vector<ParameterGroup> groups_;
};

/// Makes an optimizer for groups that make_groups() made.
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(std::vector<ParameterGroup>)>;

struct OptimizerOptions {
  std::string kind = "adamw";  ///< sgd | adam | adamw
  double lr = 1e-3;            ///< until a schedule sets another, > 0
  double weight_decay =
      1e-2;               ///< adamw: decoupled (times lr); sgd, adam: added to the gradient; >= 0
  double momentum = 0.9;  ///< sgd: momentum (0: no state at all); adam, adamw: beta1; in [0, 1)
  double beta2 = 0.999;   ///< adam, adamw; in [0, 1). torch's default; fastai takes 0.99
  double eps = 1e-8;      ///< adam, adamw; > 0
  bool nesterov = false;  ///< sgd; needs momentum > 0
  bool decay_norm_and_bias = false;  ///< also decay normalisation layers and biases

  bool operator==(const OptimizerOptions&) const = default;
};
void visit_fields(auto& visit, OptimizerOptions& o) {
  visit("kind", o.kind, config::one_of({"sgd", "adam", "adamw"}));
  visit("lr", o.lr, config::above(0));
  visit("weight_decay", o.weight_decay, config::at_least(0));
  visit("momentum", o.momentum, config::between(0, 0.9999999));
  visit("beta2", o.beta2, config::between(0, 0.9999999));
  visit("eps", o.eps, config::above(0));
  visit("nesterov", o.nesterov);
  visit("decay_norm_and_bias", o.decay_norm_and_bias);
}

/// The trainable parameters (requires_grad) of a model: for each layer group, from input to output,
/// one group that decays and one that does not (norms and biases), empty ones left out; numbers
/// from the options. Where all are alike (decay_norm_and_bias, or no weight decay) one group holds
/// both.
[[nodiscard]] std::vector<ParameterGroup> make_groups(const Model& model,
                                                      const OptimizerOptions& options);

/// SGD (momentum, Nesterov), Adam or AdamW on ATen's fused kernels. After prepare() a step
/// allocates no tensor, so it cannot fail half-way for want of memory; where a step must allocate
/// (state not prepared, a gradient laid out in memory otherwise than its parameter) it does so
/// before the first write. Equal to torch::optim within 1e-6 over 50 steps. State follows its
/// parameter to another device at the next step. Throws ConfigError for options out of range.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        std::vector<ParameterGroup> groups);

/// Scales all gradients of the groups so that their joint 2-norm is at most `max_norm` > 0; returns
/// the norm before that (scalar on the gradients' device; undefined when there is no gradient).
/// Does not wait for the device. A norm that is not finite makes every gradient NaN. All gradients
/// must be on one device.
at::Tensor clip_grad_norm(const std::vector<ParameterGroup>& groups, double max_norm);
/// Clamps every gradient into [-max_value, max_value], max_value > 0.
void clip_grad_value(const std::vector<ParameterGroup>& groups, double max_value);

}  // namespace tare

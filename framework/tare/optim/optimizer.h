// Optimizers: the interface, parameter groups, and the optimizers that have names.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/config/registry.h"
#include "tare/memory/accountable.h"
#include "tare/model/model.h"

namespace tare {

/// Groups parameters with common hyperparameters. These may be changed between steps, as schedules
/// do; the parameters only through Optimizer::set_groups().
struct ParameterGroup {
  std::string name{};                   ///< e.g. "layer1", "layer1 (no decay)"
  std::vector<Parameter> parameters{};  ///< trainable ones
  double lr = 0;                        ///< learning rate of the next step
  /// Holds the learning rate in place of `lr`, for an optimizer that reads_rates_of_tensors(): a
  /// float32 scalar on the device of the parameters. Undefined: `lr` holds it.
  at::Tensor rate{};
  double momentum = 0;            ///< beta1 of the kinds that are like Adam
  std::optional<double> beta2{};  ///< unset: OptimizerOptions::beta2, if the kind has it
  double weight_decay = 0;        ///< see OptimizerOptions::weight_decay; >= 0
  int64_t layer_group = 0;        ///< index into Model::layer_groups()
  bool decay = true;              ///< false: norms and biases, whose weight_decay stays 0
  std::string optimizer{};        ///< its name, where there are several; see OptimizerSet
};

/// Reports how set_groups() changed the state, counted in parameter tensors.
struct StateChange {
  int64_t kept = 0;         ///< parameters that kept their state
  int64_t fresh = 0;        ///< new parameters, without state yet
  int64_t freed = 0;        ///< parameters that left, with their state
  int64_t freed_bytes = 0;  ///< of that state
};

/// Updates parameters by their gradients. Shares the parameters' storages. Not thread-safe.
class Optimizer {
 public:
  /// Takes the groups, which share the parameters' storages.
  explicit Optimizer(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Returns "sgd", "adam", "adamw", "torch.rmsprop" ...
  [[nodiscard]] virtual std::string kind() const = 0;
  /// Returns the groups, whose rates may be changed between two steps, parameters may not.
  [[nodiscard]] std::vector<ParameterGroup>& groups() { return groups_; }
  /// Returns the groups, as groups().
  [[nodiscard]] const std::vector<ParameterGroup>& groups() const { return groups_; }

  /// Takes one step over all groups. Parameters whose gradient is undefined are skipped: no update,
  /// no decay, no step counted. Does not wait for the device.
  virtual void step() = 0;
  /// Whether a step() that runs out of memory has changed nothing.
  [[nodiscard]] virtual bool steps_atomically() const { return false; }
  /// Whether step() reads ParameterGroup::rate, so that a step which a device has recorded follows
  /// changes of the rate. Nothing else of the host may then change from step to step.
  [[nodiscard]] virtual bool reads_rates_of_tensors() const { return false; }
  /// Makes every gradient undefined, which frees it.
  void zero_grad();
  /// Whether step_one() can be called.
  [[nodiscard]] virtual bool steps_singly() const { return false; }
  /// Takes one step of one of the groups' parameters, whose gradient is defined; the others stay.
  /// After prepare(). Equal to its part of step(), bit for bit. Throws StateError for an optimizer
  /// without.
  virtual void step_one(const at::Tensor& parameter);

  /// Allocates the state of all parameters now, which otherwise the first step() does. Throws
  /// OutOfMemory.
  virtual void prepare() = 0;
  /// Frees the state; the next prepare() or step() starts from zeros.
  virtual void clear() = 0;
  /// Returns the state's tensors, shared, named "<buffer>/<parameter>": "exp_avg/fc.weight",
  /// "step/fc.weight". Empty before prepare() or the first step().
  [[nodiscard]] virtual std::vector<NamedTensor> state() const = 0;
  /// Copies a state, by parameter name; the groups' hyperparameters stay. Everything is checked
  /// before the first byte is written. Entries of parameters that are not in the groups are
  /// ignored. Returns the names of parameters without an entry, whose state starts from zeros.
  /// Throws ConfigError for the state of another kind of optimizer or an incomplete one, ShapeError
  /// for another shape or dtype; float32, bfloat16 and float16 convert.
  virtual std::vector<std::string> load_state(const std::vector<NamedTensor>& state) = 0;
  /// Throws what load_state() throws for this state, and changes no state. An optimizer of your own
  /// that omits it is not checked before other optimizers of a set are loaded.
  virtual void check_state(const std::vector<NamedTensor>& state);
  /// Replaces the groups, for freezing and unfreezing. Parameters that stay, by name, keep their
  /// state; the state of others is freed.
  virtual StateChange set_groups(std::vector<ParameterGroup> groups) = 0;
  /// Adds the state under Category::optimizer.
  virtual void account(Ledger& ledger) const;

 protected:
  /// The parameters with their rates, in the order of the constructor.
  std::vector<ParameterGroup> groups_;
};

/// Makes an optimizer for the groups of make_groups().
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(std::vector<ParameterGroup>)>;

struct OptimizerOptions;

/// Describes a kind of optimizer by its defaults and a function that makes one.
struct OptimizerKind {
  /// Holds the default of an option; no value: the kind does not take the option.
  std::optional<double> momentum{}, beta2{}, eps{};  ///< unset: no such option
  /// Whether a step decays the weights by each group's weight_decay; false: neither weight_decay
  /// nor decay_norm_and_bias is an option.
  bool weight_decay = false;
  bool nesterov = false;  ///< whether a step with momentum may be Nesterov's
  /// `with_tensors`: see make_optimizer(); a kind that computes in the same way everywhere ignores
  /// it.
  std::function<std::unique_ptr<Optimizer>(const OptimizerOptions&, std::vector<ParameterGroup>,
                                           bool with_tensors)>
      make{};
};

namespace optimizers {
/// Holds the kinds of optimizers. A program adds its own:
///   optimizers::registry().add("lion", "steps by signs", [] { return OptimizerKind{...}; });
/// Options of its own are those of the entry, and a recipe has them under `optimizer.options`:
///   optimizers::registry().add<LionOptions>("lion", "steps by signs", [](const LionOptions& o) {
///     return OptimizerKind{...};
///   });
using Registry = config::Registry<OptimizerKind()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace optimizers

/// Returns the names of the optimizers, in alphabetical order.
[[nodiscard]] std::vector<std::string> optimizer_kinds();

/// Selects the optimizer that a Learner makes, and sets its options.
struct OptimizerOptions {
  /// One of optimizer_kinds(): Tare's, see docs/optimizers-and-schedules.md, and a program's own.
  std::string kind = "adamw";
  double lr = 1e-3;  ///< unless a schedule sets another, > 0
  /// adamw, adamw8bit, lion, muon: decoupled, times lr; others: added to the gradient; >= 0.
  double weight_decay = 1e-2;
  /// sgd, rmsprop: momentum (0: without its state); muon: of matrices; adam, adamw, adamw8bit,
  /// lion, nadam: beta1; in [0, 1). Unset: 0.9, rmsprop 0, muon 0.95.
  std::optional<double> momentum{};
  /// Decay of the mean of squared gradients (torch's alpha and rho), lion: of the mean gradient; in
  /// [0, 1). Unset: as torch, 0.999, rmsprop and lion 0.99, adadelta 0.9. Not for sgd and adagrad.
  std::optional<double> beta2{};
  /// Added to the denominator, > 0; sgd and lion have none. Unset: as torch, 1e-8, adadelta 1e-6,
  /// adagrad 1e-10.
  std::optional<double> eps{};
  bool nesterov = false;             ///< of kinds that have it, as sgd; needs momentum > 0
  bool decay_norm_and_bias = false;  ///< also decay normalisation layers and biases
  config::OwnOptions options{};      ///< of the kind's own: muon, adamw8bit, or what a program adds

  bool operator==(const OptimizerOptions&) const = default;
};
void visit_fields(auto& visit, OptimizerOptions& o) {
  visit("kind", o.kind, config::entry_of(optimizer_kinds()));
  visit("lr", o.lr, config::above(0));
  visit("weight_decay", o.weight_decay, config::at_least(0));
  visit("momentum", o.momentum, config::between(0, 0.9999999));
  visit("beta2", o.beta2, config::between(0, 0.9999999));
  visit("eps", o.eps, config::above(0));
  visit("nesterov", o.nesterov);
  visit("decay_norm_and_bias", o.decay_norm_and_bias);
  visit("options", o.options);
}

/// Throws ConfigError for an option that the kind does not have.
void check_optimizer(const OptimizerOptions& options);

/// Returns the value of the option or, if it is unset, its default for this kind of optimizer; 0
/// for a kind without it.
[[nodiscard]] double momentum_of(const OptimizerOptions& options);
/// Returns beta2, or the default of the kind, as momentum_of().
[[nodiscard]] double beta2_of(const OptimizerOptions& options);
/// Returns beta2_of(), or, for a kind without beta2, nothing.
[[nodiscard]] std::optional<double> group_beta2_of(const OptimizerOptions& options);
/// Returns eps, or the default of the kind, as momentum_of().
[[nodiscard]] double eps_of(const OptimizerOptions& options);

/// Returns the trainable parameters (requires_grad) of a model as parameter groups: for each layer
/// group, from input to output, one with weight decay and one without (norms and biases); a single
/// one if both would be equal. Empty groups are skipped. Hyperparameters come from the options.
[[nodiscard]] std::vector<ParameterGroup> make_groups(const Model& model,
                                                      const OptimizerOptions& options);

/// Makes SGD (momentum, Nesterov), Adam and AdamW on ATen's fused kernels; AdamW of 8 bits, Lion,
/// Muon, NAdam (Dozat 2016), RMSprop (Hinton 2012), Adadelta (Zeiler 2012), Adagrad (Duchi et al.
/// 2011). After prepare() a step on the host allocates no tensor, but for Muon, so it cannot run
/// out of memory half-way; a step that must allocate (state not prepared, a gradient with other
/// strides than its parameter) does so before the first write. On a GPU the kinds after AdamW take
/// some tensors of the size of one parameter meanwhile. Equal to PyTorch within 1e-6 over 50 steps.
/// State moves to its parameter's device at the next step. Throws ConfigError for options out of
/// range, and for one that the kind does not have. `with_tensors`: it computes as on a GPU wherever
/// the parameters are, so that the plan of a GPU, on meta tensors, meets what a step takes there.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        std::vector<ParameterGroup> groups,
                                                        bool with_tensors = false);

/// Bounds on the gradients of a step; at most one of the two is set.
struct ClipOptions {
  double norm = 0;   ///< of the joint 2-norm of all gradients; 0: none
  double value = 0;  ///< of the magnitude of each element; 0: none
  bool operator==(const ClipOptions&) const = default;
  /// Whether anything is clipped.
  explicit operator bool() const { return norm > 0 || value > 0; }
};
void visit_fields(auto& visit, ClipOptions& o) {
  visit("norm", o.norm, config::at_least(0));
  visit("value", o.value, config::at_least(0));
}
/// Throws ConfigError for a bound that is negative or not finite, and for both bounds together.
void check_clip(const ClipOptions& options);
/// Applies the bound that is set, if there is one.
void clip_gradients(const std::vector<ParameterGroup>& groups, const ClipOptions& options);

/// Returns the joint 2-norm of the gradients of all groups, a scalar on the device of the first
/// one; undefined without any gradient. Does not wait for a device.
[[nodiscard]] at::Tensor grad_norm(const std::vector<ParameterGroup>& groups);

/// Scales the gradients of all groups so that their joint 2-norm is at most `max_norm` > 0. Returns
/// the norm before scaling, a scalar on the device of the first gradient; undefined without any
/// gradient. Does not wait for a device. A norm that is not finite makes every gradient NaN.
at::Tensor clip_grad_norm(const std::vector<ParameterGroup>& groups, double max_norm);
/// Clamps every gradient into [-max_value, max_value], max_value > 0.
void clip_grad_value(const std::vector<ParameterGroup>& groups, double max_value);

}  // namespace tare

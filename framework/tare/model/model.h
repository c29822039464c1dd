// Model: a torch::nn module with its forward function, named tensors and layer groups, as the
// Learner and the Predictor own it.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/data/batch.h"
#include "tare/memory/accountable.h"
#include "tare/memory/named_tensor.h"

namespace torch::nn {
class Module;
}

namespace tare {

class HeldWeights;

/// Lists the kinds of parameters; `norm`: weight or bias of a normalisation layer.
enum class ParameterKind { weight, bias, norm };

/// Describes a parameter of a Model. A value, which shares the parameter's storage.
struct Parameter {
  std::string name{};                          ///< in the module, e.g. "layer1.0.conv1.weight"
  at::Tensor tensor{};                         ///< a leaf; shares storage with the module's
  ParameterKind kind = ParameterKind::weight;  ///< decides about weight decay and freezing
  int64_t group = 0;                           ///< index of its layer group
};

/// Names a part of the model that is frozen, or has a learning rate, as one. `members`: names of
/// submodules or parameters; "layer1" covers "layer1.0.conv1.weight".
struct LayerGroup {
  std::string name{};                  ///< what reports call the group
  std::vector<std::string> members{};  ///< names of submodules or parameters
};

/// Describes how to rebuild the model: by a name in the registry and options as YAML (registry.h).
struct ModelSpec {
  std::string name{};     ///< of the family, e.g. "resnet18"
  std::string options{};  ///< YAML, in one line or more
};

/// Accepts a torch::nn::ModuleHolder, such as TORCH_MODULE makes.
template <class H>
concept ModuleHolderLike = requires(H holder) {
  { holder.ptr() } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
  { holder.is_empty() } -> std::convertible_to<bool>;
};

namespace detail {

/// Stands for an argument that a forward takes as a tensor, so that a forward of a Batch, which a
/// tensor converts to, is not taken for one of a tensor.
struct TensorArgument {
  operator const at::Tensor&() const;  // NOLINT: never defined, for `requires` alone
};

/// Throws ShapeError: the forward does not take so many inputs. `allowed`: numbers that it takes.
[[noreturn]] void refuse_inputs(const Batch& batch, const std::vector<size_t>& allowed);

inline constexpr size_t kMostInputs = 4;  ///< of a forward of tensors

template <class H, size_t... I>
constexpr bool takes_tensors(std::index_sequence<I...>) {
  return requires(H holder, TensorArgument x) { Outputs(holder->forward((void(I), x)...)); };
}
template <class H, size_t N>
inline constexpr bool kTakes = takes_tensors<H>(std::make_index_sequence<N>());

template <class H, size_t... I>
Outputs call(H& holder, const Batch& batch, std::index_sequence<I...>) {
  return Outputs(holder->forward(batch.inputs[I].tensor...));
}

/// Calls the forward of as many tensors as the batch has inputs, from N on.
template <size_t N, class H>
Outputs call_from(H& holder, const Batch& batch, std::vector<size_t> allowed) {
  if constexpr (N > kMostInputs) {
    refuse_inputs(batch, allowed);
  } else {
    if constexpr (kTakes<H, N>) {
      if (batch.inputs.size() == N) return call(holder, batch, std::make_index_sequence<N>());
      allowed.push_back(N);
    }
    return call_from<N + 1>(holder, batch, std::move(allowed));
  }
}

/// Returns the numbers of inputs that a forward of tensors takes; empty for another forward.
template <class H>
std::vector<size_t> input_counts() {
  std::vector<size_t> counts;
  if constexpr (kTakes<H, 1>) counts.push_back(1);
  if constexpr (kTakes<H, 2>) counts.push_back(2);
  if constexpr (kTakes<H, 3>) counts.push_back(3);
  if constexpr (kTakes<H, 4>) counts.push_back(4);
  return counts;
}

template <class H>
std::function<Outputs(const Batch&)> forward_of(H holder) {
  if constexpr (kTakes<H, 1> || kTakes<H, 2> || kTakes<H, 3> || kTakes<H, 4>) {
    return [holder](const Batch& batch) mutable { return call_from<1>(holder, batch, {}); };
  } else if constexpr (requires(const Batch& batch) { Outputs(holder->forward(batch)); }) {
    return [holder](const Batch& batch) mutable { return Outputs(holder->forward(batch)); };
  } else {
    return {};
  }
}

}  // namespace detail

/// Owns, or shares, a module. Movable, not copyable; a moved-from Model is empty: forward() and the
/// calls that read or change its tensors then throw StateError. Not thread-safe.
class Model {
 public:
  /// Computes the outputs for a batch on the model's device; called with autograd as the caller set
  /// it.
  using Forward = std::function<Outputs(const Batch&)>;

  /// Takes a module holder. Its forward becomes the model's: of one to four tensors, which get the
  /// inputs of a batch in their order, or of a whole `const Batch&`; it returns a tensor, a
  /// std::pair, std::tuple or std::vector of tensors, or Outputs. Without such a forward, training
  /// needs a Task (train/options.h). `groups`: from input to output; empty: one group for each
  /// child that has parameters.
  template <ModuleHolderLike H>
  Model(H holder, std::vector<LayerGroup> groups = {})  // NOLINT: implicit, any holder is a model
      : Model(holder.is_empty() ? nullptr : holder.ptr(), forward_of(holder), std::move(groups)) {
    input_counts_ = detail::input_counts<H>();
  }

  /// Takes a module and its forward, which may be empty. Throws ConfigError if a group member names
  /// nothing, or a parameter is in two groups or none.
  Model(std::shared_ptr<torch::nn::Module> module, Forward forward,
        std::vector<LayerGroup> groups = {}, std::optional<ModelSpec> spec = std::nullopt);
  /// Takes the module; the other Model is empty afterwards.
  Model(Model&&) noexcept = default;
  /// Takes the module; the other Model is empty afterwards.
  Model& operator=(Model&&) noexcept = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() = default;

  /// Maps the inputs [batch, ...], on the model's device, to outputs [batch, ...], in the current
  /// mode and autograd mode. Throws ShapeError for a batch with another number of inputs than the
  /// module's forward takes, and what the module throws.
  [[nodiscard]] Outputs forward(const Batch& batch) const;
  /// Returns the first output for one input.
  [[nodiscard]] at::Tensor forward(const at::Tensor& input) const {
    return forward(Batch(input)).front();
  }
  /// Whether forward() can be called.
  [[nodiscard]] bool has_forward() const { return static_cast<bool>(forward_); }
  /// Whether the type of the module's forward takes so many inputs; true where the forward is one
  /// of a whole Batch or a function, whose type does not show it.
  [[nodiscard]] bool takes(size_t inputs) const;

  /// Returns all parameters, including frozen ones, in order of registration; they share the
  /// module's storages. Tied parameters are listed once.
  [[nodiscard]] const std::vector<Parameter>& parameters() const;
  /// Returns the buffers in order of registration, as parameters() does.
  [[nodiscard]] const std::vector<NamedTensor>& buffers() const;
  /// Returns the parameters, then the buffers, each as it is: what a checkpoint or bundle stores,
  /// but for the scales of held weights (stored.h).
  [[nodiscard]] std::vector<NamedTensor> state() const;
  /// Returns the layer groups, from the input side on.
  [[nodiscard]] const std::vector<LayerGroup>& layer_groups() const { return groups_; }
  /// Returns the model's name and options, if the registry has made it.
  [[nodiscard]] const std::optional<ModelSpec>& spec() const { return spec_; }
  void set_spec(ModelSpec spec) { spec_ = std::move(spec); }  ///< sets what spec() returns

  /// Returns the names of the submodules that are blocks (block.h), in order of registration; of
  /// blocks inside blocks only the outer.
  [[nodiscard]] std::vector<std::string> blocks() const;
  /// Throws ConfigError for a name that is not a submodule.
  [[nodiscard]] torch::nn::Module& submodule(const std::string& name) const;
  /// Throws ConfigError for a name of `modules` without a block, which set_recompute() and
  /// set_offload() refuse; `option` is the setting in the message.
  void check_blocks(const std::vector<std::string>& modules, const std::string& option) const;
  /// Makes the blocks recompute that `modules` name, or that are below a named module, and no
  /// others. {"all"}: every block. Throws ConfigError for a name without a block.
  void set_recompute(const std::vector<std::string>& modules);
  /// Chooses the blocks that offload. A model on the CPU then copies within the host, which saves
  /// nothing.
  void set_offload(const std::vector<std::string>& modules);

  /// Holds the parameters of blocks that need no gradient and fit (fits_codes()) as E4M3, to be
  /// dequantised while their block computes. All other parameters, and all if `on` is false, get
  /// their values back, rounded as they are. A parameter that a module outside the block has too
  /// stays as it is. Throws ConfigError for a model without blocks and as quantise(); those held
  /// before stay held.
  void hold_frozen(bool on);
  /// Takes the scales, by name, of parameters that were given E4M3 data. Parameters of blocks are
  /// dequantised as in hold_frozen(), to float32. Returns the others, for an OpenWeights around
  /// each forward; null without any.
  std::shared_ptr<HeldWeights> hold_stored(const std::map<std::string, at::Tensor>& scales);
  /// Returns the sets of weights that are held in eight bits.
  [[nodiscard]] const std::vector<std::shared_ptr<HeldWeights>>& held() const { return held_; }
  /// Lists parameters with their scales, and buffers.
  void account(Ledger& ledger, Category parameters, Category buffers) const;

  /// Sets training mode, or evaluation mode, for all submodules.
  void train(bool on);
  /// Whether the module is in training mode.
  [[nodiscard]] bool is_training() const;
  /// Makes parameters and floating-point buffers bfloat16 or float16, in place, but for those of
  /// batch norms, whose statistics and weights stay float32; gradients become undefined.
  void to_half(c10::ScalarType dtype);
  /// Lays the weights of convolutions over images (and other 4-D parameters) out with the channels
  /// innermost, in place; their values stay. Gradients become undefined.
  void to_channels_last();
  /// Moves parameters and buffers in place, so that handles from parameters() move too; gradients
  /// become undefined.
  void to(c10::Device device);
  /// Returns the device of the first parameter or buffer; the CPU without any.
  [[nodiscard]] c10::Device device() const;

  /// Returns the module itself, shared; null: the Model is empty.
  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  [[nodiscard]] bool empty() const { return module_ == nullptr; }  ///< whether it has no module
  /// Returns the module as its own type, for a Task: `model.as<MyNetImpl>().encode(x)`. Throws
  /// std::bad_cast if it is another.
  template <class Impl>
  [[nodiscard]] Impl& as() const {
    return dynamic_cast<Impl&>(*module_);
  }

 private:
  template <class H>
  static Forward forward_of(H holder) {
    return detail::forward_of(holder);
  }
  void require(const char* call) const;
  void list_tensors();

  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
  std::vector<size_t> input_counts_;  // of a forward of tensors
  std::vector<LayerGroup> groups_;
  std::optional<ModelSpec> spec_;
  std::vector<Parameter> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<std::shared_ptr<HeldWeights>> held_;
};

/// Sets the model to evaluation mode and restores the mode of every submodule at the end of the
/// scope.
class EvaluationScope {
 public:
  /// Sets evaluation mode; `model` must outlive this.
  explicit EvaluationScope(Model& model);
  ~EvaluationScope();
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
};

}  // namespace tare

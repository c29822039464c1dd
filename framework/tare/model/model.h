// What Tare needs of a model, apart from torch::nn: forward, named tensors, mode, layer groups. The
// value that the Learner and the Predictor own.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/checkpoint/named_tensor.h"

namespace torch::nn {
class Module;
}

namespace tare {

enum class ParameterKind { weight, bias, norm };  ///< norm: weight or bias of a normalisation layer

struct Parameter {
  std::string name{};
  at::Tensor tensor{};  ///< a leaf; shares storage with the module's
  ParameterKind kind = ParameterKind::weight;
  int64_t group = 0;  ///< index of its layer group
};

/// A part of the model that freezes and learns as one, from input to output: names of submodules or
/// parameters (a prefix up to a dot: "layer1" covers "layer1.0.conv1.weight").
struct LayerGroup {
  std::string name{};
  std::vector<std::string> members{};
};

/// How to build the model again: its name in the registry and its options as canonical YAML (see
/// registry.h).
struct ModelSpec {
  std::string name{};
  std::string options{};
};

/// What a torch::nn::ModuleHolder is: what TORCH_MODULE makes.
template <class H>
concept ModuleHolderLike = requires(H holder) {
  { holder.ptr() } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
  { holder.is_empty() } -> std::convertible_to<bool>;
};

/// A model by value: movable, not copyable. Moving it away leaves an empty Model, on which every
/// call but destruction and assignment throws StateError. Not thread-safe.
class Model {
 public:
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  /// Takes a module holder. Where it has `forward(Tensor) -> Tensor` that is the model's forward;
  /// without, a Task must do the work. `groups` from input to output; empty: one group for each
  /// child that has parameters.
  template <ModuleHolderLike H>
  Model(H holder,
        std::vector<LayerGroup> groups = {})  // NOLINT: implicit on purpose, any holder is a model
      : Model(holder.is_empty() ? nullptr : holder.ptr(), forward_of(holder), std::move(groups)) {}

  /// `forward` may be empty. Throws ConfigError when a group member names nothing, or a parameter
  /// is in two groups or in none.
  Model(std::shared_ptr<torch::nn::Module> module, Forward forward,
        std::vector<LayerGroup> groups = {}, std::optional<ModelSpec> spec = std::nullopt);
  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() = default;

  /// Input [batch, ...] on the model's device to output [batch, ...], in the current mode and
  /// gradient mode.
  [[nodiscard]] at::Tensor forward(const at::Tensor& input) const;
  [[nodiscard]] bool has_forward() const { return static_cast<bool>(forward_); }

  /// In order of registration; handles that share the module's storages. Frozen ones included. Tied
  /// ones once.
  [[nodiscard]] const std::vector<Parameter>& parameters() const;
  [[nodiscard]] const std::vector<NamedTensor>& buffers() const;
  /// Parameters, then buffers: what a checkpoint or bundle holds.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  [[nodiscard]] const std::vector<LayerGroup>& layer_groups() const { return groups_; }
  /// Name and options when it came from the registry.
  [[nodiscard]] const std::optional<ModelSpec>& spec() const { return spec_; }
  void set_spec(ModelSpec spec) { spec_ = std::move(spec); }

  void train(bool on);
  [[nodiscard]] bool is_training() const;
  /// Moves parameters and buffers, and with them every handle returned before; gradients become
  /// undefined.
  void to(c10::Device device);
  [[nodiscard]] c10::Device device()
      const;  ///< of the first parameter or buffer; the CPU where there is none

  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& module() const { return module_; }
  [[nodiscard]] bool empty() const { return module_ == nullptr; }
  /// The module as what it is, for a Task: `model.as<MyNetImpl>().encode(x)`. Throws std::bad_cast.
  template <class Impl>
  [[nodiscard]] Impl& as() const {
    return dynamic_cast<Impl&>(*module_);
  }

 private:
  template <class H>
  static Forward forward_of(H holder) {
    if constexpr (requires(at::Tensor x) {
                    { holder->forward(x) } -> std::same_as<at::Tensor>;
                  }) {
      return [holder](const at::Tensor& x) mutable { return holder->forward(x); };
    } else {
      return {};
    }
  }
  void require(const char* call) const;
  void list_tensors();

  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
  std::vector<LayerGroup> groups_;
  std::optional<ModelSpec> spec_;
  std::vector<Parameter> parameters_;
  std::vector<NamedTensor> buffers_;
};

/// Puts the whole model into evaluation mode and gives every submodule its own mode back at the end
/// of the scope.
class EvaluationScope {
 public:
  explicit EvaluationScope(Model& model);
  ~EvaluationScope();
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
};

}  // namespace tare

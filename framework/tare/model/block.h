// Block: a part of a model that need not keep its activations between forward and backward.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace tare {

class HeldWeights;

/// Sets what a block does with the activations that its backward needs; without either option,
/// LibTorch keeps them.
struct Activations {
  bool recompute = false;  ///< only the inputs are kept, and the backward does the forward again
  bool offload = false;    ///< what is kept waits in the host's memory, see memory/offload.h
  bool operator==(const Activations&) const = default;
};

/// Is notified, while it is in scope, when a block of the thread's forwards begins and ends. Only
/// the innermost observer is notified, and only of outermost blocks.
class BlockObserver {
 public:
  BlockObserver();
  virtual ~BlockObserver();
  BlockObserver(const BlockObserver&) = delete;
  BlockObserver& operator=(const BlockObserver&) = delete;

  /// Replaces those of the inputs of `block` that it likes to; called before enter(). Undefined
  /// ones are absent. The default replaces none.
  virtual void take(const torch::nn::Module& block, std::vector<at::Tensor>& inputs);
  /// Replaces a tensor that beside() is given outside of all blocks; the default does not.
  virtual at::Tensor beside(const at::Tensor& tensor);
  /// Called when the forward of `block` begins, on the calling thread.
  virtual void enter(const torch::nn::Module& block) = 0;
  /// Called when the forward of `block` ends with `output`.
  virtual void leave(const torch::nn::Module& block, const at::Tensor& output) = 0;

 private:
  BlockObserver* outer_;
};

/// Returns `tensor`, or where it is on another device than `x`, a copy there, through which
/// gradients go: for a weight or an output that two blocks of a model use. The blocks of a model
/// that is divided (parallel/stages.h) may be on two devices.
[[nodiscard]] at::Tensor beside(const at::Tensor& x, const at::Tensor& tensor);

/// Lets a module recompute or offload its activations, and be observed. A module that also derives
/// from it,
///
///     struct LayerImpl : torch::nn::Module, tare::Block {
///       torch::Tensor forward(const torch::Tensor& x) {
///         return in_block(*this, [this](const torch::Tensor& in) { return body(in); }, x);
///       }
///     };
///
/// can be named in LearnerOptions::recompute and ::offload. Blocks may lie inside blocks; then the
/// settings of the outermost block apply. Not thread-safe, as modules are not.
class Block {
 public:
  virtual ~Block() = default;
  /// Returns what happens to the block's activations between forward and backward.
  [[nodiscard]] Activations activations() const { return activations_; }
  /// Applies from the next forward on.
  void set_activations(Activations activations) { activations_ = activations; }
  /// Returns the weights that are dequantised while the body runs (held_weights.h); null: none.
  [[nodiscard]] const std::shared_ptr<HeldWeights>& held() const { return held_; }
  /// Sets them; null: none.
  void set_held(std::shared_ptr<HeldWeights> weights) { held_ = std::move(weights); }
  /// Returns the device to which inputs are copied that are elsewhere; unset: they stay.
  [[nodiscard]] std::optional<c10::Device> device() const { return device_; }
  /// Sets it, for a block of a model that lives on several devices (parallel/stages.h).
  void set_device(std::optional<c10::Device> device) { device_ = device; }

 protected:
  Block() = default;
  /// Copies the settings; a copy has weights of its own, which nobody holds.
  Block(const Block& other) : activations_(other.activations_), device_(other.device_) {}
  Block& operator=(const Block&) = delete;

  /// Returns the tensor body(inputs...), where `module` is this block, in a
  /// torch::nn::ModuleHolder.
  ///
  /// With Activations::recompute, if a gradient is wanted, the body runs without a graph; the
  /// backward runs it again with the generators, the module's buffers and autocast as they were,
  /// and leaves generators and buffers as it found them, so running statistics move once. Output
  /// and gradients are bit-equal to keep's, if a body does the same each time and no parameter is
  /// shared by two blocks (then a sum has another order). Kept are the inputs and a copy of the
  /// buffers.
  ///
  /// The body is called from the backward too: what it captures must live until then, and tensors
  /// that it captures get no gradient: pass them as inputs. It must not change an input in place.
  /// A second derivative (`create_graph`) throws StateError. (Chen et al. 2016, "Training Deep Nets
  /// with Sublinear Memory Cost".)
  ///
  /// With Activations::offload the body runs in a memory::Offload that leaves the module's
  /// parameters and buffers, and inputs without a gradient; with both, what moves are the inputs.
  ///
  /// With held weights the body, each time it runs, is in an OpenWeights.
  ///
  /// With a device, inputs that are elsewhere are copied there first; gradients are copied back.
  template <class F, std::same_as<at::Tensor>... Inputs>
  requires(sizeof...(Inputs) > 0) at::Tensor
      in_block(torch::nn::Module& module, F body, const Inputs&... inputs) {
    if (activations_ == Activations{} && !held_ && !device_ && !observed()) return body(inputs...);
    return run(module, spread<sizeof...(Inputs)>(std::move(body)), {inputs...});
  }

 private:
  using Body = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

  template <size_t N, class F>
  static Body spread(F body) {
    return [body = std::move(body)](const std::vector<at::Tensor>& inputs) {
      return [&]<size_t... I>(std::index_sequence<I...>) { return body(inputs[I]...); }
      (std::make_index_sequence<N>());
    };
  }
  static bool observed() noexcept;
  at::Tensor run(torch::nn::Module& module, Body body, std::vector<at::Tensor> inputs) const;

  Activations activations_{};
  std::shared_ptr<HeldWeights> held_{};
  std::optional<c10::Device> device_{};
};

}  // namespace tare

// Runs a block without its activations, and repeats it in the backward.
#include "tare/model/block.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/memory/offload.h"
#include "tare/model/generators.h"
#include "tare/model/held_weights.h"
#include "tare/model/precision.h"
#include "tare/model/recomputing.h"

namespace tare {
namespace {

using torch::autograd::AutogradContext;
using Tensors = std::vector<at::Tensor>;

/// Copies of buffers, and back. A graph may have saved a buffer, so its version stays.
class BufferSnapshot {
 public:
  explicit BufferSnapshot(Tensors buffers) : buffers_(std::move(buffers)) {
    for (auto& buffer : buffers_) {
      buffer = buffer.variable_data();
      copies_.push_back(at::empty_like(buffer).copy_(buffer, /*non_blocking=*/true));
    }
  }
  void restore() const {
    const c10::AutoGradMode no_grad(false);
    for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(copies_[i], true);
  }

 private:
  Tensors buffers_, copies_;
};

/// Buffers as they are now, again at its end. Where an error ends it, a device that has failed may
/// refuse them, and the first error counts.
class BufferScope {
 public:
  explicit BufferScope(Tensors buffers) : now_(std::move(buffers)) {}
  ~BufferScope() noexcept(false) {
    try {
      now_.restore();
    } catch (const c10::Error&) {
      if (std::uncaught_exceptions() == errors_) throw;
    }
  }
  BufferScope(const BufferScope&) = delete;
  BufferScope& operator=(const BufferScope&) = delete;

 private:
  BufferSnapshot now_;
  int errors_ = std::uncaught_exceptions();
};

Tensors trainable(const Tensors& tensors) {
  Tensors some;
  std::ranges::copy_if(tensors, std::back_inserter(some),
                       [](const at::Tensor& t) { return t.defined() && t.requires_grad(); });
  return some;
}

std::vector<uint32_t> versions_of(const torch::nn::Module& module) {
  std::vector<uint32_t> versions;
  for (const auto& parameter : module.parameters())
    versions.push_back(parameter.defined() ? static_cast<uint32_t>(parameter._version()) : 0);
  return versions;
}

/// Holds everything that a backward needs to do a forward again.
struct Repeat final : torch::CustomClassHolder {
  Repeat(torch::nn::Module& of, std::function<at::Tensor(const Tensors&)> work, Tensors trained,
         c10::Device on)
      : module(of.shared_from_this()),
        body(std::move(work)),
        parameters(std::move(trained)),
        versions(versions_of(of)),
        training(of.is_training()),
        device(on),
        autocast(AutocastState::of(on.type())),
        buffers(of.buffers()) {
    generators.take(device);
  }

  /// The graph does not hold the weights, so nobody else sees that they have changed.
  void require_unchanged() const {
    if (versions_of(*module) == versions && module->is_training() == training) return;
    throw StateError("backward",
                     "with a block that recomputes and whose weights or mode have "
                     "changed since its forward",
                     "do the backward before the next step");
  }

  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const Tensors&)> body;
  Tensors parameters;
  std::vector<uint32_t> versions;
  bool training;
  c10::Device device;
  AutocastState autocast;
  BufferSnapshot buffers;
  GeneratorSnapshot generators;
};

constexpr const char* kRepeat = "repeat";

/// Makes a tensor like the saved one, at which a graph of its own begins.
at::Tensor leaf(const at::Tensor& saved) {
  return saved.defined() ? saved.detach().set_requires_grad(saved.requires_grad()) : saved;
}

at::Tensor forward_again(const Repeat& repeat, const Tensors& inputs) {
  const GeneratorScope generators(repeat.device);
  const BufferScope buffers(repeat.module->buffers());
  repeat.generators.restore();
  repeat.buffers.restore();
  const AutocastScope autocast(repeat.autocast);
  const c10::AutoGradMode with_graph(true);
  const Recomputing again;
  return repeat.body(inputs);
}

struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(AutogradContext* ctx, const c10::intrusive_ptr<Repeat>& repeat,
                            at::TensorList inputs, at::TensorList /*parameters*/) {
    ctx->saved_data[kRepeat] = c10::IValue::make_capsule(repeat);
    ctx->save_for_backward(inputs.vec());
    auto autocast = repeat->autocast;
    autocast.cache = false;  // a weight that is cast here has no graph: no one else may find it
    const AutocastScope scope(autocast);
    return repeat->body(inputs.vec());
  }

  static Tensors backward(AutogradContext* ctx, const Tensors& gradients) {
    if (c10::GradMode::is_enabled())
      throw StateError("backward", "with create_graph through a block that recomputes",
                       "let the block keep its activations");
    const auto repeat =
        c10::static_intrusive_pointer_cast<Repeat>(ctx->saved_data[kRepeat].toCapsule());
    repeat->require_unchanged();
    Tensors inputs = ctx->get_saved_variables();
    std::ranges::transform(inputs, inputs.begin(), leaf);
    const at::Tensor output = forward_again(*repeat, inputs);
    Tensors wanted = trainable(inputs);
    wanted.insert(wanted.end(), repeat->parameters.begin(), repeat->parameters.end());
    Tensors found(wanted.size());
    if (output.requires_grad())
      found = torch::autograd::grad({output}, wanted, gradients, /*retain_graph=*/{},
                                    /*create_graph=*/false, /*allow_unused=*/true);
    return in_place_of(inputs, std::move(found));
  }

 private:
  /// Returns the gradients, with an undefined one for the first argument and for inputs without a
  /// gradient.
  static Tensors in_place_of(const Tensors& inputs, Tensors found) {
    Tensors all(1);
    auto next = found.begin();
    for (const auto& input : inputs) {
      const bool wanted = input.defined() && input.requires_grad();
      all.push_back(wanted ? std::move(*next++) : at::Tensor());
    }
    std::move(next, found.end(), std::back_inserter(all));
    return all;
  }
};

thread_local BlockObserver* observer = nullptr;

/// Notifies the observer of a block, and of none inside it.
class Observed {
 public:
  explicit Observed(const torch::nn::Module& block)
      : block_(block), outer_(std::exchange(observer, nullptr)) {}
  ~Observed() { observer = outer_; }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

  /// Throws what the observer throws.
  void enter(Tensors& inputs) const {
    if (!outer_) return;
    outer_->take(block_, inputs);
    outer_->enter(block_);
  }
  void leave(const at::Tensor& output) const {
    if (outer_) outer_->leave(block_, output);
  }

 private:
  const torch::nn::Module& block_;
  BlockObserver* outer_;
};

at::Tensor recomputed(torch::nn::Module& module, std::function<at::Tensor(const Tensors&)> body,
                      const Tensors& inputs) {
  const Tensors parameters = trainable(module.parameters());
  if (!c10::GradMode::is_enabled() || (parameters.empty() && trainable(inputs).empty()))
    return body(inputs);
  const auto repeat =
      c10::make_intrusive<Repeat>(module, std::move(body), parameters, inputs.front().device());
  return Recompute::apply(repeat, at::TensorList(inputs), at::TensorList(parameters));
}

std::function<at::Tensor(const Tensors&)> with_weights(
    const std::shared_ptr<HeldWeights>& held, std::function<at::Tensor(const Tensors&)> body) {
  return [held, body = std::move(body)](const Tensors& inputs) {
    const OpenWeights open(held);
    return body(inputs);
  };
}

template <class Forward>
at::Tensor offloaded(torch::nn::Module& module, const Tensors& inputs, const Forward& forward) {
  Tensors kept = module.parameters();
  const c10::Device device = kept.empty() ? inputs.front().device() : kept.front().device();
  std::ranges::move(module.buffers(), std::back_inserter(kept));
  // No graph made them, so somebody else holds them: the batch.
  std::ranges::copy_if(inputs, std::back_inserter(kept),
                       [](const at::Tensor& t) { return t.defined() && !t.requires_grad(); });
  memory::Offload offload(device, kept);
  at::Tensor output = forward();
  offload.finish();
  return output;
}

}  // namespace

BlockObserver::BlockObserver() : outer_(std::exchange(observer, this)) {}

BlockObserver::~BlockObserver() { observer = outer_; }

void BlockObserver::take(const torch::nn::Module&, Tensors&) {}

at::Tensor BlockObserver::beside(const at::Tensor& tensor) { return tensor; }

at::Tensor beside(const at::Tensor& x, const at::Tensor& tensor) {
  const at::Tensor there = tensor.device() == x.device() ? tensor : tensor.to(x.device());
  return observer ? observer->beside(there) : there;
}

bool Block::observed() noexcept { return observer != nullptr; }

at::Tensor Block::run(torch::nn::Module& module, Body body, Tensors inputs) const {
  const Observed block(module);
  block.enter(inputs);
  if (device_)
    for (at::Tensor& input : inputs)
      if (input.defined() && input.device() != *device_) input = input.to(*device_);
  if (held_) body = with_weights(held_, std::move(body));
  const auto forward = [&] {
    return activations_.recompute ? recomputed(module, std::move(body), inputs) : body(inputs);
  };
  const bool moves = activations_.offload && c10::GradMode::is_enabled();
  at::Tensor output = moves ? offloaded(module, inputs, forward) : forward();
  block.leave(output);
  return output;
}

}  // namespace tare

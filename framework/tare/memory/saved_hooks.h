// Hooks around the tensors that autograd saves, and who makes them. Internal.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>

namespace tare::memory {

/// Marks a storage as saved: SavedTensors::contains() is true for it while the mark lives.
class SavedMark {
 public:
  SavedMark() = default;
  explicit SavedMark(const c10::Storage& storage);
  ~SavedMark() { reset(); }
  SavedMark(const SavedMark&) = delete;
  SavedMark& operator=(const SavedMark&) = delete;
  SavedMark& operator=(SavedMark&& other) noexcept;
  void reset();

 private:
  const void* data_ = nullptr;
};

/// Throws StateError: the backward needs a tensor as it was in the forward.
[[noreturn]] void throw_changed_in_place();

/// Keeps the tensor where it is, and a mark on it. Detached: an output that its own node saves
/// would be a cycle. LibTorch leaves it to hooks to notice a change in place.
class KeptTensor final : public torch::autograd::SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor& tensor) override;
  at::Tensor call_unpack_hook() override;

 private:
  at::Tensor tensor_;
  int64_t version_ = 0;
  SavedMark mark_;
};

/// Makes the hooks of what the thread's forwards save while it is in scope; the innermost is asked.
class HookMaker {
 public:
  /// Throws what SavedTensors::install() throws.
  HookMaker();
  virtual ~HookMaker();
  HookMaker(const HookMaker&) = delete;
  HookMaker& operator=(const HookMaker&) = delete;

  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make() = 0;

 protected:
  /// Returns the hooks of the enclosing scope, for tensors that this scope leaves alone; KeptTensor
  /// if there is no enclosing scope.
  [[nodiscard]] std::unique_ptr<torch::autograd::SavedVariableHooks> make_outer() const;

 private:
  HookMaker* outer_;
};

}  // namespace tare::memory

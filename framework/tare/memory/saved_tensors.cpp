#include "tare/memory/saved_tensors.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/base/immortal.h"

namespace tare::memory {
namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

constinit std::atomic<int> open_scopes{0};

/// How many saved tensors lie on each storage.
class SavedStorages {
 public:
  void add(const void* data) {
    const std::lock_guard lock(mutex_);
    ++counts_[data];
  }
  void remove(const void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(data);
    if (--found->second == 0) counts_.erase(found);
  }
  bool contains(const void* data) {
    const std::lock_guard lock(mutex_);
    return counts_.contains(data);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, int64_t> counts_;
};

SavedStorages& storages() {
  static Immortal<SavedStorages> all;  // graphs in static objects end after it would
  return *all;
}

/// Keeps the tensor detached: an output that its own node saves would be a cycle. LibTorch leaves
/// it to hooks to notice a change in place.
class Note final : public SavedVariableHooks {
 public:
  ~Note() override {
    if (data_) storages().remove(data_);
  }
  Note() = default;
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;

  void call_pack_hook(const at::Tensor& tensor) override {
    tensor_ = tensor.detach();
    version_ = tensor_._version();
    if (!tensor_.has_storage()) return;
    data_ = tensor_.storage().data();
    if (data_) storages().add(data_);
  }
  at::Tensor call_unpack_hook() override {
    if (tensor_._version() == version_) return tensor_;
    throw StateError("backward", "with a tensor that was changed in place since the forward",
                     "use the operator that returns a new tensor");
  }

 private:
  at::Tensor tensor_;
  int64_t version_ = 0;
  const void* data_ = nullptr;
};

class NotingEngine final : public Engine {
 public:
  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    return SavedTensors::in_scope() ? std::make_unique<Note>() : nullptr;
  }
};

Engine& noting_engine() {
  static Immortal<NotingEngine> engine;
  return *engine;
}

}  // namespace

void SavedTensors::install() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Engine& current = Engine::get_default_engine();
  if (&current == &noting_engine()) return;
  if (&current != &Engine::get_base_engine()) {
    throw StateError("memory.saved_tensors", "with an autograd engine that is not LibTorch's own",
                     "leave SavedTensors out");
  }
  torch::autograd::set_default_engine_stub(&noting_engine);
}

SavedTensors::SavedTensors() {
  install();
  open_scopes.fetch_add(1, std::memory_order_relaxed);
}

SavedTensors::~SavedTensors() { open_scopes.fetch_sub(1, std::memory_order_relaxed); }

bool SavedTensors::in_scope() noexcept { return open_scopes.load(std::memory_order_relaxed) > 0; }

bool SavedTensors::contains(const void* data) { return storages().contains(data); }

}  // namespace tare::memory

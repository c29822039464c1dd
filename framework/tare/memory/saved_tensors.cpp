// Notes what autograd saves, by hooks and an engine of its own.
#include "tare/memory/saved_tensors.h"

#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/saved_hooks.h"

namespace tare::memory {
namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

constinit std::atomic<int> open_scopes{0};
thread_local HookMaker* maker = nullptr;

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

class NotingEngine final : public Engine {
 public:
  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (maker) return maker->make();
    return SavedTensors::in_scope() ? std::make_unique<KeptTensor>() : nullptr;
  }
};

Engine& noting_engine() {
  static Immortal<NotingEngine> engine;
  return *engine;
}

}  // namespace

SavedMark::SavedMark(const c10::Storage& storage) : data_(storage.data()) {
  if (data_) storages().add(data_);
}

void SavedMark::reset() {
  if (const void* data = std::exchange(data_, nullptr)) storages().remove(data);
}

SavedMark& SavedMark::operator=(SavedMark&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}

void throw_changed_in_place() {
  throw StateError("backward", "with a tensor that was changed in place since the forward",
                   "use the operator that returns a new tensor");
}

void KeptTensor::call_pack_hook(const at::Tensor& tensor) {
  tensor_ = tensor.detach();
  version_ = tensor_._version();
  if (tensor_.has_storage()) mark_ = SavedMark(tensor_.storage());
}

at::Tensor KeptTensor::call_unpack_hook() {
  if (tensor_._version() != version_) throw_changed_in_place();
  return tensor_;
}

HookMaker::HookMaker() {
  SavedTensors::install();
  outer_ = std::exchange(maker, this);
}

HookMaker::~HookMaker() { maker = outer_; }

std::unique_ptr<SavedVariableHooks> HookMaker::make_outer() const {
  return outer_ ? outer_->make() : std::make_unique<KeptTensor>();
}

void SavedTensors::install() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Engine& current = Engine::get_default_engine();
  if (&current == &noting_engine()) return;
  if (&current != &Engine::get_base_engine()) {
    throw StateError("memory.saved_tensors", "with an autograd engine that is not LibTorch's own",
                     "omit SavedTensors");
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

#include "tare/memory/offload.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tare/memory/saved_hooks.h"

namespace tare::memory {
namespace {

constexpr size_t kLeastBytes = 64 << 10;  // below, a copy takes longer to begin than to run
constexpr size_t kLeastShare = 8;         // a tensor is at least 1/8 of its storage

/// Work beside the computation of a device: on a stream of its own, or in order where there are
/// no streams.
class SideStream {
 public:
  explicit SideStream(c10::Device device) : device_(device) {
    if (device.is_cpu() || device.is_meta()) return;
    guard_.emplace(device.type());
    stream_ = guard_->getNewStream(device);
  }

  /// After what the computation has been given so far.
  template <class Copies>
  void run(const Copies& copies) {
    if (!stream_) return copies();
    c10::Event given(device_.type());
    given.record(guard_->getStream(device_));
    given.block(*stream_);
    const c10::StreamGuard on(*stream_);
    copies();
    done_.emplace(device_.type());
    done_->record(*stream_);
  }
  /// What the computation is given from now on comes after the copies.
  void join() {
    if (done_) done_->block(guard_->getStream(device_));
    done_.reset();
  }

 private:
  c10::Device device_;
  std::optional<c10::impl::VirtualGuardImpl> guard_;
  std::optional<c10::Stream> stream_;
  std::optional<c10::Event> done_;
};

at::Tensor bytes_of(const c10::Storage& storage) {
  const auto size = static_cast<int64_t>(storage.nbytes());
  at::Tensor bytes = at::empty({0}, at::TensorOptions(c10::kByte).device(storage.device()));
  return bytes.set_(storage, 0, {size}, {1});
}

class Group;

/// A storage that was saved: on the device, on the host, or both.
class Slot {
 public:
  explicit Slot(const at::Tensor& tensor);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  /// Whether the tensor's storage is this one, as it was then.
  [[nodiscard]] bool holds(const at::Tensor& tensor) const {
    return !changed_ && !storage_.expired() &&
           storage_._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl() &&
           version_ == tensor._version();
  }
  void copy_to_host();
  void leave_device();
  /// Makes room on the device, if it is not there, for copies of `group`.
  void make_room(const std::shared_ptr<Group>& group);
  void copy_to_device(const Group& group);
  /// What the computation is given from now on comes after the copies.
  void settle();
  [[nodiscard]] c10::Storage on_device() const { return back_ ? back_ : source_.storage(); }
  /// Throws StateError if it was changed in place before it left.
  void require_unchanged() const {
    if (changed_ || (source_.defined() && changed())) throw_changed_in_place();
  }

 private:
  [[nodiscard]] bool changed() const { return source_._version() != version_; }

  at::Tensor source_;  // until it leaves
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  int64_t version_;
  bool changed_ = false;
  size_t bytes_;
  c10::Device device_;
  at::Tensor host_;
  c10::Storage back_;
  std::shared_ptr<Group> fetched_by_;
  SavedMark mark_;  // on the one on the device
};

/// What one scope saved.
class Group : public std::enable_shared_from_this<Group> {
 public:
  Group(c10::Device device, std::weak_ptr<Group> before)
      : device_(device), side_(device), before_(std::move(before)) {}

  [[nodiscard]] c10::Device device() const { return device_; }

  /// One that there is, here or in the group before, whose output may be this one's input.
  std::shared_ptr<Slot> add(const at::Tensor& tensor) {
    if (auto known = find(tensor)) return known;
    const auto before = before_.lock();
    auto slot = before ? before->find(tensor) : nullptr;
    if (!slot) {
      slot = std::make_shared<Slot>(tensor);
      side_.run([&] { slot->copy_to_host(); });
    }
    slots_.push_back(slot);
    return slot;
  }
  void leave_device() {
    side_.join();
    for_each([](Slot& slot) { slot.leave_device(); });
    fetched_ = false;
  }
  /// For the computation, and then the group before, for what comes next.
  void bring_back() {
    fetch();
    for_each([](Slot& slot) { slot.settle(); });
    if (const auto before = before_.lock()) before->fetch();
  }
  void settle() { side_.join(); }

 private:
  [[nodiscard]] std::shared_ptr<Slot> find(const at::Tensor& tensor) const {
    for (const auto& known : slots_)
      if (auto slot = known.lock(); slot && slot->holds(tensor)) return slot;
    return nullptr;
  }
  void fetch() {
    if (fetched_) return;
    for_each([&](Slot& slot) { slot.make_room(shared_from_this()); });
    fetched_ = true;  // not where memory was out: it may be asked again
    side_.run([&] { for_each([&](Slot& slot) { slot.copy_to_device(*this); }); });
  }
  template <class Work>
  void for_each(const Work& work) {
    for (const auto& known : slots_)
      if (const auto slot = known.lock()) work(*slot);
  }

  c10::Device device_;
  SideStream side_;
  std::weak_ptr<Group> before_;
  std::vector<std::weak_ptr<Slot>> slots_;  // a slot is freed with the last node that saved it
  bool fetched_ = false;
};

Slot::Slot(const at::Tensor& tensor)
    : source_(tensor.detach()),
      storage_(source_.storage().getWeakStorageImpl()),
      version_(source_._version()),
      bytes_(source_.storage().nbytes()),
      device_(source_.device()),
      mark_(source_.storage()) {}

// Copies that nobody has waited for must not meet what gets the memory next.
Slot::~Slot() {
  try {
    settle();
  } catch (const c10::Error&) {  // the device has failed, and says so at its next call
  }
}

void Slot::copy_to_host() {
  if (device_.is_meta()) return;
  const auto options = at::TensorOptions(c10::kByte).pinned_memory(!device_.is_cpu());
  host_ = at::empty({static_cast<int64_t>(bytes_)}, options);
  host_.copy_(bytes_of(source_.storage()), /*non_blocking=*/true);
}

void Slot::leave_device() {
  if (!source_.defined()) return;
  changed_ = changed();
  mark_.reset();
  source_.reset();
}

void Slot::make_room(const std::shared_ptr<Group>& group) {
  if (source_.defined() || back_) return;
  const auto options = at::TensorOptions(c10::kByte).device(device_);
  back_ = at::empty({static_cast<int64_t>(bytes_)}, options).storage();
  fetched_by_ = group;
  mark_ = SavedMark(back_);
}

void Slot::copy_to_device(const Group& group) {
  if (fetched_by_.get() == &group && host_.defined())
    bytes_of(back_).copy_(host_, /*non_blocking=*/true);
}

void Slot::settle() {
  if (fetched_by_) fetched_by_->settle();
}

/// A view on a slot, or the tensor itself.
class OffloadedTensor final : public torch::autograd::SavedVariableHooks {
 public:
  OffloadedTensor(std::shared_ptr<Group> group, const std::vector<const void*>& kept)
      : group_(std::move(group)), keeps_(&kept) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    if (!moves(tensor)) return kept_.call_pack_hook(tensor);
    const c10::AutoGradMode no_grad(false);
    slot_ = group_->add(tensor);
    options_ = tensor.options().requires_grad(std::nullopt);
    offset_ = tensor.storage_offset();
    sizes_ = tensor.sizes().vec();
    strides_ = tensor.strides().vec();
  }
  at::Tensor call_unpack_hook() override {
    if (!slot_) return kept_.call_unpack_hook();
    const c10::AutoGradMode no_grad(false);
    slot_->require_unchanged();
    group_->bring_back();
    at::Tensor view = at::empty({0}, options_);
    return view.set_(slot_->on_device(), offset_, sizes_, strides_);
  }

 private:
  /// Called in the scope, where keeps_ lives.
  [[nodiscard]] bool moves(const at::Tensor& tensor) const {
    if (tensor.device() != group_->device() || tensor.layout() != c10::kStrided) return false;
    if (tensor.is_conj() || tensor.is_neg() || tensor.nbytes() < kLeastBytes) return false;
    const c10::Storage& storage = tensor.storage();
    if (tensor.nbytes() * kLeastShare < storage.nbytes()) return false;
    return !std::ranges::binary_search(*keeps_, storage.unsafeGetStorageImpl());
  }

  std::shared_ptr<Group> group_;
  const std::vector<const void*>* keeps_;
  std::shared_ptr<Slot> slot_;
  at::TensorOptions options_;
  int64_t offset_ = 0;
  std::vector<int64_t> sizes_, strides_;
  KeptTensor kept_;
};

/// The last group of the thread whose graph may still be alive.
thread_local std::weak_ptr<Group> latest;

}  // namespace

class Offload::Maker final : public HookMaker {
 public:
  Maker(c10::Device device, const std::vector<at::Tensor>& kept)
      : group_(std::make_shared<Group>(device, before(device))) {
    for (const auto& tensor : kept) {
      if (tensor.defined() && tensor.has_storage())
        kept_.push_back(tensor.storage().unsafeGetStorageImpl());
    }
    std::ranges::sort(kept_);
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    if (finished_) return std::make_unique<KeptTensor>();
    return std::make_unique<OffloadedTensor>(group_, kept_);
  }
  void finish() {
    group_->leave_device();
    latest = group_;
    finished_ = true;
  }

 private:
  static std::weak_ptr<Group> before(c10::Device device) {
    const auto group = latest.lock();
    return group && group->device() == device ? group : nullptr;
  }

  std::shared_ptr<Group> group_;
  std::vector<const void*> kept_;
  bool finished_ = false;
};

Offload::Offload(c10::Device device, const std::vector<at::Tensor>& kept)
    : maker_(std::make_unique<Maker>(device, kept)) {}

Offload::~Offload() = default;

void Offload::finish() { maker_->finish(); }

}  // namespace tare::memory

// Moves saved tensors to the host, and back before their backward.
#include "tare/memory/offload.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "tare/memory/saved_hooks.h"
#include "tare/memory/side_work.h"

namespace tare::memory {
namespace {

constexpr size_t kLeastBytes = 64 << 10;  // below, a copy takes longer to begin than to run
constexpr size_t kLeastShare = 8;         // a tensor is at least 1/8 of its storage

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
using c10::impl::VirtualGuardImpl;

c10::Device with_index(c10::Device device) {
  return has_streams(device) && !device.has_index() ? VirtualGuardImpl(device.type()).getDevice()
                                                    : device;
}

at::Tensor bytes_of(const c10::Storage& storage) {
  const auto size = static_cast<int64_t>(storage.nbytes());
  at::Tensor bytes = at::empty({0}, at::TensorOptions(c10::kByte).device(storage.device()));
  return bytes.set_(storage, 0, {size}, {1});
}

/// Tensors of one storage may count their versions apart: those of unsafe_chunk, variable_data().
at::Tensor counter_of(const at::Tensor& tensor) {
  return tensor.is_view() ? at::Tensor(tensor._base()) : tensor;
}

/// A storage that was saved: on the device, on the host, or both.
class Slot {
 public:
  explicit Slot(const at::Tensor& tensor)
      : source_(tensor.detach()),
        storage_(source_.storage().getWeakStorageImpl()),
        counted_by_(counter_of(tensor).getIntrusivePtr()),
        counter_(source_.unsafeGetTensorImpl()->version_counter()),
        version_(counter_.current_version()),
        device_(source_.device()),
        mark_(source_.storage()) {
    if (has_streams(device_)) home_ = VirtualGuardImpl(device_.type()).getStream(device_);
  }
  /// Copies that nobody has waited for must not meet what gets the memory next.
  ~Slot() {
    try {
      if (home_ && (source_.defined() || back_)) wait(*home_);
    } catch (const c10::Error&) {  // the device has failed, and says so at its next call
    }
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  /// Whether the tensor's storage is this one, as it was then.
  [[nodiscard]] bool holds(const at::Tensor& tensor) const {
    return !changed_ && !storage_.expired() &&
           storage_._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl() &&
           counted_by_._unsafe_get_target() == counter_of(tensor).unsafeGetTensorImpl() &&
           !counted_by_.expired() && version_ == counter_.current_version();
  }
  /// Copies a storage on the stream `side`. The meta device has no values to copy.
  void copy_to_host(const SideWork& side) {
    if (device_.is_meta()) return;
    copies_ = side.done();
    const c10::Storage& from = source_.storage();
    const auto options = at::TensorOptions(c10::kByte).pinned_memory(!device_.is_cpu());
    host_ = at::empty({static_cast<int64_t>(from.nbytes())}, options);
    host_.copy_(bytes_of(from), /*non_blocking=*/true);
  }
  void leave_device() {
    if (!source_.defined()) return;
    if (home_) wait(VirtualGuardImpl(device_.type()).getStream(device_));
    changed_ = counter_.current_version() != version_;
    bytes_ = static_cast<int64_t>(source_.storage().nbytes());
    mark_.reset();
    source_.reset();
  }
  /// Returns the memory to which a storage is copied back; undefined if the storage is on the
  /// device, also because somebody else has kept it there.
  [[nodiscard]] c10::Storage destination() {
    if (source_.defined() || back_) return {};
    auto alive = storage_.lock();
    if (alive && counter_.current_version() == version_) {
      come_back(c10::Storage(std::move(alive)));
      return {};
    }
    return at::empty({bytes_}, at::TensorOptions(c10::kByte).device(device_)).storage();
  }
  void copy_to_device(const c10::Storage& destination, const SideWork& side) {
    copies_ = side.done();
    if (host_.defined()) bytes_of(destination).copy_(host_, /*non_blocking=*/true);
  }
  void come_back(c10::Storage storage) {
    back_ = std::move(storage);
    mark_ = SavedMark(back_);
    if (home_) home_ = VirtualGuardImpl(device_.type()).getStream(device_);
  }
  /// Returns the storage for what the computation is given from now on.
  [[nodiscard]] c10::Storage on_device() const {
    if (!back_) return source_.storage();
    if (home_) wait(VirtualGuardImpl(device_.type()).getStream(device_));
    return back_;
  }
  /// Throws StateError if it was changed in place before it left.
  void require_unchanged() const {
    if (changed_ || (source_.defined() && counter_.current_version() != version_))
      throw_changed_in_place();
  }

 private:
  void wait(const c10::Stream& stream) const {
    if (copies_) copies_->block(stream);
  }

  at::Tensor source_;  // until it leaves
  WeakStorage storage_;
  WeakTensor counted_by_;
  c10::VariableVersion counter_;
  uint32_t version_;
  bool changed_ = false;
  c10::Device device_;
  std::optional<c10::Stream> home_;  // whose memory it is in
  int64_t bytes_ = 0;
  at::Tensor host_;
  c10::Storage back_;
  std::shared_ptr<c10::Event> copies_;  // the last ones
  SavedMark mark_;                      // on the one on the device
};

/// Holds the tensors that one scope saved.
class Group {
 public:
  Group(c10::Device device, std::weak_ptr<Group> before)
      : device_(device), out_(device), in_(device), before_(std::move(before)) {}

  [[nodiscard]] c10::Device device() const { return device_; }
  [[nodiscard]] bool empty() const { return slots_.empty(); }

  /// Returns the tensor's slot: one that there is, here or in the group before, whose output may be
  /// this one's input.
  std::shared_ptr<Slot> add(const at::Tensor& tensor) {
    if (auto known = find(tensor)) return known;
    const auto before = before_.lock();
    auto slot = before ? before->find(tensor) : nullptr;
    if (!slot) {
      slot = std::make_shared<Slot>(tensor);
      out_.run([&] { slot->copy_to_host(out_); });
    }
    slots_.push_back(slot);
    return slot;
  }
  void leave_device() {
    for (const auto& slot : alive()) slot->leave_device();
    fetched_ = false;
  }
  /// Fetches the group for the computation; the first time also the group before, which comes next.
  void bring_back() {
    fetch();
    if (std::exchange(asked_, true)) return;
    const auto before = before_.lock();
    if (!before) return;
    try {
      before->fetch();
    } catch (const c10::OutOfMemoryError&) {  // it comes when it is needed
    }
  }

 private:
  [[nodiscard]] std::vector<std::shared_ptr<Slot>> alive() const {
    std::vector<std::shared_ptr<Slot>> all;
    for (const auto& known : slots_)
      if (auto slot = known.lock()) all.push_back(std::move(slot));
    return all;
  }
  [[nodiscard]] std::shared_ptr<Slot> find(const at::Tensor& tensor) const {
    for (auto& slot : alive())
      if (slot->holds(tensor)) return slot;
    return nullptr;
  }
  /// Fetches all slots or none: out of memory changes nothing.
  void fetch() {
    if (fetched_) return;
    std::vector<std::pair<std::shared_ptr<Slot>, c10::Storage>> coming;
    for (auto& slot : alive())
      if (auto destination = slot->destination())
        coming.emplace_back(std::move(slot), std::move(destination));
    in_.run([&] {
      for (const auto& [slot, destination] : coming) slot->copy_to_device(destination, in_);
    });
    for (auto& [slot, destination] : coming) slot->come_back(std::move(destination));
    fetched_ = true;
  }

  c10::Device device_;
  SideWork out_, in_;
  std::weak_ptr<Group> before_;
  std::vector<std::weak_ptr<Slot>> slots_;  // a slot is freed with the last node that saved it
  bool fetched_ = false, asked_ = false;
};

/// Holds a view on a slot of the offload, or the tensor itself.
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
    if (tensor.is_conj() || tensor.is_neg()) return false;
    const c10::Storage& storage = tensor.storage();
    if (storage.nbytes() < kLeastBytes) return false;
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
      : group_(std::make_shared<Group>(with_index(device), before(with_index(device)))) {
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
    if (!group_->empty()) latest = group_;
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

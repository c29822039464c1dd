// Makes a device of LibTorch's PrivateUse1: allocator, guard, operators, and a backend.
#include "contract/fake_accelerator.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/event_ring.h"
#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/peak_record.h"
#include "tare/memory/phase.h"

namespace tare::testing {
namespace {

using memory::LiveBlock;

const c10::Device kFake{c10::kPrivateUse1, 0};
constexpr int64_t kMemory = int64_t{4} << 30;  // of the device
constexpr const char* kName = "fake";

/// Counts what is allocated, with the records of the interface.
class Book {
 public:
  void* take(int64_t bytes) {
    std::unique_lock lock(mutex_);
    const int64_t limit = std::min(budget.value_or(kMemory), kMemory);
    if (allocated_ + bytes > limit) {
      const int64_t held = allocated_;
      lock.unlock();
      const auto report = memory::report_out_of_memory(kFake, bytes);
      throw OutOfMemory(kFake, bytes, held, budget, report ? report->advice() : "");
    }
    void* const data = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
    allocated_ += bytes;
    cached_ = std::max<int64_t>(0, cached_ - bytes);
    peak_ = std::max(peak_, allocated_);
    const LiveBlock block{data,
                          bytes,
                          ++births_,
                          memory::current_phase(),
                          memory::capture_stack(),
                          memory::current_step()};
    blocks_[data] = block;
    rings_.note(memory::EventKind::allocation, block, block.phase);
    return data;
  }

  void give(void* data) {
    {
      const std::lock_guard lock(mutex_);
      const auto block = blocks_.extract(data).mapped();
      allocated_ -= block.bytes;
      cached_ += block.bytes;
      rings_.note(memory::EventKind::free, block, memory::current_phase());
    }
    std::free(data);
  }

  [[nodiscard]] memory::Usage usage() const {
    const std::lock_guard lock(mutex_);
    return {.allocated_bytes = allocated_,
            .reserved_bytes = allocated_ + cached_,
            .process_bytes = allocated_ + cached_,
            .blocks = std::ssize(blocks_),
            .active_bytes = allocated_};
  }
  [[nodiscard]] uint64_t sequence() const {
    const std::lock_guard lock(mutex_);
    return births_;
  }
  [[nodiscard]] std::vector<LiveBlock> live_blocks(uint64_t born_after) const {
    const std::lock_guard lock(mutex_);
    return list(born_after);
  }
  void open(memory::EventRing& ring) {
    const std::lock_guard lock(mutex_);
    rings_.open(ring);
  }
  void close(memory::EventRing& ring) {
    const std::lock_guard lock(mutex_);
    rings_.close(ring);
  }
  [[nodiscard]] memory::EventHistory history(const memory::EventRing& ring) const {
    memory::EventHistory history{.device = kFake};
    history.events.reserve(ring.capacity());
    const std::lock_guard lock(mutex_);
    ring.copy_to(history);
    history.alive = list(0);
    return history;
  }
  void open(memory::PeakRecord& record) {
    const std::lock_guard lock(mutex_);
    fold();
    peaks_.open(record, allocated_);
  }
  void close(memory::PeakRecord& record) {
    const std::lock_guard lock(mutex_);
    fold();
    peaks_.close(record);
  }
  void refresh() {
    const std::lock_guard lock(mutex_);
    fold();
  }

  [[nodiscard]] int64_t empty_cache() {
    const std::lock_guard lock(mutex_);
    return std::exchange(cached_, 0);
  }

  std::optional<int64_t> budget;

 private:
  void fold() {
    peaks_.fold(peak_);
    peak_ = allocated_;
  }
  [[nodiscard]] std::vector<LiveBlock> list(uint64_t born_after) const {
    std::vector<LiveBlock> all;
    for (const auto& [data, block] : blocks_)
      if (block.sequence > born_after) all.push_back(block);
    std::ranges::sort(all, {}, &LiveBlock::sequence);
    return all;
  }

  mutable std::mutex mutex_;
  std::map<void*, LiveBlock> blocks_;
  int64_t allocated_ = 0, peak_ = 0;
  int64_t cached_ =
      0;  // of freed blocks, as a caching allocator counts them; the host has them back
  uint64_t births_ = 0;
  memory::OpenRings rings_;
  memory::OpenPeaks peaks_;
};

/// Never destroyed: tensors of static objects may outlive it.
Book& book() {
  static auto* const only = new Book;
  return *only;
}

struct FakeAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, kFake};
    void* const data = book().take(static_cast<int64_t>(bytes));
    return {data, data, raw_deleter(), kFake};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* data) { book().give(data); };
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to));
  }
};

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::kPrivateUse1> {
  c10::Device exchangeDevice(c10::Device) const override { return kFake; }
  c10::Device getDevice() const override { return kFake; }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, kFake); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  /// The operators of the accelerator draw nothing; LibTorch seeds every generator that it knows.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator generator = at::detail::createCPUGenerator();
    return generator;
  }
};

// ---- operators

at::Tensor with_storage(at::IntArrayRef size, at::ScalarType dtype) {
  const auto bytes = static_cast<size_t>(c10::multiply_integers(size)) * c10::elementSize(dtype);
  auto* const allocator = c10::GetAllocator(c10::kPrivateUse1);
  c10::Storage storage(c10::Storage::use_byte_size_t{}, bytes, allocator->allocate(bytes),
                       allocator, /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(dtype));
  return tensor;
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  int64_t elements = c10::multiply_integers(size) == 0 ? 0 : 1;
  for (size_t i = 0; elements > 0 && i < size.size(); ++i) elements += (size[i] - 1) * stride[i];
  at::Tensor tensor = with_storage({elements}, dtype.value_or(at::kFloat));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return tensor;
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  at::Tensor tensor = with_storage(size, dtype.value_or(at::kFloat));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  if (format && *format != at::MemoryFormat::Contiguous && *format != at::MemoryFormat::Preserve)
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return tensor;
}

/// The same memory as a tensor of the host.
at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.is_privateuseone()) return tensor;
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (from.numel() > 0) on_host(to).copy_(on_host(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar(const at::Tensor& tensor) { return on_host(tensor).item(); }

void by_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar);
  m.impl("view", &at::native::view);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("resize_", &at::native::resize_);
}

// ---- the backend

class FakeBackend final : public memory::DeviceBackend {
 public:
  c10::Device device() const override { return kFake; }
  std::string name() const override { return "an accelerator of the tests"; }
  memory::DeviceTraits traits() const override {
    return {.type = kName, .is_host = false, .autocasts = false};
  }
  std::optional<memory::GeneratorState> generator_state() const override {
    return generator_of_fake_accelerator();
  }
  void set_generator_state(const memory::GeneratorState& state) override {
    generator_of_fake_accelerator() = state;
  }
  memory::Usage usage() const override { return book().usage(); }
  memory::MemoryInfo memory_info() const override {
    return {kMemory, kMemory - usage().allocated_bytes};
  }
  std::optional<double> utilisation() const override { return std::nullopt; }
  void set_budget(std::optional<int64_t> bytes) override {
    if (bytes.value_or(0) < 0) throw ConfigError("memory.set_budget", "the budget is negative");
    book().budget = bytes;
  }
  std::optional<int64_t> budget() const override { return book().budget; }
  void warm() override {}
  memory::Reclaimed reclaim() override {
    const int64_t bytes = book().empty_cache();
    return {bytes, bytes};
  }
  uint64_t sequence() const override { return book().sequence(); }
  std::vector<LiveBlock> live_blocks(uint64_t born_after) const override {
    return book().live_blocks(born_after);
  }
  void open_ring(memory::EventRing& ring) override { book().open(ring); }
  void close_ring(memory::EventRing& ring) override { book().close(ring); }
  memory::EventHistory history(const memory::EventRing& ring) const override {
    return book().history(ring);
  }
  void open_peak(memory::PeakRecord& record) override { book().open(record); }
  void close_peak(memory::PeakRecord& record) override { book().close(record); }
  void refresh_peaks() const override { book().refresh(); }
  double record_cost_ns() const override { return 0; }
};

}  // namespace

memory::GeneratorState& generator_of_fake_accelerator() {
  static memory::GeneratorState state{.seed = 1};
  return state;
}

memory::DeviceBackend& fake_accelerator() {
  static const bool added = [] {
    c10::register_privateuse1_backend(kName);
    at::RegisterPrivateUse1HooksInterface(new Hooks);  // LibTorch keeps it
    c10::SetAllocator(c10::kPrivateUse1, new FakeAllocator);
    memory::add_backend(std::make_unique<FakeBackend>());
    return true;
  }();
  static_cast<void>(added);
  return memory::backend(kFake);
}

}  // namespace tare::testing

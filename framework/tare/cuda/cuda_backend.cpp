// Measures and limits the memory of a CUDA device.
#include "tare/cuda/cuda_backend.h"

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/ones.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <shared_mutex>

#include "tare/cuda/cuda_graph.h"
#include "tare/cuda/nvml.h"
#include "tare/memory/compute_capability.h"
#include "tare/memory/libtorch.h"

namespace tare::cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

memory::Multiprocessors multiprocessors_of(const std::optional<cudaDeviceProp>& card) {
  if (!card) return {};
  return {.count = card->multiProcessorCount, .threads = card->maxThreadsPerMultiProcessor};
}

/// Returns what cuBLAS takes on a card. LibTorch decides once for the process, by the card that is
/// current when it is first asked, so that it is only asked where a card is in use already.
int64_t workspace_bytes(c10::DeviceIndex index, int64_t capability) {
  c10::cuda::OptionalCUDAGuard current;
  bool in_use = std::getenv("CUBLAS_WORKSPACE_CONFIG") != nullptr;  // which holds for any card
  for (c10::DeviceIndex i = 0; i < c10::cuda::device_count(); ++i)
    in_use = in_use || c10::cuda::hasPrimaryContext(i);
  if (!in_use) return memory::default_workspace_bytes(capability);
  // A card without a context must not get one for a question.
  if (c10::cuda::hasPrimaryContext(index)) current.set_index(index);
  return static_cast<int64_t>(at::cuda::getChosenWorkspaceSize());
}

std::string pci_bus_id(c10::DeviceIndex index) {
  char text[32] = {};
  return cudaDeviceGetPCIBusId(text, sizeof(text), index) == cudaSuccess ? text : "";
}

/// Returns the UUID of a card, or of the slice that this process sees as one, without its prefix.
std::string uuid_of(c10::DeviceIndex index) {
  constexpr size_t kDashBefore[] = {4, 6, 8, 10};  // bytes in front of which a dash stands
  cudaDeviceProp known{};
  if (cudaGetDeviceProperties(&known, index) != cudaSuccess) return {};
  std::string text;
  for (size_t i = 0; i < sizeof(known.uuid.bytes); ++i) {
    char digits[3] = {};
    std::snprintf(digits, sizeof(digits), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(known.uuid.bytes[i])));
    text += (std::ranges::find(kDashBefore, i) != std::end(kDashBefore) ? "-" : "");
    text += digits;
  }
  return text;
}

/// The allocator must know its devices before anything can be attached to it or asked of it.
void start(Shared& shared) {
  static std::once_flag once;
  std::call_once(once, [&shared] {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    allocator::attachAllocatorTraceTracker(
        [&shared](const allocator::TraceEntry& entry) { shared.book.note(entry); });
    // Called when even a retry failed, after the allocator's lock is released.
    allocator::attachOutOfMemoryObserver([&shared](int64_t index, size_t asked, size_t, size_t) {
      shared.services.report_out_of_memory({c10::kCUDA, static_cast<c10::DeviceIndex>(index)},
                                           static_cast<int64_t>(asked));
    });
  });
}

/// Marks what cuBLAS and cublasLt keep, by LibTorch's lists of it: a block comes into a list after
/// it was allocated, so its allocation looks like that of a tensor. To be called before
/// the book's blocks are read, and before the lists are cleared. No allocator's lock may be held.
void mark_workspaces(BlockBook& book) {
  std::vector<const void*> kept;
  for (auto* const list : {&at::cuda::cublas_handle_stream_to_workspace(),
                           &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    const std::shared_lock lock(list->mutex);
    for (const auto& [handle_and_stream, memory] : list->map)
      kept.push_back(libtorch::block_of(memory));
  }
  book.mark_workspaces(kept);
}

class CudaBackend final : public memory::DeviceBackend {
 public:
  CudaBackend(c10::DeviceIndex index, Shared& shared)
      : index_(index), shared_(shared), nvml_(pci_bus_id(index), uuid_of(index)) {}

  c10::Device device() const override { return {c10::kCUDA, index_}; }

  std::string name() const override {
    const auto known = properties();
    return known ? known->name : "CUDA device";
  }

  memory::DeviceTraits traits() const override {
    const auto known = properties();
    const int64_t capability = known ? 10 * known->major + known->minor : memory::kAmpere;
    return {.type = "cuda",
            .is_host = false,
            .pins = true,
            .autocasts = true,
            .planner = memory::PlannerTarget{
                .caches = true,
                .cache = cache_settings(),
                .workspace_bytes = workspace_bytes(index_, capability),
                .linear_workspace_bytes =
                    libtorch::shares_workspace()
                        ? 0
                        : static_cast<int64_t>(at::cuda::getCUDABlasLtWorkspaceSize()),
                .prefers_cublaslt =
                    at::globalContext().blasPreferredBackend() == at::BlasBackend::Cublaslt,
                .keeps_workspaces = libtorch::keeps_workspaces(),
                .multiprocessors = multiprocessors_of(known),
                .capability = capability,
                .computes_bfloat16 = capability >= memory::kAmpere}};
  }

  std::optional<memory::GeneratorState> generator_state() const override {
    at::Generator generator = at::globalContext().defaultGenerator(device());
    const std::lock_guard lock(generator.mutex());
    return memory::GeneratorState{generator.current_seed(), generator.get_offset()};
  }
  void set_generator_state(const memory::GeneratorState& state) override {
    at::Generator generator = at::globalContext().defaultGenerator(device());
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(state.seed);
    generator.set_offset(state.offset);
  }

  memory::Usage usage() const override {
    const auto now = stats();
    return {.allocated_bytes = now.allocated_bytes[0].current,
            .reserved_bytes = now.reserved_bytes[0].current,
            .process_bytes = nvml_.process_bytes().value_or(0),
            .blocks = now.allocation[0].current,
            .active_bytes = now.active_bytes[0].current,
            .fragmented_bytes = now.inactive_split_bytes[0].current,
            .retries = now.num_alloc_retries,
            .pinned_bytes = at::getHostAllocator(at::kCUDA)->get_stats().allocated_bytes.current};
  }

  int64_t retries() const override { return stats().num_alloc_retries; }

  memory::MemoryInfo memory_info() const override {
    start(shared_);
    const auto [free, total] = allocator::get()->getMemoryInfo(index_);
    const auto now = stats();
    const int64_t cached = now.reserved_bytes[0].current - now.allocated_bytes[0].current;
    return {static_cast<int64_t>(total), static_cast<int64_t>(free) + cached};
  }

  std::optional<double> utilisation() const override { return nvml_.utilisation(); }

  void set_budget(std::optional<int64_t> bytes) override {
    if (bytes.value_or(0) < 0)
      shared_.services.reject("memory.set_budget",
                              "the budget must be >= 0 bytes, got " + std::to_string(*bytes));
    start(shared_);
    const auto total = static_cast<double>(allocator::get()->getMemoryInfo(index_).second);
    const double fraction =
        bytes ? std::min(1.0, static_cast<double>(*bytes) / total) : given_fraction();
    allocator::setMemoryFraction(fraction, index_);
    const std::lock_guard lock(mutex_);
    budget_ = bytes;
  }

  std::optional<int64_t> budget() const override {
    {
      const std::lock_guard lock(mutex_);
      if (budget_ || given_fraction() >= 1) return budget_;
    }
    const auto total = static_cast<double>(allocator::get()->getMemoryInfo(index_).second);
    return static_cast<int64_t>(given_fraction() * total);
  }

  void warm() override {
    start(shared_);
    static_cast<void>(at::ones({1}, at::TensorOptions(device())));
    synchronize();
  }

  memory::Reclaimed reclaim() override {
    start(shared_);
    const auto before = usage();
    synchronize();
    mark_workspaces(shared_.book);
    at::cuda::clearCublasWorkspaces();
    at::getHostAllocator(at::kCUDA)->empty_cache();
    allocator::emptyCache();
    const auto after = usage();
    return {std::max<int64_t>(0, before.reserved_bytes - after.reserved_bytes),
            std::max<int64_t>(0, before.process_bytes - after.process_bytes)};
  }

  uint64_t sequence() const override {
    start(shared_);
    return shared_.book.sequence();
  }

  std::vector<memory::LiveBlock> live_blocks(uint64_t born_after) const override {
    start(shared_);
    mark_workspaces(shared_.book);
    return shared_.book.live_blocks(index_, born_after);
  }

  void open_ring(memory::EventRing& ring) override {
    start(shared_);
    shared_.book.open_ring(index_, ring);
  }
  void close_ring(memory::EventRing& ring) override { shared_.book.close_ring(index_, ring); }
  memory::EventHistory history(const memory::EventRing& ring) const override {
    mark_workspaces(shared_.book);
    auto history = shared_.book.history(index_, ring);
    history.device = device();
    return history;
  }

  void open_peak(memory::PeakRecord& record) override {
    const std::lock_guard lock(mutex_);
    peaks_.open(record, set_boundary());
  }

  void close_peak(memory::PeakRecord& record) override {
    const std::lock_guard lock(mutex_);
    set_boundary();
    peaks_.close(record);
  }

  void refresh_peaks() const override {
    const std::lock_guard lock(mutex_);
    peaks_.fold(stats().allocated_bytes[0].peak);
  }

  std::unique_ptr<memory::DeviceGraph> make_graph(const memory::DeviceGraph* other) override {
    start(shared_);
    return make_cuda_graph(index_, other);
  }

  double record_cost_ns() const override { return note_cost_ns(shared_.services); }

 private:
  /// Returns the share of the card's memory that the environment leaves to the process.
  static double given_fraction() {
    return c10::cuda::CUDACachingAllocator::CUDAAllocatorConfig::per_process_memory_fraction();
  }

  [[nodiscard]] memory::CacheSettings cache_settings() const {
    using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
    const auto bytes = [](size_t size) {
      return static_cast<int64_t>(
          std::min(size, static_cast<size_t>(memory::CacheSettings::kNoLimit)));
    };
    memory::CacheSettings settings{
        .expandable_segments = Config::use_expandable_segments(),
        .large_segment_bytes = bytes(Config::large_segment_size()),
        .max_split_bytes = bytes(Config::max_split_size()),
        .max_rounding_bytes = bytes(Config::max_non_split_rounding_size()),
        .collects_garbage_above = Config::garbage_collection_threshold()};
    for (const size_t divisions : Config::roundup_power2_divisions())
      settings.roundup_divisions.push_back(static_cast<int64_t>(divisions));
    settings.by_fraction = budget().has_value();
    return settings;
  }

  /// Returns the properties of the card; unset: the driver does not answer.
  std::optional<cudaDeviceProp> properties() const {
    cudaDeviceProp known{};
    if (cudaGetDeviceProperties(&known, index_) != cudaSuccess) return std::nullopt;
    return known;
  }

  c10::CachingDeviceAllocator::DeviceStats stats() const {
    start(shared_);
    return allocator::getDeviceStats(index_);
  }

  /// Folds the allocator's peak into the open scopes and starts it anew; returns the bytes
  /// allocated now.
  int64_t set_boundary() {
    const auto allocated = stats().allocated_bytes[0];
    peaks_.fold(allocated.peak);
    allocator::resetPeakStats(index_);
    return allocated.current;
  }

  void synchronize() const {
    const c10::cuda::CUDAGuard guard(index_);
    c10::cuda::device_synchronize();
  }

  c10::DeviceIndex index_;
  Shared& shared_;
  NvmlDevice nvml_;
  mutable std::mutex mutex_;
  mutable memory::OpenPeaks peaks_;
  std::optional<int64_t> budget_;
};

}  // namespace

std::unique_ptr<memory::DeviceBackend> make_cuda_backend(c10::DeviceIndex index, Shared& shared) {
  return std::make_unique<CudaBackend>(index, shared);
}

}  // namespace tare::cuda

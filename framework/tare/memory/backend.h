// DeviceBackend: one interface to the memory of every device. The host implements it with Tare's
// own allocator, CUDA with LibTorch's caching allocator; tests/contract/backend_contract.h says
// what each must do, docs/extending.md how to add another.
//
// Three figures are kept apart and never added to one another:
//   - allocated: bytes of live tensor storages; host: as requested, CUDA: rounded up to 512
//   - reserved: bytes the tensor allocator holds, live or cached; host: equal to allocated
//   - process: bytes the process holds for any purpose; host: resident set, CUDA: NVML's figure
#pragma once

#include <c10/core/Device.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tare::memory {

/// Memory in use on one device, in bytes; a value.
struct Usage {
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t process_bytes = 0;  ///< 0 where it cannot be read
  int64_t blocks = 0;         ///< live blocks, which `allocated_bytes` sums

  // Of a caching allocator. The host caches nothing: active is equal to allocated, the others 0.
  int64_t active_bytes = 0;      ///< allocated, or freed while another stream still uses it
  int64_t fragmented_bytes = 0;  ///< free, but in segments that hold live blocks: stays reserved
  int64_t retries = 0;           ///< allocations that needed the cache given back first, so far
};

/// Memory of the whole machine or card, other processes included, in bytes.
struct MemoryInfo {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;  ///< still allocatable; host: without swapping, within the cgroup
};

/// A block that is alive.
struct LiveBlock {
  const void* data = nullptr;
  int64_t bytes = 0;
  uint64_t sequence = 0;  ///< number in order of allocation on its device, from 1
  uint32_t phase = 0;     ///< id of the phase it was allocated in, see phase.h
  uint32_t stack = 0;     ///< number of the call stack, 0 outside CallSites; see call_stack.h
  uint32_t step = 0;      ///< number of the newest step at that time, see phase.h
};

class EventRing;      // event_ring.h
struct EventHistory;  // event_history.h

/// What reclaim() returned to the system, in bytes.
struct Reclaimed {
  int64_t reserved_bytes = 0;
  int64_t process_bytes = 0;
};

/// One open measurement of a peak, owned by a PeakScope and kept up to date by the backend.
struct PeakRecord {
  int64_t start_bytes = 0;
  int64_t peak_bytes = 0;
  PeakRecord* next = nullptr;
};

/// The open peak scopes of one device. The allocator keeps a single peak since the last boundary;
/// opening, closing or reading any scope folds that peak into every open one. So scopes may nest
/// and overlap in any order, and an allocation costs the same however many are open. Not
/// thread-safe: the backend's lock guards it.
class OpenPeaks {
 public:
  void fold(int64_t peak_bytes) {
    for (auto* record = first_; record; record = record->next)
      record->peak_bytes = std::max(record->peak_bytes, peak_bytes);
  }
  void open(PeakRecord& record, int64_t current_bytes) {
    record = {current_bytes, current_bytes, first_};
    first_ = &record;
  }
  void close(PeakRecord& record) {
    auto** link = &first_;
    while (*link && *link != &record) link = &(*link)->next;
    if (*link) *link = record.next;
  }

 private:
  PeakRecord* first_ = nullptr;
};

/// The memory of one device. Thread-safe. Calls do not wait for the device unless they say so.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  [[nodiscard]] virtual c10::Device device() const = 0;
  /// Name of the hardware: "NVIDIA H200", "AMD EPYC 9654 96-Core Processor".
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Usage usage() const = 0;
  /// Usage::retries alone, which costs less.
  [[nodiscard]] virtual int64_t retries() const { return usage().retries; }
  [[nodiscard]] virtual MemoryInfo memory_info() const = 0;
  /// Share of recent time in which the device was busy, 0 to 1; unset if it cannot be read.
  [[nodiscard]] virtual std::optional<double> utilisation() const = 0;

  /// Limits the tensor bytes of this process: an allocation above it throws OutOfMemory (CUDA:
  /// LibTorch's own type, see classify in oom.h). Host: limits allocated bytes, exactly. CUDA:
  /// limits *reserved* bytes; the context is not counted. Unset: no limit. Throws ConfigError for a
  /// negative budget.
  virtual void set_budget(std::optional<int64_t> bytes) = 0;
  [[nodiscard]] virtual std::optional<int64_t> budget() const = 0;

  /// Creates the device's context and loads its libraries, so that a baseline taken afterwards
  /// includes them. Waits for the device.
  virtual void warm() = 0;
  /// Returns cached memory to the system: malloc_trim on the host; allocator, pinned-memory and
  /// workspace caches on CUDA, where it waits for the device. Live tensors are not touched.
  virtual Reclaimed reclaim() = 0;

  /// The number of the newest block so far: live_blocks(sequence()) lists what is allocated from
  /// now on.
  [[nodiscard]] virtual uint64_t sequence() const = 0;
  /// Live blocks with a number above `born_after`, oldest first.
  [[nodiscard]] virtual std::vector<LiveBlock> live_blocks(uint64_t born_after = 0) const = 0;

  /// From now on the device's allocations and frees are added to the ring, until it is closed.
  virtual void open_ring(EventRing& ring) = 0;
  virtual void close_ring(EventRing& ring) = 0;
  /// The ring's events and the live blocks after them, taken at the same moment.
  [[nodiscard]] virtual EventHistory history(const EventRing& ring) const = 0;

  /// Starts and ends a measurement; `record` must outlive it. PeakScope calls these.
  virtual void open_peak(PeakRecord& record) = 0;
  virtual void close_peak(PeakRecord& record) = 0;
  virtual void refresh_peaks() const = 0;  ///< brings every open record up to date

  /// Nanoseconds that the records of this interface add to an allocation and its free on this
  /// machine now, on top of the allocator's own work: measured in a few milliseconds, on blocks of
  /// its own, which count in no figure.
  [[nodiscard]] virtual double record_cost_ns() const = 0;
};

/// The backend of a device; kCPU is the host, a CUDA device without index is the first. Throws
/// DeviceError if there is no such device or its backend is not loaded (see init.h).
[[nodiscard]] DeviceBackend& backend(c10::Device device);
/// Every device that has a backend: the host first, then CUDA devices by index.
[[nodiscard]] std::vector<c10::Device> devices();
/// Limits the bytes of all host tensors, exactly; see DeviceBackend::set_budget.
void set_host_budget(std::optional<int64_t> bytes);
/// Registers a backend, which then lives until the process ends. Not for users: init() and device
/// libraries call it.
void add_backend(std::unique_ptr<DeviceBackend> backend);

/// Measures the peak of allocated bytes on one device from its construction on. Scopes may nest and
/// overlap, and an allocation costs the same however many are open.
class PeakScope {
 public:
  explicit PeakScope(c10::Device device);
  ~PeakScope();
  PeakScope(const PeakScope&) = delete;
  PeakScope& operator=(const PeakScope&) = delete;

  /// Highest allocated bytes of the device so far in this scope; includes what was alive before.
  [[nodiscard]] int64_t peak_bytes() const;
  /// The same, less what was allocated when the scope opened; never negative.
  [[nodiscard]] int64_t peak_above_start_bytes() const;
  /// Allocated bytes when the scope opened.
  [[nodiscard]] int64_t start_bytes() const { return record_.start_bytes; }

 private:
  DeviceBackend& backend_;
  mutable PeakRecord record_;
};

}  // namespace tare::memory

// DeviceBackend: one interface to the memory of every device. The host implements it with Tare's
// own allocator, CUDA with LibTorch's caching allocator; tests/contract/backend_contract.h says
// what each must do, docs/extending.md how to add another.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/device_graph.h"
#include "tare/memory/device_traits.h"
#include "tare/memory/live_block.h"
#include "tare/memory/peak_record.h"
#include "tare/memory/usage.h"

namespace tare::memory {

class EventRing;      // event_ring.h
struct EventHistory;  // event_history.h

/// Counts and limits a device's memory. Thread-safe. A call waits for the device if it says so.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  /// Returns the device whose memory the backend counts.
  [[nodiscard]] virtual c10::Device device() const = 0;
  /// Returns the name of the hardware: "NVIDIA H200", "AMD EPYC 9654 96-Core Processor".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns what the device is and can do.
  [[nodiscard]] virtual DeviceTraits traits() const = 0;
  /// Returns the state of the device's default random generator; unset: the device has none beside
  /// the host's.
  [[nodiscard]] virtual std::optional<GeneratorState> generator_state() const = 0;
  /// Restores what generator_state() returned.
  virtual void set_generator_state(const GeneratorState& state) = 0;
  /// Returns the figures of this moment, consistent with each other.
  [[nodiscard]] virtual Usage usage() const = 0;
  /// Returns Usage::retries alone, which costs less.
  [[nodiscard]] virtual int64_t retries() const { return usage().retries; }
  /// Returns the memory of the whole machine or card at this moment.
  [[nodiscard]] virtual MemoryInfo memory_info() const = 0;
  /// Returns the share of recent time in which the device was busy, 0 to 1; unset if it cannot be
  /// read.
  [[nodiscard]] virtual std::optional<double> utilisation() const = 0;

  /// Limits the tensor bytes of this process: an allocation above it throws OutOfMemory (CUDA:
  /// LibTorch's own type, see classify in oom.h). Host: limits allocated bytes, exactly. CUDA:
  /// limits *reserved* bytes; the context is not counted. Unset: no limit. Throws ConfigError for a
  /// negative budget.
  virtual void set_budget(std::optional<int64_t> bytes) = 0;
  /// Returns the budget that was set last; unset: no limit.
  [[nodiscard]] virtual std::optional<int64_t> budget() const = 0;

  /// Creates the device's context and loads its libraries, so that a baseline taken afterwards
  /// includes them. Waits for the device.
  virtual void warm() = 0;
  /// Returns cached memory to the system: malloc_trim on the host; allocator, pinned-memory and
  /// workspace caches on CUDA, where it waits for the device. Live tensors are not touched.
  virtual Reclaimed reclaim() = 0;

  /// Returns the number of the newest block so far: live_blocks(sequence()) lists what is allocated
  /// from now on.
  [[nodiscard]] virtual uint64_t sequence() const = 0;
  /// Returns the live blocks with a number above `born_after`, oldest first.
  [[nodiscard]] virtual std::vector<LiveBlock> live_blocks(uint64_t born_after = 0) const = 0;

  /// Adds the device's allocations and frees to the ring from now on, until it is closed.
  virtual void open_ring(EventRing& ring) = 0;
  /// Ends what open_ring() began.
  virtual void close_ring(EventRing& ring) = 0;
  /// Returns the ring's events and the live blocks after them, taken at the same moment.
  [[nodiscard]] virtual EventHistory history(const EventRing& ring) const = 0;

  /// Starts and ends a measurement; `record` must outlive it. PeakScope calls these.
  virtual void open_peak(PeakRecord& record) = 0;
  /// Ends what open_peak() began; `record` keeps its last figures.
  virtual void close_peak(PeakRecord& record) = 0;
  virtual void refresh_peaks() const = 0;  ///< brings every open record up to date

  /// Makes a graph without work, which shares the memory of `other`, so that both are never needed
  /// at the same time; nullptr: shares none. Returns nullptr: the device records no work.
  [[nodiscard]] virtual std::unique_ptr<DeviceGraph> make_graph(const DeviceGraph* other) {
    static_cast<void>(other);
    return nullptr;
  }

  /// Measures the nanoseconds that the records of this interface add to an allocation and its free
  /// on this machine now, on top of the allocator's own work. Takes a few milliseconds, with blocks
  /// that count in no figure.
  [[nodiscard]] virtual double record_cost_ns() const = 0;
};

}  // namespace tare::memory

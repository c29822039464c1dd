// Gives the memory of the host the interface of a device.
#include "tare/memory/host_backend.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <malloc.h>

#include "tare/memory/event_history.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/machine.h"
#include "tare/memory/native_types.h"
#include "tare/memory/process_limit.h"

namespace tare::memory {
namespace {

class HostBackend final : public DeviceBackend {
 public:
  c10::Device device() const override { return c10::kCPU; }
  std::string name() const override { return processor_name(); }
  DeviceTraits traits() const override {
    return {.planner = PlannerTarget{.computes_bfloat16 = processor_computes(c10::kBFloat16)}};
  }
  std::optional<GeneratorState> generator_state() const override { return std::nullopt; }
  void set_generator_state(const GeneratorState&) override {}

  Usage usage() const override {
    const auto counters = host_allocator::counters();
    return {.allocated_bytes = counters.live_bytes,
            .reserved_bytes = counters.live_bytes,
            .process_bytes = resident_bytes(),
            .blocks = counters.live_blocks,
            .active_bytes = counters.live_bytes};
  }
  int64_t retries() const override { return 0; }
  MemoryInfo memory_info() const override {
    MemoryInfo info = machine_memory();
    const auto limit = process_memory_limit();
    if (!limit) return info;
    const int64_t left = std::max<int64_t>(0, *limit - resident_bytes());
    return {std::min(info.total_bytes, *limit), std::min(info.available_bytes, left)};
  }
  std::optional<double> utilisation() const override { return processor_utilisation(); }

  void set_budget(std::optional<int64_t> bytes) override { host_allocator::set_budget(bytes); }
  std::optional<int64_t> budget() const override { return host_allocator::budget(); }

  void warm() override { static_cast<void>(at::ones({1})); }
  Reclaimed reclaim() override {
    const int64_t before = resident_bytes();
    malloc_trim(0);
    return {0, std::max<int64_t>(0, before - resident_bytes())};
  }

  uint64_t sequence() const override { return host_allocator::counters().births; }
  std::vector<LiveBlock> live_blocks(uint64_t born_after) const override {
    return host_allocator::live_blocks(born_after);
  }

  void open_ring(EventRing& ring) override { host_allocator::open_ring(ring); }
  void close_ring(EventRing& ring) override { host_allocator::close_ring(ring); }
  EventHistory history(const EventRing& ring) const override {
    return host_allocator::history(ring);
  }

  void open_peak(PeakRecord& record) override { host_allocator::open_peak(record); }
  void close_peak(PeakRecord& record) override { host_allocator::close_peak(record); }
  void refresh_peaks() const override { host_allocator::refresh_peaks(); }

  double record_cost_ns() const override { return host_allocator::record_cost_ns(); }
};

}  // namespace

std::unique_ptr<DeviceBackend> make_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace tare::memory

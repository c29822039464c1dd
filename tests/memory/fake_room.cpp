// A room (see room.h) with one device that holds nothing: what init() does with a room is seen
// without a GPU. TARE_FAKE_ROOM names what it does.
#include "tare/memory/room.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <cstdlib>
#include <string>

#ifdef TARE_FAKE_ROOM_MARKS_PHASES
#include "tare/cuda/nvtx.h"
#endif
#include "tare/memory/event_history.h"

namespace tare::memory {
namespace {

std::string role() {
  const char* text = std::getenv("TARE_FAKE_ROOM");
  return text ? text : "";
}

class Hooks final : public at::CUDAHooksInterface {
 public:
  bool hasCUDA() const override { return role() != "no_device"; }
};

// In the place of those that LibTorch's CUDA library registers when it is loaded.
[[maybe_unused]] const bool registered = [] {
  at::CUDAHooksRegistry()->Register("CUDAHooks", [](at::CUDAHooksArgs) {
    return std::unique_ptr<at::CUDAHooksInterface>(std::make_unique<Hooks>());
  });
  return true;
}();

class EmptyBackend final : public DeviceBackend {
 public:
  c10::Device device() const override { return {c10::kCUDA, 0}; }
  std::string name() const override { return "no hardware"; }
  Usage usage() const override { return {}; }
  MemoryInfo memory_info() const override { return {}; }
  std::optional<double> utilisation() const override { return {}; }
  void set_budget(std::optional<int64_t>) override {}
  std::optional<int64_t> budget() const override { return {}; }
  void warm() override {}
  Reclaimed reclaim() override { return {}; }
  uint64_t sequence() const override { return 0; }
  std::vector<LiveBlock> live_blocks(uint64_t) const override { return {}; }
  void open_ring(EventRing&) override {}
  void close_ring(EventRing&) override {}
  EventHistory history(const EventRing&) const override { return {}; }
  void open_peak(PeakRecord&) override {}
  void close_peak(PeakRecord&) override {}
  void refresh_peaks() const override {}
  double record_cost_ns() const override { return 0; }
};

}  // namespace
}  // namespace tare::memory

extern "C" __attribute__((visibility("default"))) int tare_open_room(
    int version, tare::memory::HostServices& services) {
  const std::string role = tare::memory::role();
  if (role == "older") return version - 1;
  if (role == "rejects") services.reject("fake_room", "the device is too old");
  services.warn("in phase " + std::to_string(services.current_phase()) + ", step " +
                std::to_string(services.current_step()) + ", stack " +
                std::to_string(services.capture_stack()));
#ifdef TARE_FAKE_ROOM_MARKS_PHASES
  tare::cuda::mark_phases(services);
#endif
  services.add_backend(std::make_unique<tare::memory::EmptyBackend>());
  return version;
}

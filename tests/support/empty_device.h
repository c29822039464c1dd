// A device that holds nothing: the base of stand-ins for hardware.
#pragma once

#include <string>
#include <utility>

#include "tare/memory/backend.h"
#include "tare/memory/event_history.h"

namespace tare::testing {

class EmptyDevice : public memory::DeviceBackend {
 public:
  EmptyDevice(c10::Device device, std::string name) : device_(device), name_(std::move(name)) {}

  c10::Device device() const override { return device_; }
  std::string name() const override { return name_; }
  memory::DeviceTraits traits() const override {
    return {.type = c10::DeviceTypeName(device_.type(), /*lower_case=*/true),
            .is_host = device_.is_cpu()};
  }
  std::optional<memory::GeneratorState> generator_state() const override { return {}; }
  void set_generator_state(const memory::GeneratorState&) override {}
  memory::Usage usage() const override { return {}; }
  memory::MemoryInfo memory_info() const override { return {}; }
  std::optional<double> utilisation() const override { return {}; }
  void set_budget(std::optional<int64_t>) override {}
  std::optional<int64_t> budget() const override { return {}; }
  void warm() override {}
  memory::Reclaimed reclaim() override { return {}; }
  uint64_t sequence() const override { return 0; }
  std::vector<memory::LiveBlock> live_blocks(uint64_t) const override { return {}; }
  void open_ring(memory::EventRing&) override {}
  void close_ring(memory::EventRing&) override {}
  memory::EventHistory history(const memory::EventRing&) const override { return {}; }
  void open_peak(memory::PeakRecord&) override {}
  void close_peak(memory::PeakRecord&) override {}
  void refresh_peaks() const override {}
  double record_cost_ns() const override { return 0; }

 private:
  c10::Device device_;
  std::string name_;
};

}  // namespace tare::testing

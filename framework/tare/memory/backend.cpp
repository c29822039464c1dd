// Registers the devices' backends, and measures peaks on them.
#include "tare/memory/backend.h"

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/host_backend.h"
#include "tare/memory/withdrawn.h"

namespace tare::memory {
namespace {

using Backends = std::vector<std::unique_ptr<DeviceBackend>>;

Backends with_host() {
  Backends list;
  list.push_back(make_host_backend());
  return list;
}

/// Never destroyed: guards in static objects may still ask.
Backends& backends() {
  static Immortal<Backends> list(with_host());
  return *list;
}

}  // namespace

DeviceBackend& backend(c10::Device device) {
  for (const auto& candidate : backends()) {
    const auto own = candidate->device();
    const bool any_index = device.is_cpu() || !device.has_index();
    if (own.type() == device.type() && (any_index || own.index() == device.index()))
      return *candidate;
  }
  std::string there;
  for (const auto& candidate : backends())
    there += (there.empty() ? "" : ", ") + candidate->device().str();
  throw DeviceError("memory.backend", "no device " + device.str() + ", there is: " + there +
                                          "; CUDA needs tare::init() first, and a driver");
}

std::vector<c10::Device> devices() {
  std::vector<c10::Device> list;
  for (const auto& candidate : backends())
    if (!is_withdrawn(candidate->device())) list.push_back(candidate->device());
  return list;
}

void set_host_budget(std::optional<int64_t> bytes) { backend(c10::kCPU).set_budget(bytes); }

void add_backend(std::unique_ptr<DeviceBackend> backend) {
  backends().push_back(std::move(backend));
}

PeakScope::PeakScope(c10::Device device) : backend_(backend(device)) {
  backend_.open_peak(record_);
}

PeakScope::~PeakScope() { backend_.close_peak(record_); }

int64_t PeakScope::peak_bytes() const {
  backend_.refresh_peaks();
  return record_.peak_bytes;
}

int64_t PeakScope::peak_above_start_bytes() const { return peak_bytes() - start_bytes(); }

}  // namespace tare::memory

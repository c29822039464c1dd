#include "tare/cuda/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

namespace tare::cuda {
namespace {

// Layouts and codes of nvml.h's stable interface.
struct Utilization {
  unsigned gpu_percent, memory_percent;
};
struct ProcessInfo {
  unsigned process;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;

/// The library, initialised once and never shut down; null members where it is not there.
struct Nvml {
  int (*init)() = nullptr;
  int (*handle_by_bus_id)(const char*, void**) = nullptr;
  int (*utilization)(void*, Utilization*) = nullptr;
  int (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;
  bool ready = false;

  Nvml() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return;
    find(library, "nvmlInit_v2", init);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", handle_by_bus_id);
    find(library, "nvmlDeviceGetUtilizationRates", utilization);
    find(library, "nvmlDeviceGetComputeRunningProcesses_v3", processes);
    ready = init && handle_by_bus_id && utilization && processes && init() == kSuccess;
  }

  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }
};

const Nvml& nvml() {
  static const Nvml instance;
  return instance;
}

}  // namespace

NvmlDevice::NvmlDevice(const std::string& pci_bus_id) {
  if (nvml().ready && nvml().handle_by_bus_id(pci_bus_id.c_str(), &handle_) != kSuccess)
    handle_ = nullptr;
}

std::optional<double> NvmlDevice::utilisation() const {
  Utilization now{};
  if (!handle_ || nvml().utilization(handle_, &now) != kSuccess) return {};
  return now.gpu_percent / 100.0;
}

std::optional<int64_t> NvmlDevice::process_bytes() const {
  if (!handle_) return {};
  std::vector<ProcessInfo> list(16);
  auto count = static_cast<unsigned>(list.size());
  int result = nvml().processes(handle_, &count, list.data());
  if (result == kInsufficientSize) {
    list.resize(count + 16);
    count = static_cast<unsigned>(list.size());
    result = nvml().processes(handle_, &count, list.data());
  }
  if (result != kSuccess) return {};
  for (unsigned i = 0; i < count; ++i)
    if (list[i].process == static_cast<unsigned>(getpid()))
      return static_cast<int64_t>(list[i].used_bytes);
  return {};
}

}  // namespace tare::cuda

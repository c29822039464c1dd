// Loads NVML at run time, and asks it about cards and processes.
#include "tare/cuda/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace tare::cuda {
namespace {

// Layouts and codes of nvml.h's stable interface.
struct Utilization {
  unsigned gpu_percent, memory_percent;
};
struct Memory {
  unsigned long long total_bytes, free_bytes, used_bytes;
};
struct ProcessInfo {
  unsigned process;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kOfChip = 0;  // NVML_TEMPERATURE_GPU
constexpr auto kNotAvailable = std::numeric_limits<unsigned long long>::max();
constexpr unsigned kTextBytes = 96;

/// The library, initialised once and never shut down; null members where it is not there.
struct Nvml {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, void**) = nullptr;
  int (*handle_by_bus_id)(const char*, void**) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*memory)(void*, Memory*) = nullptr;
  int (*utilization)(void*, Utilization*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;  // NVIDIA means to drop it some day
  int (*processes)(void*, unsigned*, ProcessInfo*) = nullptr;
  bool ready = false;

  Nvml() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return;
    find(library, "nvmlInit_v2", init);
    find(library, "nvmlSystemGetDriverVersion", driver_version);
    find(library, "nvmlDeviceGetCount_v2", count);
    find(library, "nvmlDeviceGetHandleByIndex_v2", handle_by_index);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", handle_by_bus_id);
    find(library, "nvmlDeviceGetName", name);
    find(library, "nvmlDeviceGetUUID", uuid);
    find(library, "nvmlDeviceGetMemoryInfo", memory);
    find(library, "nvmlDeviceGetUtilizationRates", utilization);
    find(library, "nvmlDeviceGetTemperature", temperature);
    find(library, "nvmlDeviceGetComputeRunningProcesses_v3", processes);
    ready = init && driver_version && count && handle_by_index && handle_by_bus_id && name &&
            uuid && memory && utilization && processes && init() == kSuccess;
  }

  template <class Function>
  static void find(void* library, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
  }
};

const Nvml& nvml() {
  static const Nvml instance;
  return instance;
}

int64_t signed_bytes(unsigned long long bytes) {
  return static_cast<int64_t>(
      std::min<unsigned long long>(bytes, std::numeric_limits<int64_t>::max()));
}

}  // namespace

NvmlDevice::NvmlDevice(const std::string& pci_bus_id) {
  if (nvml().ready && nvml().handle_by_bus_id(pci_bus_id.c_str(), &handle_) != kSuccess)
    handle_ = nullptr;
}

std::vector<NvmlDevice> NvmlDevice::all() {
  std::vector<NvmlDevice> devices;
  unsigned count = 0;
  if (!nvml().ready || nvml().count(&count) != kSuccess) return devices;
  for (unsigned i = 0; i < count; ++i) {
    void* handle = nullptr;
    if (nvml().handle_by_index(i, &handle) == kSuccess) devices.push_back(NvmlDevice(handle));
  }
  return devices;
}

std::string NvmlDevice::name() const {
  char text[kTextBytes + 1] = {};
  return handle_ && nvml().name(handle_, text, kTextBytes) == kSuccess ? text : "";
}

std::string NvmlDevice::uuid() const {
  char text[kTextBytes + 1] = {};
  return handle_ && nvml().uuid(handle_, text, kTextBytes) == kSuccess ? text : "";
}

std::optional<NvmlMemory> NvmlDevice::memory() const {
  Memory now{};
  if (!handle_ || nvml().memory(handle_, &now) != kSuccess) return {};
  return NvmlMemory{signed_bytes(now.total_bytes), signed_bytes(now.used_bytes),
                    signed_bytes(now.free_bytes)};
}

std::optional<double> NvmlDevice::utilisation() const {
  Utilization now{};
  if (!handle_ || nvml().utilization(handle_, &now) != kSuccess) return {};
  return now.gpu_percent / 100.0;
}

std::optional<int64_t> NvmlDevice::temperature() const {
  unsigned degrees = 0;
  if (!handle_ || !nvml().temperature || nvml().temperature(handle_, kOfChip, &degrees) != kSuccess)
    return {};
  return degrees;
}

std::vector<NvmlProcess> NvmlDevice::processes() const {
  if (!handle_) return {};
  std::vector<ProcessInfo> list(16);
  auto count = static_cast<unsigned>(list.size());
  int result = nvml().processes(handle_, &count, list.data());
  if (result == kInsufficientSize) {
    list.resize(count + 16);
    count = static_cast<unsigned>(list.size());
    result = nvml().processes(handle_, &count, list.data());
  }
  std::vector<NvmlProcess> all;
  if (result != kSuccess) return all;
  list.resize(std::min<size_t>(count, list.size()));
  for (const auto& info : list) {
    auto& process = all.emplace_back(NvmlProcess{.id = info.process});
    if (info.used_bytes != kNotAvailable) process.bytes = signed_bytes(info.used_bytes);
  }
  return all;
}

std::optional<int64_t> NvmlDevice::process_bytes() const {
  for (const auto& process : processes())
    if (process.id == getpid()) return process.bytes;
  return {};
}

std::string nvml_driver_version() {
  char text[kTextBytes + 1] = {};
  return nvml().ready && nvml().driver_version(text, kTextBytes) == kSuccess ? text : "";
}

}  // namespace tare::cuda

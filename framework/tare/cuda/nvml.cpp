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
constexpr int kGpuIsLost = 15;
constexpr int kOfChip = 0;  // NVML_TEMPERATURE_GPU
constexpr auto kNotAvailable = std::numeric_limits<unsigned long long>::max();
constexpr unsigned kTextBytes = 96;

/// Holds the functions of the library, which is initialised once and never shut down. They are null
/// where it is not there.
struct Nvml {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, void**) = nullptr;
  int (*handle_by_bus_id)(const char*, void**) = nullptr;
  int (*handle_by_uuid)(const char*, void**) = nullptr;
  int (*mig_mode)(void*, unsigned*, unsigned*) = nullptr;  // older drivers have no slices
  int (*most_slices)(void*, unsigned*) = nullptr;
  int (*slice_by_index)(void*, unsigned, void**) = nullptr;
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
    find(library, "nvmlDeviceGetHandleByUUID", handle_by_uuid);
    find(library, "nvmlDeviceGetMigMode", mig_mode);
    find(library, "nvmlDeviceGetMaxMigDeviceCount", most_slices);
    find(library, "nvmlDeviceGetMigDeviceHandleByIndex", slice_by_index);
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

/// Returns the slices into which MIG divides a card; empty: the card is whole.
std::vector<void*> slices_of(void* card) {
  std::vector<void*> slices;
  unsigned divided = 0, pending = 0, most = 0;
  if (!nvml().mig_mode || !nvml().most_slices || !nvml().slice_by_index) return slices;
  if (nvml().mig_mode(card, &divided, &pending) != kSuccess || divided == 0) return slices;
  if (nvml().most_slices(card, &most) != kSuccess) return slices;
  for (unsigned i = 0; i < most; ++i) {
    void* slice = nullptr;
    if (nvml().slice_by_index(card, i, &slice) == kSuccess) slices.push_back(slice);
  }
  return slices;
}

std::string uuid_of(void* handle) {
  char text[kTextBytes + 1] = {};
  return handle && nvml().uuid(handle, text, kTextBytes) == kSuccess ? text : "";
}

}  // namespace

NvmlDevice::NvmlDevice(const std::string& pci_bus_id, const std::string& uuid) {
  if (!nvml().ready) return;
  if (nvml().handle_by_bus_id(pci_bus_id.c_str(), &card_) != kSuccess) card_ = nullptr;
  const bool may_be_slice = !uuid.empty() && nvml().handle_by_uuid;
  if (!may_be_slice || nvml().handle_by_uuid(("MIG-" + uuid).c_str(), &handle_) != kSuccess)
    handle_ = card_;
}

std::vector<NvmlDevice> NvmlDevice::all() {
  std::vector<NvmlDevice> devices;
  unsigned count = 0;
  if (!nvml().ready || nvml().count(&count) != kSuccess) return devices;
  for (unsigned i = 0; i < count; ++i) {
    void* card = nullptr;
    if (nvml().handle_by_index(i, &card) != kSuccess) continue;
    const auto slices = slices_of(card);
    for (size_t s = 0; s < slices.size(); ++s) devices.push_back(NvmlDevice(slices[s], card, i, s));
    if (slices.empty()) devices.push_back(NvmlDevice(card, card, i));
  }
  return devices;
}

std::vector<size_t> NvmlDevice::lost_cards() {
  std::vector<size_t> numbers;
  unsigned count = 0;
  if (!nvml().ready || nvml().count(&count) != kSuccess) return numbers;
  for (unsigned i = 0; i < count; ++i) {
    void* card = nullptr;
    if (nvml().handle_by_index(i, &card) == kGpuIsLost) numbers.push_back(i);
  }
  return numbers;
}

std::string NvmlDevice::name() const {
  char text[kTextBytes + 1] = {};
  return handle_ && nvml().name(handle_, text, kTextBytes) == kSuccess ? text : "";
}

std::string NvmlDevice::id() const {
  const std::string card = std::to_string(card_number_);
  return slice_ ? "mig:" + card + '.' + std::to_string(*slice_) : "cuda:" + card;
}

std::string NvmlDevice::uuid() const { return uuid_of(handle_); }

std::string NvmlDevice::uuid_of_card() const { return uuid_of(card_); }

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

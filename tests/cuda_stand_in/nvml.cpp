// Stands in for the management library of the driver. Layouts and codes are those of nvml.h.
#include <cstdio>
#include <cstring>

#include "cards.h"
#include "exported.h"

using namespace stand_in;

namespace {

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct ProcessInfo {
  unsigned process;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
constexpr int kSuccess = 0, kNotFound = 6, kInsufficientSize = 7, kNotSupported = 3;

/// A handle is the address of a card.
void* handle(int index) { return const_cast<Card*>(&any_card(index)); }
int index_of(const void* handle) {
  return static_cast<int>(static_cast<const Card*>(handle) - &any_card(0));
}

struct List {
  ProcessInfo* room;
  unsigned here, size;
  unsigned long long used;
};
List processes(int index, ProcessInfo* room, unsigned size) {
  List list{room, 0, size, 0};
  for_each_process(
      index,
      [](pid_t process, size_t bytes, void* data) {
        auto& l = *static_cast<List*>(data);
        if (l.here < l.size) l.room[l.here] = {static_cast<unsigned>(process), bytes, 0, 0};
        ++l.here;
        l.used += bytes;
      },
      &list);
  return list;
}

}  // namespace

EXPORTED int nvmlInit_v2() { return kSuccess; }
EXPORTED int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "580.00.00");
  return kSuccess;
}
EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(all_count());
  return kSuccess;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** result) {
  *result = handle(static_cast<int>(index));
  return kSuccess;
}
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** result) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(id, "%x:%x", &domain, &bus) != 2) return kNotFound;
  for (int i = 0; i < all_count(); ++i)
    if (any_card(i).bus == static_cast<int>(bus)) return *result = handle(i), kSuccess;
  return kNotFound;
}
EXPORTED int nvmlDeviceGetName(void* of, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "%s", any_card(index_of(of)).name);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetUUID(void* of, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "%s", any_card(index_of(of)).uuid_text);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetMemoryInfo(void* of, Memory* memory) {
  const auto used = processes(index_of(of), nullptr, 0).used;
  const unsigned long long total = any_card(index_of(of)).bytes;
  *memory = {total, total - used, used};
  return kSuccess;
}
EXPORTED int nvmlDeviceGetUtilizationRates(void*, Utilization* rates) {
  *rates = {0, 0};
  return kSuccess;
}
EXPORTED int nvmlDeviceGetTemperature(void*, int, unsigned* degrees) {
  *degrees = 40;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* of, unsigned* count, ProcessInfo* list) {
  const auto all = processes(index_of(of), list, *count);
  const bool enough = all.here <= *count;
  *count = all.here;
  return enough ? kSuccess : kInsufficientSize;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses(void* of, unsigned* count, ProcessInfo* list) {
  return nvmlDeviceGetComputeRunningProcesses_v3(of, count, list);
}
EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) { return kNotSupported; }
EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return kNotSupported; }
EXPORTED int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return kNotSupported; }

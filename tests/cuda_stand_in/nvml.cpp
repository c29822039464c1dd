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
constexpr int kSuccess = 0, kNotSupported = 3, kNoPermission = 4, kNotFound = 6,
              kInsufficientSize = 7, kLost = 15;

/// A handle is the address of a card or a slice.
void* handle(int place) { return const_cast<Card*>(&at_place(place)); }
const Card& at(const void* handle) { return *static_cast<const Card*>(handle); }
int place_of(const void* handle) {
  return static_cast<int>(static_cast<const Card*>(handle) - &at_place(0));
}
bool is_lost(const void* handle) { return is_lost_at(place_of(handle)); }

/// Finds the place of the first card that `is` holds for; -1: there is none.
template <class Predicate>
int find_place(Predicate is) {
  for (int i = 0; i < place_count(); ++i)
    if (is(at_place(i))) return i;
  return -1;
}
int give(int place, void** result) {
  if (place < 0) return kNotFound;
  if (is_lost_at(place)) return kLost;
  return *result = handle(place), kSuccess;
}

struct List {
  ProcessInfo* buffer;
  unsigned here, size;
  unsigned long long used;
};
List processes(int place, ProcessInfo* buffer, unsigned size) {
  List list{buffer, 0, size, 0};
  for_each_process(
      place,
      [](pid_t process, size_t bytes, void* data) {
        auto& l = *static_cast<List*>(data);
        if (l.here < l.size) l.buffer[l.here] = {static_cast<unsigned>(process), bytes, 0, 0};
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
  *count = 0;
  for (int i = 0; i < place_count(); ++i)
    if (!at_place(i).is_slice) ++*count;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** result) {
  return give(find_place([index](const Card& card) {
                return !card.is_slice && card.number == static_cast<int>(index);
              }),
              result);
}
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** result) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(id, "%x:%x", &domain, &bus) != 2) return kNotFound;
  return give(find_place([bus](const Card& card) {
                return !card.is_slice && card.bus == static_cast<int>(bus);
              }),
              result);
}
EXPORTED int nvmlDeviceGetHandleByUUID(const char* uuid, void** result) {
  return give(
      find_place([uuid](const Card& card) { return std::strcmp(card.uuid_text, uuid) == 0; }),
      result);
}
EXPORTED int nvmlDeviceGetMigMode(void* of, unsigned* current, unsigned* pending) {
  if (is_lost(of)) return kLost;
  *current = *pending = at(of).slices > 0 ? 1 : 0;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = kMostSlices;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void* of, unsigned index, void** result) {
  if (static_cast<int>(index) >= at(of).slices) return kNotFound;
  return give(place_of(of) + 1 + static_cast<int>(index), result);
}
EXPORTED int nvmlDeviceGetName(void* of, char* text, unsigned bytes) {
  if (is_lost(of)) return kLost;
  std::snprintf(text, bytes, "%s", at(of).name);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetUUID(void* of, char* text, unsigned bytes) {
  if (is_lost(of)) return kLost;
  std::snprintf(text, bytes, "%s", at(of).uuid_text);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetMemoryInfo(void* of, Memory* memory) {
  if (is_lost(of)) return kLost;
  const auto used = processes(place_of(of), nullptr, 0).used;
  *memory = {at(of).bytes, at(of).bytes - used, used};
  return kSuccess;
}
// NVML does not say of a slice what its divided card does.
EXPORTED int nvmlDeviceGetUtilizationRates(void* of, Utilization* rates) {
  if (is_lost(of)) return kLost;
  if (at(of).is_slice || at(of).slices > 0) return kNotSupported;
  *rates = {0, 0};
  return kSuccess;
}
EXPORTED int nvmlDeviceGetTemperature(void* of, int, unsigned* degrees) {
  if (is_lost(of)) return kLost;
  if (at(of).is_slice) return kNotSupported;
  *degrees = 40;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* of, unsigned* count, ProcessInfo* list) {
  if (is_lost(of)) return kLost;
  if (at(of).slices > 0) return kNoPermission;  // only an administrator sees those of all slices
  const auto all = processes(place_of(of), list, *count);
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

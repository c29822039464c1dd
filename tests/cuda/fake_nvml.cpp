// Stands in for NVIDIA's management library: three cards, of which the second may not be asked.
// TARE_FAKE_PROCESS is the number of a real process on the first card. Layouts as in nvml.h.
#include <algorithm>
#include <cstdlib>
#include <cstring>

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
constexpr int kSuccess = 0, kNoPermission = 4, kInsufficientSize = 7;
constexpr unsigned kMany = 40;  // processes on the third card

char cards[3];

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2() { return kSuccess; }
EXPORTED int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::strncpy(text, "580.65.06", bytes);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index == 1) return kNoPermission;
  *handle = &cards[index];
  return kSuccess;
}
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** handle) {
  if (std::strcmp(bus_id, "0000:01:00.0") != 0) return kNoPermission;
  *handle = &cards[0];
  return kSuccess;
}
EXPORTED int nvmlDeviceGetName(void*, char* text, unsigned bytes) {
  std::strncpy(text, "NVIDIA \033[31mH200", bytes);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetUUID(void* card, char* text, unsigned bytes) {
  std::strncpy(text, card == &cards[0] ? "GPU-0a0a" : "GPU-2c2c", bytes);
  return kSuccess;
}
EXPORTED int nvmlDeviceGetMemoryInfo(void* card, Memory* memory) {
  if (card == &cards[2]) return kNoPermission;
  *memory = {100ULL << 30, 60ULL << 30, 40ULL << 30};
  return kSuccess;
}
EXPORTED int nvmlDeviceGetUtilizationRates(void*, Utilization* rates) {
  *rates = {97, 12};
  return kSuccess;
}
EXPORTED int nvmlDeviceGetTemperature(void* card, int sensor, unsigned* degrees) {
  if (card == &cards[2] || sensor != 0) return kNoPermission;
  *degrees = 54;
  return kSuccess;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* card, unsigned* count,
                                                     ProcessInfo* list) {
  const unsigned here = card == &cards[0] ? 2 : kMany;
  const unsigned capacity = *count;
  *count = here;
  if (capacity < here) return kInsufficientSize;
  const char* const real = std::getenv("TARE_FAKE_PROCESS");
  for (unsigned i = 0; i < here; ++i)
    list[i] = {4'000'000'000U + i, (i + 1ULL) << 20, 0, 0};  // no process has such a number
  if (card != &cards[0]) return kSuccess;
  list[0].used = ~0ULL;  // not available
  list[1].process = real ? static_cast<unsigned>(std::atoi(real)) : 1;
  return kSuccess;
}

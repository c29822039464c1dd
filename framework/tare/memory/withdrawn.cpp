// Keeps which devices were withdrawn.
#include "tare/memory/withdrawn.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "tare/base/immortal.h"

namespace tare::memory {
namespace {

struct Withdrawn {
  std::mutex mutex;
  std::vector<c10::Device> devices;
};

Withdrawn& withdrawn() {
  static Immortal<Withdrawn> all;
  return *all;
}

}  // namespace

void withdraw(c10::Device device) {
  const std::lock_guard lock(withdrawn().mutex);
  withdrawn().devices.push_back(device);
}

bool is_withdrawn(c10::Device device) {
  const std::lock_guard lock(withdrawn().mutex);
  return std::ranges::find(withdrawn().devices, device) != withdrawn().devices.end();
}

}  // namespace tare::memory

// Registers the collectives of devices.
#include "tare/memory/collectives.h"

#include <utility>
#include <vector>

#include "tare/base/immortal.h"

namespace tare::memory {
namespace {

/// Never destroyed: groups in static objects may still be connected.
std::vector<std::unique_ptr<Collectives>>& all() {
  static Immortal<std::vector<std::unique_ptr<Collectives>>> list;
  return *list;
}

}  // namespace

const Collectives* collectives_of(c10::DeviceType type) {
  for (const auto& one : all())
    if (one->device_type() == type) return one.get();
  return nullptr;
}

void add_collectives(std::unique_ptr<Collectives> collectives) {
  all().push_back(std::move(collectives));
}

}  // namespace tare::memory

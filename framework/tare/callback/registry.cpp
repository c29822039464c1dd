// The registry of callbacks.
#include "tare/callback/registry.h"

namespace tare::callbacks {

void add_entries(Registry& all);  // CMake makes it from the list in CMakeLists.txt

Registry& registry() {
  static Registry all("callback", add_entries);
  return all;
}

}  // namespace tare::callbacks

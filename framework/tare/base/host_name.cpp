// Asks the system for the name of this machine.
#include "tare/base/host_name.h"

#include <unistd.h>

namespace tare {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace tare

// Compares options by their trees, which know every field.
#include "tare/config/changed.h"

namespace tare::config {

std::vector<std::string> changed_keys(const Node& given, const Node& defaults) {
  std::vector<std::string> keys;
  for (const Entry& entry : given.entries) {
    const Node* before = defaults.find(entry.key);
    if (before == nullptr || to_yaml(entry.value) != to_yaml(*before)) keys.push_back(entry.key);
  }
  return keys;
}

}  // namespace tare::config

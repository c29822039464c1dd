// The registry of samplers.
#include "tare/search/samplers.h"

#include "tare/search/sampler_choice.h"

namespace tare::search {

namespace samplers {

void add_entries(Registry& all);  // CMake makes it from the list in CMakeLists.txt

Registry& registry() {
  static Registry all("sampler", add_entries);
  return all;
}

}  // namespace samplers

void from_node(const config::Node& node, SamplerChoice& value) {
  value = {samplers::registry().complete(config::read<config::Choice>(node))};
}

config::Node to_node(const SamplerChoice& value) { return config::to_short_node(value); }

}  // namespace tare::search

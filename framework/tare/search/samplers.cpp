// Lists the samplers.
#include "tare/search/samplers.h"

#include "tare/search/random_sampler.h"
#include "tare/search/sampler_choice.h"
#include "tare/search/tpe.h"

namespace tare::search {

samplers::Registry& samplers::registry() {
  static Registry all("sampler");
  static const bool filled = [] {
    all.add("grid", "every combination of the values, the first parameter slowest",
            [] { return Sampler{}; });
    all.add("random", "draws each value on its own", random_sampler);
    all.add<TpeOptions>("tpe", "draws where the best runs are densest", tpe_sampler);
    return true;
  }();
  static_cast<void>(filled);
  return all;
}

void from_node(const config::Node& node, SamplerChoice& value) {
  value = {samplers::registry().complete(config::read<config::Choice>(node))};
}

config::Node to_node(const SamplerChoice& value) { return config::to_short_node(value); }

}  // namespace tare::search

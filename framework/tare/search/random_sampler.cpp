// Draws values at random.
#include "tare/search/random_sampler.h"

#include <cmath>

#include "tare/search/parzen.h"
#include "tare/search/samplers.h"

namespace tare::search {
namespace {

/// Draws evenly over the values, or over their logarithm; numbers with steps as if rounded.
double draw_evenly(const Domain& domain, CounterRng& rng) {
  const double share = rng.uniform();
  if (domain.choices > 0) return std::floor(share * static_cast<double>(domain.choices));
  const double low = domain.low - domain.step / 2, high = domain.high + domain.step / 2;
  const double value = domain.log
                           ? std::exp(std::log(low) + share * (std::log(high) - std::log(low)))
                           : low + share * (high - low);
  return domain.nearest(value);
}

}  // namespace

Point draw_at_random(const Space& space, CounterRng& rng) {
  Point point;
  for (const auto& parameter : space.parameters)
    point[parameter.name] = draw_evenly(domain_of(parameter), rng);
  return point;
}

namespace samplers {
void add_random_sampler(Registry& all) {
  all.add("random", "draws each value on its own", [] {
    return Sampler{[](const Seen& seen) -> Draw {
      return [&space = seen.space](CounterRng& rng) { return draw_at_random(space, rng); };
    }};
  });
}
}  // namespace samplers

}  // namespace tare::search

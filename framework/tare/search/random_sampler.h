// The sampler `random`, and the draws with which others begin.
#pragma once

#include "tare/search/sampler_type.h"

namespace tare::search {

/// Draws a value for each parameter, evenly and independently.
[[nodiscard]] Point draw_at_random(const Space& space, CounterRng& rng);

}  // namespace tare::search

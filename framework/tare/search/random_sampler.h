// The sampler `random`, and the draws with which others begin.
#pragma once

#include "tare/search/sampler_type.h"

namespace tare::search {

/// A value for each parameter, drawn evenly and on its own.
[[nodiscard]] Point draw_at_random(const Space& space, CounterRng& rng);

/// The sampler `random`.
[[nodiscard]] Sampler random_sampler();

}  // namespace tare::search

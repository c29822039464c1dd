// The samplers by the names that a sweep's file has for them.
#pragma once

#include "tare/config/registry.h"
#include "tare/search/sampler_type.h"

namespace tare::search {

namespace samplers {
/// Holds the samplers that have a name. A program adds its own:
///   samplers::registry().add<SobolOptions>("sobol", "a sequence that fills the space", sobol);
using Registry = config::Registry<Sampler()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace samplers

}  // namespace tare::search

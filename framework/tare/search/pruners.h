// The pruners by the names that a sweep's file has for them.
#pragma once

#include <memory>

#include "tare/config/registry.h"
#include "tare/search/pruner.h"

namespace tare::search {

namespace pruners {
/// Holds the pruners that have a name. A program adds its own; no option is called `type`:
///   pruners::registry().add<MedianOptions>("median", "ends what is worse than the median",
///                                          [](const auto& o) { return median_pruner(o); });
using Registry = config::Registry<std::shared_ptr<const Pruner>()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace pruners

/// Names a pruner with its options, `{type: asha, min_resource: 3}`; one that is read is complete.
struct PrunerChoice : config::Choice {
  PrunerChoice() : Choice{.name = "none", .flat = true} {}
};
/// Throws ConfigError, with place and nearest name, and for options that contradict each other.
void from_node(const config::Node& node, PrunerChoice& value);
[[nodiscard]] config::Node to_node(const PrunerChoice& value);

}  // namespace tare::search

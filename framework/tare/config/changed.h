// changed_fields(): which fields of an options struct differ from their defaults.
#pragma once

#include <string>
#include <vector>

#include "tare/config/field.h"

namespace tare::config {

/// Returns the keys of `given` whose values differ from those of `defaults`, two mappings of one
/// struct.
[[nodiscard]] std::vector<std::string> changed_keys(const Node& given, const Node& defaults);

/// Returns the names of the fields that differ from S{}, in order, so that a kind of thing can
/// refuse those that it does not take.
template <Options S>
[[nodiscard]] std::vector<std::string> changed_fields(const S& given) {
  return changed_keys(to_node(given), to_node(S{}));
}

}  // namespace tare::config

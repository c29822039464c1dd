// The text by which bundles store a named loss or metric. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/config/node.h"
#include "tare/config/registry.h"

namespace tare {

/// Returns the name alone where all options have their defaults, else the name with the options
/// that have other values, `{top_k: {k: 3}}`. Throws ConfigError for an unknown name or option.
template <class Registry>
std::string stored_text(const Registry& registry, const config::Choice& choice) {
  auto complete = registry.complete(choice);
  const auto defaults = registry.complete({.name = choice.name});
  std::erase_if(complete.options.entries, [&](const config::Entry& entry) {
    return config::flow_text(entry.value) == config::flow_text(*defaults.options.find(entry.key));
  });
  return config::flow_text(config::to_short_node(complete));
}

}  // namespace tare

// Lists of entries whose options are mostly fields of a struct that all entries share.
#pragma once

#include <utility>
#include <vector>

#include "tare/config/registry.h"

namespace tare::config {

/// Returns the entries with the options that `shared` gives for each name, a map with the defaults.
/// The options of an entry's own, if there are any, are below `options`.
template <class Shared>
[[nodiscard]] std::vector<EntryInfo> with_shared(std::vector<EntryInfo> infos,
                                                 const Shared& shared) {
  for (auto& info : infos) {
    Node own = std::exchange(info.defaults, shared(info.name));
    if (!own.entries.empty()) info.defaults.set("options", std::move(own));
  }
  return infos;
}

}  // namespace tare::config

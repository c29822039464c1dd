// `key=value` on the command line, applied to a configuration tree before it is read.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "tare/config/node.h"

namespace tare::config {

inline constexpr size_t kMaxArgumentBytes = 4096;  ///< of one `key=value`

/// Sets one value: "batch=256", "phases.2.epochs=2" (list positions count from 0),
/// "hidden=[64,32]", "name='01'"; what follows the first '=' is YAML, but for one mark, such as the
/// ',' of "data.separator=,", which is a text. Where nothing follows, the key is removed, so that
/// it has its default. Missing mappings are created. An unknown key is not found here but when the
/// options are read, with "command line" as its source. Throws ConfigError for a missing '=', an
/// empty key, a list position that does not exist, a path through a scalar, and an argument above 4
/// KiB; `root` is then unchanged.
///
/// `flat`: names of mappings whose keys have dots of their own, so that "set.optimizer.lr=0.1" sets
/// the key "optimizer.lr" of the mapping `set`.
void apply_override(Node& root, std::string_view assignment,
                    std::initializer_list<std::string_view> flat = {});

/// Whether the value is a null that apply_override() has left for a key without a value which the
/// tree did not have; the key keeps its default. No file has such a value.
[[nodiscard]] bool is_unset(const Node& node);

}  // namespace tare::config

// Finds out what an option takes from the code that reads it: wrong values are given to it, and its
// errors name the type, the limits and the allowed words.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/config/node.h"

namespace tare {

/// Returns the error of an option for a value that it refuses; unset: it accepts the value.
using OptionProbe = std::function<std::optional<ConfigError>(config::Node value)>;

/// Says what an option takes.
struct OptionFacts {
  std::string type{};                ///< "a whole number", "a mapping", "a list of text"
  std::string range{};               ///< "must be >= 1"; empty: any value of the type
  std::vector<std::string> words{};  ///< names that it takes, and true and false; may be empty
};
/// Returns what the errors of an option for wrong values say.
[[nodiscard]] OptionFacts facts_of(const OptionProbe& refusal);

/// Returns a default on one line; empty for null, an empty text, and a value that takes several
/// lines.
[[nodiscard]] std::string default_text(const config::Node& value);

}  // namespace tare

// Describes the space of a search: parameters with their values or ranges.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tare/config/field.h"
#include "tare/config/node.h"

namespace tare::search {

/// Holds the numbers from low to high, both included.
struct Range {
  double low = 0, high = 0;      ///< low <= high
  std::optional<double> step{};  ///< unset: any number between; above 0
  bool log = false;              ///< drawn evenly over the logarithm; low above 0, without a step
  bool integer = false;          ///< low, high and step are whole numbers
  bool operator==(const Range&) const = default;
};

/// Describes one key of the recipe that varies. In YAML: a list, {values: [...]} or {min: A, max:
/// B, step: C, log: true}.
struct Parameter {
  std::string name{};                  ///< dotted, "optimizer.weight_decay"
  std::vector<config::Node> values{};  ///< empty: a range
  std::optional<Range> range{};        ///< unset: one of `values`
};

/// Holds the parameters in the order of the file.
struct Space {
  std::vector<Parameter> parameters{};  ///< in the order of the file
  /// Returns the parameter of that name, or nullptr; valid until the list changes.
  [[nodiscard]] const Parameter* find(std::string_view name) const;
};
void from_node(const config::Node& node, Space& value);
[[nodiscard]] config::Node to_node(const Space& value);

/// Holds keys of the recipe and their values, in order.
struct Settings {
  std::vector<std::pair<std::string, config::Node>> values{};  ///< keys and values, in order
  /// Returns the value of that key, or nullptr; valid until the list changes.
  [[nodiscard]] const config::Node* find(std::string_view name) const;
};
void from_node(const config::Node& node, Settings& value);
[[nodiscard]] config::Node to_node(const Settings& value);

/// Whether two values of a key are equal: numbers by value, so that 0.01 is 1.0e-2 and 1 is 1.0,
/// and lists and mappings by what they hold. A quoted number is a text.
[[nodiscard]] bool equal(const config::Node& a, const config::Node& b);

/// Returns how many values the parameter has; infinity for a range without steps.
[[nodiscard]] double count_of(const Parameter& parameter);

/// Returns a number of the range as its text: without a point where it is whole.
[[nodiscard]] config::Node number_node(const Range& range, double value);

}  // namespace tare::search

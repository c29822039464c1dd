// Settings and parameters as Optuna writes them. Internal.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tare/search/space.h"
#include "tare/sweep/database.h"

namespace tare::sweep {

/// Returns a value in choices and attributes: null, a bool, a number or text; lists and mappings as
/// text.
[[nodiscard]] nlohmann::ordered_json scalar_json(const config::Node& node);
/// Returns {"name": "FloatDistribution", "attributes": {...}}, or Int.
[[nodiscard]] nlohmann::ordered_json range_json(const search::Range& range);
/// Returns the system attribute of a trial that waits: {key: value}.
[[nodiscard]] nlohmann::ordered_json fixed_params(const search::Settings& cell);
/// Returns one line of UTF-8; other bytes become U+FFFD.
[[nodiscard]] std::string text_of(const nlohmann::ordered_json& json);

/// Holds the choices of a study's lists as its store knows them. Optuna wants the choices of a
/// parameter to be the same in all trials of a study, and keeps the index of the one that was
/// taken. So choices are only ever added at the end.
class CategoricalChoices {
 public:
  /// Adds what is new in the lists of `space`, to the rows of earlier trials too. Call it in a
  /// transaction.
  void merge(const Database& database, int64_t study, const search::Space& space);
  /// Returns a parameter as the column distribution_json.
  [[nodiscard]] nlohmann::ordered_json distribution(const search::Parameter& parameter) const;
  /// Returns the index of a choice, or the number itself.
  [[nodiscard]] double value(const search::Parameter& parameter, const config::Node& value) const;

 private:
  std::map<std::string, nlohmann::ordered_json> lists_;  // by parameter
};

}  // namespace tare::sweep

// The choices of a study's lists as its store knows them. Internal.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tare/sweep/database.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Optuna wants the choices of a parameter to be the same in all trials of a study, and keeps the
/// index of the one that was taken. So choices are only ever added at the end.
class Choices {
 public:
  /// Adds what is new in the lists of `space`, to the rows of earlier trials too. Call it in a
  /// transaction.
  void merge(const Database& database, int64_t study, const search::Space& space);
  /// As the column distribution_json.
  [[nodiscard]] nlohmann::ordered_json distribution(const search::Parameter& parameter) const;
  /// The index of a choice, or the number itself.
  [[nodiscard]] double value(const search::Parameter& parameter, const config::Node& value) const;

 private:
  std::map<std::string, nlohmann::ordered_json> lists_;  // by parameter
};

}  // namespace tare::sweep

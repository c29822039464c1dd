#include "tare/sweep/choices.h"

#include <algorithm>
#include <cmath>

#include "tare/config/scalar.h"
#include "tare/sweep/optuna_json.h"

namespace tare::sweep {
namespace {

using nlohmann::ordered_json;

constexpr const char* kOfParameter =
    "param_name = ?2 AND trial_id IN (SELECT trial_id FROM trials WHERE study_id = ?1)";

ordered_json stored_choices(const Database& database, int64_t study, const std::string& name) {
  auto row = database.prepare(std::string("SELECT distribution_json FROM trial_params WHERE ") +
                              kOfParameter + " LIMIT 1");
  if (!row.bind(1, study).bind(2, name).step()) return ordered_json::array();
  const auto stored = ordered_json::parse(row.text(0), nullptr, false);
  const auto path = ordered_json::json_pointer("/attributes/choices");
  return stored.is_object() && stored.contains(path) ? stored.at(path) : ordered_json::array();
}

ordered_json categorical(const ordered_json& choices) {
  return {{"name", "CategoricalDistribution"}, {"attributes", {{"choices", choices}}}};
}

}  // namespace

void Choices::merge(const Database& database, int64_t study, const search::Space& space) {
  for (const auto& parameter : space.parameters) {
    if (parameter.range) continue;
    ordered_json& list = lists_[parameter.name];
    if (list.empty()) list = stored_choices(database, study, parameter.name);
    const size_t before = list.size();
    for (const auto& value : parameter.values)
      if (const auto choice = scalar_json(value); std::ranges::find(list, choice) == list.end())
        list.push_back(choice);
    if (before == 0 || list.size() == before) continue;
    database
        .prepare(std::string("UPDATE trial_params SET distribution_json = ?3 WHERE ") +
                 kOfParameter)
        .bind(1, study)
        .bind(2, parameter.name)
        .bind(3, text_of(categorical(list)))
        .run();
  }
}

ordered_json Choices::distribution(const search::Parameter& parameter) const {
  return parameter.range ? range_json(*parameter.range) : categorical(lists_.at(parameter.name));
}

double Choices::value(const search::Parameter& parameter, const config::Node& value) const {
  if (parameter.range) return config::as_number(value.text).value_or(std::nan(""));
  const ordered_json& list = lists_.at(parameter.name);
  return static_cast<double>(std::ranges::find(list, scalar_json(value)) - list.begin());
}

}  // namespace tare::sweep

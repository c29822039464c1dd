// Writes settings and parameters as Optuna does.
#include "tare/sweep/store_json.h"

#include <algorithm>
#include <cmath>

#include "tare/config/scalar.h"
#include "tare/search/value_text.h"

namespace tare::sweep {
namespace {

using config::Kind;
using config::Node;
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

ordered_json scalar_json(const Node& node) {
  if (node.kind == Kind::null) return nullptr;
  if (node.kind != Kind::scalar) return search::flow_text(node);
  if (node.quoted) return node.text;
  if (const auto flag = config::as_bool(node.text)) return *flag;
  if (const auto whole = config::as_integer(node.text)) return *whole;
  if (const auto number = config::as_number(node.text); number && std::isfinite(*number))
    return *number;
  return node.text;
}

ordered_json range_json(const search::Range& range) {
  if (range.integer)
    return {{"name", "IntDistribution"},
            {"attributes",
             {{"log", range.log},
              {"step", std::llround(range.step.value_or(1))},
              {"low", std::llround(range.low)},
              {"high", std::llround(range.high)}}}};
  const ordered_json step = range.step ? ordered_json(*range.step) : ordered_json(nullptr);
  return {{"name", "FloatDistribution"},
          {"attributes",
           {{"step", step}, {"low", range.low}, {"high", range.high}, {"log", range.log}}}};
}

ordered_json fixed_params(const search::Cell& cell) {
  ordered_json fixed = ordered_json::object();
  for (const auto& [key, value] : cell.values) fixed[key] = scalar_json(value);
  return fixed;
}

std::string text_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void CategoricalChoices::merge(const Database& database, int64_t study,
                               const search::Space& space) {
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

ordered_json CategoricalChoices::distribution(const search::Parameter& parameter) const {
  return parameter.range ? range_json(*parameter.range) : categorical(lists_.at(parameter.name));
}

double CategoricalChoices::value(const search::Parameter& parameter,
                                 const config::Node& value) const {
  if (parameter.range) return config::as_number(value.text).value_or(std::nan(""));
  const ordered_json& list = lists_.at(parameter.name);
  return static_cast<double>(std::ranges::find(list, scalar_json(value)) - list.begin());
}

}  // namespace tare::sweep

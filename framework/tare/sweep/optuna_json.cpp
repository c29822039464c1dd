#include "tare/sweep/optuna_json.h"

#include <cmath>

#include "tare/config/scalar.h"
#include "tare/search/value_text.h"

namespace tare::sweep {

using config::Kind;
using config::Node;
using nlohmann::ordered_json;

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

}  // namespace tare::sweep

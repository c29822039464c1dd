#include "tare/sweep/history.h"

#include <cmath>

#include "tare/config/scalar.h"
#include "tare/sweep/identity.h"

namespace tare::sweep {
namespace {

double param_value(const Parameter& parameter, const config::Node& value) {
  for (size_t i = 0; i < parameter.values.size(); ++i)
    if (flow_text(parameter.values[i]) == flow_text(value)) return static_cast<double>(i);
  if (!parameter.range) return std::nan("");
  return config::as_number(value.text).value_or(std::nan(""));
}

}  // namespace

Point point_of(const Space& space, const Cell& cell) {
  Point point;
  for (const auto& [name, value] : cell.values)
    if (const Parameter* parameter = space.find(name)) point[name] = param_value(*parameter, value);
  return point;
}

}  // namespace tare::sweep

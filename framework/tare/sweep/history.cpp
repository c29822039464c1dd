#include "tare/sweep/history.h"

#include "tare/sweep/optuna_json.h"

namespace tare::sweep {

Point point_of(const Space& space, const Cell& cell) {
  Point point;
  for (const auto& [name, value] : cell.values)
    if (const Parameter* parameter = space.find(name)) point[name] = param_value(*parameter, value);
  return point;
}

}  // namespace tare::sweep

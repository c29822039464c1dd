// Trials as samplers and pruners know them.
#include "tare/search/trial.h"

#include <array>
#include <cmath>

#include "tare/config/scalar.h"

namespace tare::search {
namespace {

constexpr std::array kStates{"WAITING", "RUNNING", "COMPLETE", "PRUNED", "FAIL"};

double param_value(const Parameter& parameter, const config::Node& value) {
  for (size_t i = 0; i < parameter.values.size(); ++i)
    if (equal(parameter.values[i], value)) return static_cast<double>(i);
  if (!parameter.range) return std::nan("");
  return config::as_number(value.text).value_or(std::nan(""));
}

}  // namespace

const char* to_string(TrialState state) { return kStates[static_cast<size_t>(state)]; }

std::optional<TrialState> trial_state(const std::string& name) {
  for (size_t i = 0; i < kStates.size(); ++i)
    if (name == kStates[i]) return static_cast<TrialState>(i);
  return std::nullopt;
}

Point point_of(const Space& space, const Cell& cell) {
  Point point;
  for (const auto& [name, value] : cell.values)
    if (const Parameter* parameter = space.find(name)) point[name] = param_value(*parameter, value);
  return point;
}

}  // namespace tare::search

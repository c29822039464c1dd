// Fits the advice of a plan to a recipe.
#include "tare/recipe/advice.h"

#include "tare/config/scalar.h"

namespace tare {
namespace {

/// Whether the change has to be made in the phase, and not in the whole recipe.
bool is_of_phase(const RecipeOptions& recipe, const PhaseOptions& phase,
                 const std::string& change) {
  if (change.starts_with("micro_batch="))  // another phase may have a smaller batch
    return phase.micro_batch || recipe.phases.size() > 1;
  if (change.starts_with("recompute=")) return phase.recompute.has_value();
  return change.starts_with("offload=") && phase.offload.has_value();
}

/// Returns what sets back the momenta of a schedule, which have no effect without momentum.
std::string momenta_reset(size_t phase, const OneCycle& given) {
  const OneCycle standard;
  std::string text;
  const auto reset = [&](const char* key, double value, double wanted) {
    if (value != wanted)
      text += " phases." + std::to_string(phase) + ".schedule.one_cycle." + key + '=' +
              config::number_text(wanted);
  };
  reset("momentum_start", given.momentum_start, standard.momentum_start);
  reset("momentum_lowest", given.momentum_lowest, standard.momentum_lowest);
  return text;
}

}  // namespace

std::string advice_for(const RecipeOptions& recipe, size_t phase, const std::string& change) {
  if (is_of_phase(recipe, recipe.phases[phase], change))
    return "phases." + std::to_string(phase) + '.' + change;
  std::string text = change;
  if (change.find("optimizer.momentum=0") == std::string::npos) return text;
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    text += momenta_reset(i, recipe.phases[i].schedule.one_cycle);
  return text;
}

}  // namespace tare

// Plans a run before its work, and answers for its phases.
#include "tare/recipe/run_plan.h"

#include <utility>

#include "tare/base/log.h"
#include "tare/plan/recompute.h"
#include "tare/recipe/plan_resolved.h"

namespace tare {

void RunPlan::make(const RecipeOptions& recipe, const DataFacts& facts, RecipeData& data,
                   int64_t ranks) {
  plan_ = plan_resolved(recipe, {.advice = false, .ranks = ranks, .download = true}, facts, data);
  for (const auto& phase : plan_.phases)
    if (!phase.known()) log::info("no plan of phase '" + phase.name + "': " + phase.reason);
  require_fit(recipe, plan_);
}

const MemoryPlan* RunPlan::of(size_t phase) const {
  if (phase >= plan_.phases.size() || !plan_.phases[phase].known()) return nullptr;
  return &plan_.phases[phase];
}

std::string RunPlan::why_unknown(size_t phase) const {
  const bool planned = phase < plan_.phases.size();
  return planned && !plan_.phases[phase].known() ? plan_.phases[phase].reason : "";
}

std::optional<int64_t> RunPlan::peak_bytes(size_t phase) const {
  const MemoryPlan* plan = of(phase);
  if (!plan) return std::nullopt;
  return plan->in_micro_batches ? plan->micro_batch_peak_bytes : plan->peak_bytes;
}

std::vector<std::string> RunPlan::recompute(size_t phase, std::vector<std::string> given) const {
  const MemoryPlan* plan = of(phase);
  return plan && is_auto(given) ? plan->recompute : std::move(given);
}

}  // namespace tare

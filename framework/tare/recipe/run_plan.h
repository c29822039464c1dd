// RunPlan: what a run does with its plan. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/recipe/recipe_data.h"
#include "tare/recipe/recipe_plan.h"

namespace tare {

/// Holds the plan of a run; empty until it is made. A run without a plan is still a run.
class RunPlan {
 public:
  /// Plans the phases for one of `ranks` ranks. Throws ConfigError for a recipe that cannot be run,
  /// such as a model that does not take the data, DoesNotFit, and what reading the data throws.
  void make(const RecipeOptions& recipe, const DataFacts& facts, RecipeData& data, int64_t ranks);

  /// Returns the plan of a phase; nullptr: the phase has none, or its plan is unknown.
  [[nodiscard]] const MemoryPlan* of(size_t phase) const;
  /// Returns why a phase has no plan; empty: it has one, or none was asked for.
  [[nodiscard]] std::string why_unknown(size_t phase) const;
  /// Returns the stages that the plan has chosen, see RecipePlan::stages.
  [[nodiscard]] const std::vector<std::string>& stages() const { return plan_.stages; }
  /// Predicts PhaseReport::peak_bytes; unset: unknown.
  [[nodiscard]] std::optional<int64_t> peak_bytes(size_t phase) const;
  /// Returns the blocks to recompute where the recipe has `given`.
  [[nodiscard]] std::vector<std::string> recompute(size_t phase,
                                                   std::vector<std::string> given) const;

 private:
  RecipePlan plan_;
};

}  // namespace tare

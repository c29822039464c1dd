// RecipePlan: what each phase of a recipe will need, as a value.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tare/plan/plan.h"
#include "tare/plan/scale_plan.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/schedule_preview.h"

namespace tare {

/// Selects the device for which a recipe is planned, and how thoroughly.
struct RecipePlanOptions {
  std::string device{};                     ///< see plan::parse_target; empty: the recipe's
  std::optional<int64_t> capacity_bytes{};  ///< of a device that is there, see plan::parse_target
  bool advice = true;     ///< see PlanOptions::advice; false: only where a phase does not fit
  bool schedule = false;  ///< also the schedules of the phases
  int64_t ranks = 1;      ///< that train together; each phase is planned for one of them
  /// Describes the devices on which ways to divide each phase over several ranks are compared.
  std::optional<plan::ScaleOptions> scale{};
  bool download = false;  ///< data sets may be downloaded, as a run that follows would do anyway
};

/// Bounds the memory of the export at the end of a run.
struct ExportPlan {
  std::vector<std::string> files{};  ///< in the run's folder, the bundle first
  int64_t at_most_bytes = 0;         ///< of the host, above what the last phase leaves
  std::string reason{};              ///< why no bound is known; empty: it is
};

/// Holds a plan for each phase, in order; `peak_bytes` as PhaseReport::peak_bytes will measure it.
struct RecipePlan {
  std::string name{}, device{};          ///< the recipe's name; the device as it was given
  int64_t capacity_bytes = 0;            ///< what tensors can take there, of a rank
  int64_t ranks = 1;                     ///< see RecipePlanOptions
  std::optional<int64_t> total_bytes{};  ///< of a card on which that is free, see plan::Target
  /// The stages of the model, where the recipe leaves them to the plan and there are several cards,
  /// as LearnerOptions::stages has them; else empty.
  std::vector<std::string> stages{};
  std::vector<MemoryPlan> phases{};          ///< in order
  std::vector<plan::ScalePlan> scales{};     ///< of the phases; empty unless they were asked for
  std::vector<SchedulePreview> schedules{};  ///< of the phases; empty unless they were asked for
  std::optional<ExportPlan> exported{};      ///< unset: nothing is exported

  [[nodiscard]] bool known() const;  ///< whether every phase could be predicted
  [[nodiscard]] bool fits() const;  ///< every phase that could be predicted fits with whole batches
  [[nodiscard]] bool runs() const;  ///< as fits(), if need be with batches in parts
  /// Returns the least of the phases' largest batches and micro-batches.
  [[nodiscard]] int64_t largest_batch() const;
  [[nodiscard]] int64_t largest_micro_batch() const;  ///< where batches are in parts
  /// Returns "meta", or the method of the phase whose prediction is least certain.
  [[nodiscard]] std::string method() const;
};

/// Throws DoesNotFit if a phase does not fit, not even in parts if it may find these, with the
/// advice and the place of its batch.
void require_fit(const RecipeOptions& recipe, const RecipePlan& plan);

/// Prints a table, with the advice under it; within the terminal's width if `out` is std::cout on
/// one.
void print(std::ostream& out, const RecipePlan& plan);
/// Returns {name, device, capacity_bytes, ranks (if there are several), fits (null where a phase is
/// unknown and the others fit), largest_batch, largest_micro_batch, method, phases[] {name, batch,
/// start_bytes, peak_bytes, at_most_bytes (null: no bound is known), reserved_bytes, categories {},
/// at, fits, returns_cache, in_micro_batches, micro_batch_peak_bytes and
/// largest_validation_micro_batch (if in_micro_batches), largest_batch, largest_micro_batch,
/// savings[] {change, peak_bytes, at_least}, stages[] (of a model on several cards) {device,
/// groups, capacity_bytes, start_bytes, peak_bytes, reserved_bytes, fits}, method, reason, schedule
/// (if asked for) {steps, relative, points[] {step, first_lr, last_lr, momentum, beta2,
/// weight_decay}}, scale (if asked for) {ranks, per_machine, link_inside and link_between
/// {bytes_per_s, latency_s}, batch, own, parts, sample_s, sample_flops, computation, reason,
/// refused[], strategies[] {strategy, stages, micro_batches, bytes, planned, fits, compute_s,
/// exchange_s, step_s, samples_per_s, efficiency}, fastest}}, export (if there is one) {files[],
/// at_most_bytes, reason}}. Unknown figures are null.
[[nodiscard]] std::string to_json(const RecipePlan& plan);

/// Returns the recipe with everything that changes no plan at its default: names, seed, learning
/// rates, and by how much the optimizer applies an option, but not whether it applies the option at
/// all. Two recipes that are then equal have equal plans.
[[nodiscard]] RecipeOptions without_what_no_plan_needs(RecipeOptions recipe);

}  // namespace tare

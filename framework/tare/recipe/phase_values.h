// Finds the values of a phase: those that it gives itself, or else those of its recipe. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Returns the path in the recipe of a value that the phase gives itself (`own`), or else the
/// recipe: "phases.0.batch" or "batch".
[[nodiscard]] std::string path_of(const std::string& value, bool own, size_t phase);
/// Returns the data of the phase, its own or those of the recipe, in the size that it shows.
[[nodiscard]] DataOptions data_of(const RecipeOptions& recipe, const PhaseOptions& phase);
/// Returns what the recipe leaves of the data of the phase; nullptr: of the recipe's.
[[nodiscard]] DataCut cut_of(const RecipeOptions& recipe, const PhaseOptions* phase);
/// Returns the samples that this leaves of the training split.
[[nodiscard]] int64_t limited_samples(const RecipeOptions& recipe, const PhaseOptions& phase,
                                      const DataFacts& data);
/// Returns the batch that the phase or the recipe gives; unset: the data decides.
[[nodiscard]] std::optional<int64_t> given_batch(const RecipeOptions& recipe,
                                                 const PhaseOptions& phase);
/// Returns the batch of the phase, or default_batch() of the training split.
[[nodiscard]] int64_t batch_of(const RecipeOptions& recipe, const PhaseOptions& phase,
                               const DataFacts& data);
/// Returns how long the phase trains.
[[nodiscard]] Duration duration_of(const PhaseOptions& phase);
/// Returns the length of the phase for its data. A last batch of one sample that a batch norm
/// refuses counts as a batch, here and in the next two.
[[nodiscard]] FitLength length_of(const RecipeOptions& recipe, const PhaseOptions& phase,
                                  const DataFacts& data);
/// Returns the batches of an epoch of the phase.
[[nodiscard]] int64_t epoch_batches(const RecipeOptions& recipe, const PhaseOptions& phase,
                                    const DataFacts& data);
/// Returns the batches of the whole phase.
[[nodiscard]] int64_t all_batches(const RecipeOptions& recipe, const PhaseOptions& phase,
                                  const DataFacts& data);
/// Returns the phase's learning rate, or else that of the recipe's optimizer.
[[nodiscard]] LearningRate rate_of(const RecipeOptions& recipe, const PhaseOptions& phase);
/// Returns the file name of the bundle; empty: none.
[[nodiscard]] std::string export_name(const RecipeOptions& recipe);
/// Returns the name of the file of one of RecipeOptions::export_formats in the run's folder: that
/// of the bundle with the extension of the format. Throws ConfigError for an unknown format.
[[nodiscard]] std::string export_name(const RecipeOptions& recipe, const std::string& format);
/// Whether the file of one of RecipeOptions::export_formats has its batch norms folded. Throws
/// ConfigError for an unknown format.
[[nodiscard]] bool folds_norms(const RecipeOptions& recipe, const std::string& format);
/// Returns the version of the operators in the file of one of RecipeOptions::export_formats; for
/// another format than onnx the default.
[[nodiscard]] int64_t opset_of(const RecipeOptions& recipe, const std::string& format);
/// Returns the samples per forward; unset: found by what memory allows.
[[nodiscard]] std::optional<int64_t> micro_batch_of(const RecipeOptions& recipe,
                                                    const PhaseOptions& phase);
/// Returns the phase's LearnerOptions::recompute.
[[nodiscard]] std::vector<std::string> recompute_of(const RecipeOptions& recipe,
                                                    const PhaseOptions& phase);
/// Returns the phase's LearnerOptions::offload.
[[nodiscard]] std::vector<std::string> offload_of(const RecipeOptions& recipe,
                                                  const PhaseOptions& phase);
/// Returns the path of the batch in the recipe: "batch" or "phases.N.batch".
[[nodiscard]] std::string batch_path(const RecipeOptions& recipe, size_t phase);
/// Returns the path of the number of samples per forward in the recipe: that of micro_batch, if it
/// is a number.
[[nodiscard]] std::string samples_path(const RecipeOptions& recipe, size_t phase);
/// Returns the name of the phase; without one, phase_number().
[[nodiscard]] std::string name_of(const RecipeOptions& recipe, size_t phase);
/// Returns "phase N", counted from 1 as people do; keys of a recipe count from 0.
[[nodiscard]] std::string phase_number(size_t phase);

}  // namespace tare

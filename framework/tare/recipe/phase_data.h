// The data of a recipe's phases, as run and plan use it. Internal.
#pragma once

#include "tare/recipe/recipe.h"

namespace tare {

[[nodiscard]] DataOptions data_of(const RecipeOptions& recipe, const PhaseOptions& phase);
[[nodiscard]] int64_t batch_of(const RecipeOptions& recipe, const PhaseOptions& phase);
/// Samples per forward; unset: found by what memory allows.
[[nodiscard]] std::optional<int64_t> micro_batch_of(const RecipeOptions& recipe,
                                                    const PhaseOptions& phase);
/// See LearnerOptions::recompute.
[[nodiscard]] std::vector<std::string> recompute_of(const RecipeOptions& recipe,
                                                    const PhaseOptions& phase);
/// See LearnerOptions::offload.
[[nodiscard]] std::vector<std::string> offload_of(const RecipeOptions& recipe,
                                                  const PhaseOptions& phase);
/// Where the recipe says it: "batch" or "phases.N.batch".
[[nodiscard]] std::string batch_path(const RecipeOptions& recipe, size_t phase);
/// Where the recipe says how many samples a forward has: that of micro_batch, if it is a number.
[[nodiscard]] std::string samples_path(const RecipeOptions& recipe, size_t phase);
[[nodiscard]] std::string name_of(const RecipeOptions& recipe, size_t phase);

/// Throws ConfigError for splits that phase number `phase` cannot be trained on: without a training
/// split, smaller than a batch, or with more classes than the model.
void check_data(const RecipeOptions& recipe, size_t phase, const Splits& data);

/// Throws ConfigError for a phase that names a block which the model does not have. Leaves every
/// block keeping its activations.
void check_blocks(const RecipeOptions& recipe, Model& model);

/// The model's options, with the sample shape of the recipe's data where it gives none.
[[nodiscard]] ModelOptions model_options(const RecipeOptions& recipe, const Splits& data);

}  // namespace tare

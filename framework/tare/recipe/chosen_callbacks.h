// The callbacks that a recipe names: made, and checked before any work. Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Holds a callback that a recipe names.
struct ChosenCallback {
  CallbackPtr callback{};
  std::string path{};      ///< its place in the recipe: "phases.0.callbacks.1.save_best"
  config::Node options{};  ///< all of them
  /// Returns the place of the option that has this value, "callbacks.0.csv_log.file"; else `path`.
  [[nodiscard]] std::string place_of(const std::string& value) const;
};

/// Makes the callbacks of the recipe or, with `phase`, those of that phase. Throws ConfigError,
/// with the place in the recipe, for what the registry or the callback refuses.
[[nodiscard]] std::vector<ChosenCallback> make_callbacks(const RecipeOptions& recipe,
                                                         std::optional<size_t> phase = {});

/// Throws ConfigError for a callback that cannot be made, that is given twice for one fit, that
/// watches a column which the epochs table will not have, that writes to what is no plain name,
/// that is the second to lend weights, or that mixes batches for a loss which takes no mixed
/// labels.
void check_callbacks(const RecipeOptions& recipe);

/// Throws ConfigError where a callback of phase number `phase` watches a figure that data with
/// these facts do not give: one of a validation without a validation split, or one of several
/// targets where there is one target. Throws it too where a callback cannot mix the samples.
void check_callbacks(const RecipeOptions& recipe, size_t phase, const DataFacts& facts);

}  // namespace tare

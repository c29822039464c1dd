// Whether the loss and the metrics of a recipe take the targets of its data. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Refuses a loss or a metric that does not take the target with outputs of zeros of this shape.
/// `outputs` describes them for the message; `as_number`: how the data give numbers in place of
/// classes, in front of what else is allowed; empty: that is not known.
void try_figures(const RecipeOptions& recipe, at::IntArrayRef shape, const at::Tensor& target,
                 const std::string& outputs, const std::string& as_number);

/// Whether the recipe trains one output for two classes, the probability of the second.
[[nodiscard]] bool has_one_score(const RecipeOptions& recipe, const DataFacts& data);

/// Refuses bce_with_logits for class labels that are not two, and for other outputs than one.
void check_one_score(const RecipeOptions& recipe, const DataFacts& data, int64_t classes);

/// Refuses a loss or a metric of phase number `phase` that does not take the targets of its data,
/// before there is a model of `classes` outputs.
void check_targets(const RecipeOptions& recipe, size_t phase, const Splits& data, int64_t classes);

}  // namespace tare

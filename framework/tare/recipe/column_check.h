// The columns of tables that a model takes: its options are filled from the data, or checked
// against them. Internal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Gives a model's own options `categories`, and `output_mean` and `output_deviation`, the values
/// of the data, if these are rows of a table, the model has such options, and they are not given.
/// `output_mean` and `output_deviation` are lists where there are several targets of numbers.
void add_columns(config::OwnOptions& options, const std::string& model, const DataFacts& data);

/// Whether a model multiplies its outputs by the deviation of the target, see add_columns().
[[nodiscard]] bool scales_outputs(const std::string& model);

/// Throws ConfigError if the model does not take the columns of the data: categories of a table
/// that it has no option for, other `categories` than those of the table, or codes in the rows of
/// other data that `categories` does not have. Reads all rows of the latter.
void check_columns(const RecipeOptions& recipe, const OpenData& data);

/// Returns the names of the columns whose values are codes of categories: of a table, or of rows
/// for which the model has the option `categories`.
[[nodiscard]] std::vector<std::string> category_columns(const RecipeOptions& recipe,
                                                        const DataFacts& data);

/// Whether rows of both become samples of which a model takes each number for one thing.
[[nodiscard]] bool same_columns(const RowCoding& one, const RowCoding& other);

/// Throws ConfigError unless a phase with data of its own has the columns and categories of the
/// first data, if those are a table.
void check_same_columns(const RecipeOptions& recipe, size_t phase, const DataFacts& first,
                        const DataFacts& own);

}  // namespace tare

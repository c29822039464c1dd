// read_recipe(): a recipe out of a file, checked as far as it can be without data or device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/recipe/recipe.h"

namespace tare {

/// Reads a recipe file, applies `key=value` overrides and checks what can be checked without data
/// or device: names of losses, metrics, models and data sets, that a phase loads only what an
/// earlier one saved, and that no two files of the run's folder have one name. `optimizer: adam`,
/// `model: mlp`, `data: digits` and `schedule: cosine` stand for a mapping with that kind or name.
/// Throws ConfigError, naming file, line and column; IoError.
[[nodiscard]] RecipeOptions read_recipe(const std::filesystem::path& file,
                                        const std::vector<std::string>& overrides = {});

/// Reads a recipe out of a text likewise; `name` is that of the text in messages.
[[nodiscard]] RecipeOptions recipe_from_text(const std::string& text, const std::string& name,
                                             const std::vector<std::string>& overrides = {});

/// Checks a recipe made in code as read_recipe() checks one of a file. Throws ConfigError.
void check_recipe(const RecipeOptions& recipe);

}  // namespace tare

// Errors about a value of a recipe, at its place in the file. Internal.
#pragma once

#include <string>

#include "tare/base/error.h"
#include "tare/recipe/recipe.h"

namespace tare {

/// Throws the ConfigError of a value of a run's recipe. `problem` continues the path.
[[noreturn]] void refuse(const RecipeOptions& recipe, const std::string& path,
                         const std::string& problem, const std::string& allowed,
                         const std::string& got);

/// Gives a ConfigError of `call` the place of a value.
template <class Call>
void at_value(const RecipeOptions& recipe, const std::string& path, const Call& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    throw error.within("", recipe.file.place(path));
  }
}

}  // namespace tare

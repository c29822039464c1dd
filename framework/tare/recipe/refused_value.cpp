// Throws errors about a value of a recipe.
#include "tare/recipe/refused_value.h"

namespace tare {

void refuse(const RecipeOptions& recipe, const std::string& path, const std::string& problem,
            const std::string& allowed, const std::string& got) {
  throw ConfigError("recipe.run", path, problem, allowed, got).within("", recipe.file.place(path));
}

}  // namespace tare

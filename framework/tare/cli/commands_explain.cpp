#include <iostream>

#include "tare/cli/command.h"
#include "tare/recipe/recipe_keys.h"

namespace tare::cli {

int explain_command(const Arguments& arguments) {
  std::string text;
  for (const auto& path : arguments.positional()) text += explanation(recipe_key(path));
  if (arguments.positional().empty())
    for (const auto& key : recipe_keys()) text += explanation(key);
  std::cout << text;
  return kSuccess;
}

}  // namespace tare::cli

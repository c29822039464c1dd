// `tare explain`: prints what a key of a recipe means.
#include <algorithm>
#include <iostream>

#include "tare/base/terminal.h"
#include "tare/cli/command.h"
#include "tare/recipe/recipe_keys.h"

namespace tare::cli {

int explain_command(const Arguments& arguments) {
  constexpr size_t kWidest = 80;
  const size_t width = std::min(kWidest, width_for(std::cout));
  std::string text;
  for (const auto& path : arguments.positional()) text += explanation(recipe_key(path), width);
  if (arguments.positional().empty())
    for (const auto& key : recipe_keys()) text += explanation(key, width);
  std::cout << text;
  return kSuccess;
}

}  // namespace tare::cli

// `tare explain`: prints what a key of a recipe, or an option of what it names, means.
#include <algorithm>
#include <cerrno>  // program_invocation_short_name
#include <iostream>
#include <string>

#include "tare/base/parts.h"
#include "tare/base/terminal.h"
#include "tare/cli/command.h"
#include "tare/cli/entries.h"
#include "tare/recipe/recipe_keys.h"

namespace tare::cli {

int explain_command(const Arguments& arguments) {
  constexpr size_t kWidest = 80;
  const size_t width = std::min(kWidest, width_for(std::cout));
  std::string text;
  for (const auto& path : arguments.positional()) {
    const auto of_entry = is_recipe_key(path) ? std::nullopt : entry_explanation(path, width);
    if (of_entry) {
      text += *of_entry;
    } else {  // a sweep may have the key too: "seed"
      text += explanation(recipe_key(path), width);
      text += sweep_key_explanation(path, width).value_or("");
    }
  }
  if (arguments.positional().empty())
    for (const auto& key : recipe_keys()) text += explanation(key, width);
  const std::string program = program_invocation_short_name;  // may be a user's own
  std::cout << replaced(std::move(text), " tare run RECIPE", ' ' + program + " run RECIPE");
  return kSuccess;
}

}  // namespace tare::cli

// `tare explain`: prints what a key of a recipe, or an option of what it names, means.
#include <algorithm>
#include <cerrno>  // program_invocation_short_name
#include <filesystem>
#include <iostream>
#include <string>

#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/base/terminal.h"
#include "tare/cli/entries.h"
#include "tare/cli/handlers.h"
#include "tare/cli/shipped.h"
#include "tare/recipe/recipe_keys.h"

namespace tare::cli {

namespace {

/// Throws ConfigError for a file in the place of a key.
void refuse_file(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at may be a key
  if (path.find_first_of("/.") == std::string::npos || is_recipe_key(path) ||
      !std::filesystem::exists(path, ignored))
    return;
  const std::string kind = other_kind(path), shown = printable(path);
  throw ConfigError(
      "tare explain",
      "'" + shown + "' is no key: it " +
          (kind.empty() ? "is a file; `tare validate " + shown + "` checks that of a recipe"
                        : kind) +
          "; tare explain takes keys of a recipe, such as data.columns");
}

}  // namespace

int explain_command(const Arguments& arguments) {
  constexpr size_t kWidest = 80;
  const size_t width = std::min(kWidest, width_for(std::cout));
  std::string text;
  for (const auto& path : arguments.positional()) {
    refuse_file(path);
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

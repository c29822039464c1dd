// `tare completion` and `tare man`: prints scripts for shells, and man pages.
#include <filesystem>
#include <iostream>
#include <string_view>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/cli/completion.h"
#include "tare/cli/entries.h"
#include "tare/cli/handlers.h"
#include "tare/cli/man_page.h"
#include "tare/cli/man_recipe.h"
#include "tare/config/node.h"
#include "tare/recipe/recipe_keys.h"

namespace tare::cli {

namespace {

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const auto& key : recipe_keys()) {
    if (key.type == "a mapping" || key.path == "phases") continue;
    Setting setting{key.path, key.words};
    if (key.type.starts_with("a list"))
      for (auto& value : setting.values) value = '[' + value + ']';
    const bool plain = key.default_value.find_first_of(" []{}\"'") == std::string::npos;
    if (setting.values.empty() && plain && !key.default_value.empty())
      setting.values.push_back(key.default_value);
    all.push_back(std::move(setting));
  }
  return all;
}

/// Returns what `tare explain` takes beside the keys of a recipe.
std::vector<std::string> options_of_entries() {
  std::vector<std::string> all;
  for (const auto& kind : entry_kinds())
    for (const auto& entry : kind.entries) {
      all.push_back(kind.key + '.' + entry.name);
      for (const auto& option : entry.options) all.push_back(option.path);
    }
  return all;
}

/// Returns the man page of a name as `tare man` and as `man` take it: "run" or "tare-run".
std::string page_of(const std::string& word) {
  constexpr std::string_view kPrefix = "tare-";
  const std::string name = word.starts_with(kPrefix) ? word.substr(kPrefix.size()) : word;
  if (name == "tare") return man_overview(commands(), TARE_VERSION);
  if (name == "recipe") return man_recipe(recipe_keys(), TARE_VERSION);
  std::vector<std::string> names{"recipe"};
  for (const auto& command : commands()) {
    if (command.name == name) return man_page(command, TARE_VERSION);
    names.push_back(command.name);
  }
  throw ConfigError("tare man", "no page is named '" + printable(word) + "'" +
                                    did_you_mean(name, names) + "; there are " + listed(names));
}

}  // namespace

int completion_command(const Arguments& arguments) {
  std::cout << completion(arguments.positional().front(), commands(), settings(),
                          options_of_entries(), program_invocation_short_name);
  return kSuccess;
}

int man_command(const Arguments& arguments) {
  if (!arguments.has("out")) {
    const auto& words = arguments.positional();
    std::cout << page_of(words.empty() ? "tare" : words.front());
    return kSuccess;
  }
  const std::filesystem::path root = arguments.get("out"), folder = root / "man1";
  io::make_directories(folder);
  io::make_directories(root / "man5");
  io::write_atomically(root / "man5" / "tare-recipe.5", man_recipe(recipe_keys(), TARE_VERSION));
  io::write_atomically(folder / "tare.1", man_overview(commands(), TARE_VERSION));
  for (const auto& command : commands())
    io::write_atomically(folder / ("tare-" + command.name + ".1"), man_page(command, TARE_VERSION));
  return kSuccess;
}

}  // namespace tare::cli

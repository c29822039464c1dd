#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/cli/command.h"
#include "tare/data/datasets.h"
#include "tare/model/registry.h"

namespace tare::cli {
namespace {

void print_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  size_t width = 0;
  for (const auto& [name, unused] : pairs) width = std::max(width, name.size());
  for (const auto& [name, summary] : pairs) {
    std::cout << name << std::string(width + 2 - name.size(), ' ') << summary << '\n';
  }
}

// The first comment of a recipe file says what it shows.
std::string first_comment(const std::filesystem::path& file) {
  const std::string text = io::read_text(file);
  const std::string line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : "";
}

// Recipes below the current folder, where a checkout keeps them.
std::vector<std::pair<std::string, std::string>> recipes() {
  std::vector<std::pair<std::string, std::string>> found;
  const std::filesystem::path root = "recipes/configs";
  if (!std::filesystem::is_directory(root)) {
    throw ConfigError("tare ls",
                      "there is no folder recipes/configs here; run it from the project's root");
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".yaml")
      found.emplace_back(entry.path().string(), first_comment(entry.path()));
  }
  std::ranges::sort(found);
  return found;
}

int64_t count_of(const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ConfigError("tare data", "--count must be a whole number, got '" + printable(text) + "'");
  }
  return count;
}

}  // namespace

int list_command(const Arguments& arguments) {
  const std::string& what = arguments.positional().front();
  std::vector<std::pair<std::string, std::string>> rows;
  if (what == "models") {
    for (const auto& name : models::names()) rows.emplace_back(name, models::family(name).summary);
  } else if (what == "datasets") {
    for (const auto& info : datasets::list()) rows.emplace_back(info.name, info.summary);
  } else if (what == "recipes") {
    rows = recipes();
  } else {
    throw ConfigError("tare ls", "there are models, recipes and datasets to list, got '" +
                                     printable(what) + "'" +
                                     did_you_mean(what, {"models", "recipes", "datasets"}));
  }
  print_pairs(rows);
  return kSuccess;
}

int data_command(const Arguments& arguments) {
  const std::string& verb = arguments.positional()[0];
  const std::string& name = arguments.positional()[1];
  if (verb == "fetch") {
    std::cout << datasets::fetch(name).string() << '\n';
    return kSuccess;
  }
  if (verb != "make")
    throw ConfigError("tare data", "there are fetch and make, got '" + printable(verb) + "'" +
                                       did_you_mean(verb, {"fetch", "make"}));
  GeneratedDigits options;
  if (arguments.has("count")) options.count = count_of(arguments.get("count"));
  if (arguments.has("style")) options.style = arguments.get("style");
  const std::filesystem::path folder =
      arguments.get("out", (datasets::cache_folder() / name).string());
  for (const auto& file : datasets::make_files(name, folder, options))
    std::cout << file.string() << '\n';
  return kSuccess;
}

}  // namespace tare::cli

// Finds the files that come with the program.
#include "tare/cli/shipped.h"

#include <algorithm>

#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

/// Returns a folder of the checkout that is the current folder, else that of the program.
fs::path folder_of(const fs::path& in_checkout, const char* in_share, const char* what) {
  if (fs::is_directory(in_checkout)) return in_checkout;
  const auto program = fs::read_symlink("/proc/self/exe");
  const auto with_program = program.parent_path().parent_path() / "share" / "tare" / in_share;
  if (fs::is_directory(with_program)) return with_program;
  throw ConfigError("tare", "no " + std::string(what) + " are here: neither " +
                                printable(fs::absolute(in_checkout).string()) + " nor " +
                                printable(with_program.string()) +
                                " is a folder; start the program in a checkout of Tare, or install "
                                "it with its recipes (cmake --install)");
}

fs::path recipe_folder() { return folder_of("recipes/configs", "recipes", "recipes"); }

/// Returns the short name of a recipe that comes with Tare, such as digits/staged.
std::string short_name(const ListEntry& recipe) {
  return fs::path(recipe.name).lexically_relative(recipe_folder()).replace_extension().string();
}

/// Returns the word without the extension of a recipe's file.
std::string without_extension(const std::string& word) {
  const fs::path path = word;
  return path.extension() == ".yaml" ? fs::path(path).replace_extension().string() : word;
}

// The first comment of a recipe file describes what it shows.
std::string first_comment(const fs::path& file) {
  const std::string text = io::read_text(file);
  const std::string line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : "";
}

}  // namespace

std::vector<ListEntry> shipped_recipes() {
  std::vector<ListEntry> found;
  for (const auto& entry : fs::recursive_directory_iterator(recipe_folder())) {
    if (entry.path().extension() == ".yaml")
      found.push_back({entry.path().string(), first_comment(entry.path())});
  }
  std::ranges::sort(found, {}, &ListEntry::name);
  return found;
}

bool is_shipped_recipe(const std::string& word) {
  return std::ranges::any_of(shipped_recipes(), [&](const ListEntry& recipe) {
    return short_name(recipe) == without_extension(word);
  });
}

fs::path recipe_path(const std::string& word) {
  if (fs::is_directory(word)) {
    const fs::path inside = fs::path(word) / "recipe.yaml";
    const std::string path = printable(inside.string());
    throw ConfigError("tare", "'" + printable(word) + "' is a folder: name the file of a recipe" +
                                  (fs::is_regular_file(inside)
                                       ? ", here " + path + "; `tare run " + path +
                                             " --resume` continues an unfinished run of it"
                                       : ""));
  }
  if (fs::path(word).extension() == ".tare" && fs::exists(word)) {
    const std::string bundle = printable(word);
    throw ConfigError("tare", "'" + bundle + "' is a bundle, not a recipe: `tare predict " +
                                  bundle + " INPUT` predicts with it, and `model.weights=" +
                                  bundle + "` starts the training of a recipe from its weights");
  }
  if (fs::exists(word)) return word;
  std::vector<std::string> names;
  for (const auto& recipe : shipped_recipes()) {
    names.push_back(short_name(recipe));
    if (names.back() == without_extension(word)) return recipe.name;
  }
  if (fs::path(word).has_extension()) return word;
  throw ConfigError("tare", "neither a file nor a recipe that comes with Tare is named '" +
                                printable(word) + "'" + did_you_mean(word, names) +
                                "; tare ls recipes lists the recipes");
}

fs::path project_folder() { return folder_of("recipes/project", "project", "files of a project"); }

}  // namespace tare::cli

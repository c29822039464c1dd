// Finds the files that come with the program.
#include "tare/cli/shipped.h"

#include <algorithm>
#include <array>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/parts.h"

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

std::string other_kind(const std::string& path) {
  constexpr std::array kData{".csv", ".tsv", ".jsonl", ".ndjson", ".npy"};
  constexpr std::array kWeights{".safetensors", ".pt", ".pth"};
  std::error_code ignored;  // what cannot be looked at is refused when it is read
  if (fs::is_directory(path, ignored)) return "is a folder";
  if (!fs::is_regular_file(path, ignored)) return {};
  const std::string extension = lower_case(fs::path(path).extension().string());
  const std::string shown = printable(path), inspect = "`tare inspect " + shown + "` describes ";
  if (extension == ".tare")
    return "is a bundle: " + inspect + "it, and `tare predict " + shown +
           " INPUT` predicts with it";
  if (std::ranges::find(kWeights, extension) != kWeights.end())
    return "has weights: " + inspect + "them";
  if (std::ranges::find(kData, extension) != kData.end())
    return "has data: `tare data check " + shown + "` looks through them";
  return {};
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
  if (const std::string kind = other_kind(word); !kind.empty())
    throw ConfigError("tare", "'" + printable(word) + "' is no recipe: it " + kind);
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

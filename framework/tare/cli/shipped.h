// The files that come with the program: recipes by name, and the files of a new project. Internal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/base/table.h"

namespace tare::cli {

/// Returns the recipes that come with the program, or those of the checkout that is the current
/// folder: the path of each, and the first comment in it; sorted. Throws ConfigError where there is
/// neither folder, IoError.
[[nodiscard]] std::vector<ListEntry> shipped_recipes();

/// Whether a recipe that comes with Tare has this short name, such as digits/staged. Throws as
/// shipped_recipes().
[[nodiscard]] bool is_shipped_recipe(const std::string& word);

/// Returns the path of a recipe that a command names: of the shipped recipe "digits/staged", or
/// `word` itself where it is a file or has an extension. Throws ConfigError, naming the nearest,
/// for a word without extension that is neither, and for a folder, with the recipe in it.
[[nodiscard]] std::filesystem::path recipe_path(const std::string& word);

/// Returns what a file or a folder is that is neither a recipe nor a sweep, with the command that
/// takes it: "is a bundle: `tare inspect x.tare` describes it ..."; empty: it may be one, or is not
/// there.
[[nodiscard]] std::string other_kind(const std::string& path);

/// Returns the folder with the files of a new project. Throws ConfigError where it is missing.
[[nodiscard]] std::filesystem::path project_folder();

}  // namespace tare::cli

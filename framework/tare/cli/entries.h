// Everything that has a name in a registry, with its options, as `tare ls`, `tare explain` and
// completion show it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tare/recipe/recipe_keys.h"

namespace tare::cli {

/// Describes an entry of a registry with its options.
struct NamedEntry {
  std::string name{};                ///< "resnet9"
  std::string summary{};             ///< one line without a full stop
  std::vector<RecipeKey> options{};  ///< their paths are "model.resnet9.width"
};

/// Holds the entries of one registry.
struct EntryKind {
  std::string list{};                 ///< the word of `tare ls`: "models"
  std::string key{};                  ///< the word of recipes, sweeps and `tare explain`: "model"
  std::vector<NamedEntry> entries{};  ///< sorted by name
};

/// Returns all kinds but the recipes, in the order of their lists. Names, types, defaults and
/// allowed values are asked of the registries; docs/recipes.md and docs/sweeps.md, which are built
/// into the program, say what an option means. An option that a program adds has no meaning there.
[[nodiscard]] std::vector<EntryKind> entry_kinds();

/// Returns the name of an option without its path: "width".
[[nodiscard]] std::string option_name(const RecipeKey& option);

/// Returns what `tare explain` prints of an entry, "model.resnet9", or of its option,
/// "model.resnet9.width", in lines of at most `width` columns. The list's word, "models.resnet9",
/// and the recipe's path, "data.transforms.flip" or "model.options.depth", are taken too, and
/// "resnet9" alone, and a key of a sweep's file, "trials". Unset: the path names none of them.
/// Throws ConfigError, naming the nearest, for an unknown entry with an option, for an unknown
/// option, and for a word that is nearest to an entry; for a kind without an entry it says how to
/// list them.
[[nodiscard]] std::optional<std::string> entry_explanation(const std::string& path, size_t width);

/// Returns what `tare explain` prints of a key of a sweep's file and of the keys below it,
/// "on_failure", in lines of at most `width` columns; unset: there is none.
[[nodiscard]] std::optional<std::string> sweep_key_explanation(const std::string& path,
                                                               size_t width);

/// docs/sweeps.md, as it was when the program was built.
extern const char* const kSweepsPage;

}  // namespace tare::cli

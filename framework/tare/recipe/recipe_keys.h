// The keys of a recipe, each with its meaning, type, default and an example: for `tare explain`,
// the man page tare-recipe(5) and completion.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Describes one key. What it means stands in docs/recipes.md, which is built into the program; all
/// else is asked of the options themselves.
struct RecipeKey {
  std::string path{};           ///< "batch", "phases.N.lr", "phases.N.schedule.kind"
  std::string meaning{};        ///< plain text, without a full stop at the end
  std::string type{};           ///< "a whole number", "a mapping", "a list of text"
  std::string default_value{};  ///< as YAML; empty: there is none
  std::string range{};          ///< "must be >= 1"; beside words what else it takes; may be empty
  std::vector<std::string> words{};  ///< names that it takes, and true and false; may be empty
  /// Holds a setting as `tare run` takes it, with another value than the default: "batch=128"; or
  /// two of them, where one needs the other.
  std::string example{};
};

/// Returns every key, mappings before what is in them, in the order of the options. Made at the
/// first call.
[[nodiscard]] const std::vector<RecipeKey>& recipe_keys();

/// Whether recipe_key() knows the path.
[[nodiscard]] bool is_recipe_key(const std::string& path);

/// Returns the key at a path; the number of a phase may stand for N, or nothing at all:
/// "phases.0.lr", "phases.lr". Throws ConfigError for an unknown one, naming the nearest.
[[nodiscard]] const RecipeKey& recipe_key(const std::string& path);

/// Returns what the key takes: its words and its range, "auto, or a number >= 1"; empty: any value
/// of its type.
[[nodiscard]] std::string allowed_text(const RecipeKey& key);

/// Returns what `tare explain` prints of a key: lines of at most `width` columns, each with a
/// newline.
[[nodiscard]] std::string explanation(const RecipeKey& key, size_t width = 80);

/// docs/recipes.md, as it was when the program was built.
extern const char* const kRecipePage;

/// Holds a row of the page's tables: "key" or "phases.N.key", and its text without Markdown.
struct KeyText {
  std::string path{}, default_value{}, meaning{};  ///< cells of the row
};
/// Reads them from the text of docs/recipes.md, in the page's order.
[[nodiscard]] std::vector<KeyText> key_texts(std::string_view page);

}  // namespace tare

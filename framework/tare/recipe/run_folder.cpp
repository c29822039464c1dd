// Chooses the folder of a run, and removes what an earlier run has left there.
#include "tare/recipe/run_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/autosave.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/config/node.h"
#include "tare/recipe/file_names.h"
#include "tare/recipe/resume.h"
#include "tare/report/run_failure.h"
#include "tare/report/run_files.h"
#include "tare/report/worst_rows.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

fs::path numbered(const fs::path& base, int64_t number) {
  fs::path path = base;
  return number == 1 ? path : path += "-" + std::to_string(number);
}

// A folder that may not be looked into is refused where the run's is made.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The first line of the recipe.yaml of a run, by which a run's folder is known.
constexpr std::string_view kMark = "# The settings of a run with every default, written by Tare.\n";

}  // namespace

bool holds_recipe_of_run(const fs::path& folder) {
  const fs::path file = folder / "recipe.yaml";
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && io::read_text(file).starts_with(kMark);
}

namespace {

// A run that a kill ended before its first checkpoint has no report either. A report that cannot be
// read is taken for that of a finished run, so that nothing of it is removed.
bool is_finished(const fs::path& folder) {
  const fs::path file = folder / "report.json";
  if (!is_there(file) || has_autosaves(folder)) return false;
  const auto report = nlohmann::json::parse(io::read_text(file), nullptr,
                                            /*allow_exceptions=*/false);
  return !report.is_object() || !report.contains("reason") ||
         report["reason"] != to_string(StopReason::interrupted);
}

bool is_autosave(const std::string& name) {
  const auto names = automatic_checkpoints();
  return std::ranges::find(names, name) != names.end();
}

/// Lists the files that a run of any recipe and `tare report` write in its folder.
std::vector<std::string> kept_names() {
  return {"recipe.yaml", "report.json", "report.html", report::kWorstRowsFile,
          report::kFailureFile};
}

/// Lists what a run of the recipe writes in its folder.
std::vector<std::string> written_names(const RecipeOptions& recipe) {
  std::vector<std::string> names = kept_names();
  for (const auto& more : {automatic_checkpoints(), result_names(recipe)})
    names.insert(names.end(), more.begin(), more.end());
  return names;
}

// Links count too, wherever they lead.
bool is_taken(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(folder / name, ignored));
}

/// Whether the folder has nothing that a run of the recipe would write over.
bool is_free(const RecipeOptions& recipe, const fs::path& folder) {
  return std::ranges::none_of(written_names(recipe),
                              [&](const auto& name) { return is_taken(folder, name); });
}

// Whether the name is that of an entry of a folder: no path leads out of it.
bool is_entry(const fs::path& name) {
  return name.filename() == name && name != "." && name != "..";
}

/// Lists what the earlier run of the folder has written by its own recipe; none: the folder holds
/// no recipe of a run.
std::vector<std::string> earlier_names(const fs::path& folder) {
  if (!holds_recipe_of_run(folder)) return {};
  const fs::path file = folder / "recipe.yaml";
  try {
    const auto recipe = config::read<RecipeOptions>(config::parse_file(file));
    check_file_names(recipe);
    auto names = written_names(recipe);
    if (std::ranges::all_of(names, is_entry)) return names;
    throw ConfigError(file.string(), "names a file that is not in the folder");
  } catch (const ConfigError& error) {
    log::warning("which files an earlier run has written to '" + printable(folder.string()) +
                 "' is not known, because its recipe cannot be read: " + error.what());
    return kept_names();
  }
}

/// Throws ConfigError for the first of the names that is taken by what no run has written there:
/// an automatic checkpoint is known by its content, all else by the recipe of the earlier run.
void require_own(const fs::path& folder, const std::vector<std::string>& names,
                 const std::vector<std::string>& earlier) {
  for (const auto& name : names) {
    if (!is_taken(folder, name)) continue;
    const bool is_own = is_autosave(name) ? checkpoint::exists(folder / name)
                                          : std::ranges::find(earlier, name) != earlier.end();
    if (!is_own)
      throw ConfigError("recipe.run", "'" + printable(folder.string()) + "' holds '" +
                                          printable(name) +
                                          "', which the run would write over and which no earlier "
                                          "run is known to have written: move it away, or set "
                                          "another name or folder");
  }
}

RunFolder locked(const fs::path& path) {
  io::make_directories(path);
  return {.path = path, .lock = std::make_unique<io::FolderLock>(path)};
}

// A run of another recipe may have such a name: "digits-2" is no second run of "digits".
bool is_of(const std::string& name, const fs::path& folder) {
  if (!holds_recipe_of_run(folder)) return true;
  const config::Node recipe = config::parse_file(folder / "recipe.yaml");
  const config::Node* own = recipe.find("name");
  return !own || own->text == name;
}

// Another process may be running there, or the folder may be somebody else's.
bool can_be_taken(const fs::path& path) {
  try {
    const io::FolderLock lock(path);
    return true;
  } catch (const Error& error) {
    log::debug("an unfinished run is not offered: " + std::string(error.what()));
    return false;
  }
}

// Two programs that are started at once find two folders: one that the other has locked is passed,
// and whether it holds a run is asked again under the lock.
RunFolder new_folder(const RecipeOptions& recipe, const fs::path& base) {
  fs::path unfinished;
  for (int64_t number = 1;; ++number) {
    const fs::path path = numbered(base, number);
    if (!is_free(recipe, path)) {
      if (has_autosaves(path) && can_be_taken(path)) unfinished = path;
      continue;
    }
    try {
      RunFolder folder = locked(path);
      folder.unfinished = unfinished;
      if (is_free(recipe, path)) return folder;
    } catch (const StateError& error) {
      log::debug("another folder is looked for: " + std::string(error.what()));
    }
  }
}

// The runs of the series that are there, by their numbers; the first if there is none.
std::vector<int64_t> numbers_of(const std::string& name, const fs::path& base) {
  std::vector<int64_t> numbers{1};
  for (int64_t number = 2; is_there(numbered(base, number)); ++number)
    if (is_of(name, numbered(base, number))) numbers.push_back(number);
  return numbers;
}

RunFolder resumed(const fs::path& path, const RecipeOptions& recipe, const Origin& origin) {
  RunFolder folder = locked(path);
  require_own(path, Autosave::names(), {});
  folder.from = find_resumable(path, result_names(recipe), origin);
  io::remove_all(path / report::kFailureFile);
  return folder;
}

/// Whether the file is the path, or lies in it.
bool is_in(const fs::path& file, const fs::path& path) {
  const fs::path whole = fs::weakly_canonical(file), start = fs::weakly_canonical(path);
  return std::ranges::mismatch(start, whole).in1 == start.end();
}

void require_not_start(const RecipeOptions& recipe, const fs::path& file) {
  const std::string& weights = recipe.model.options.weights;
  if (!weights.empty() && is_in(weights, file))
    throw ConfigError("recipe.run",
                      "the run starts from '" + printable(weights) +
                          "', a result of the earlier run, which would be removed: move it out of "
                          "the folder, or set another name or folder");
}

/// Makes the folder one of a new run. What an earlier run has written is removed, by the recipe of
/// that run, so that neither a predictor nor a report takes it for a result of the new run. Its
/// automatic checkpoints are set aside. The report comes first: it says that a run ended.
void start_anew(const RecipeOptions& recipe, const fs::path& folder) {
  auto earlier = earlier_names(folder);
  require_own(folder, written_names(recipe), earlier);
  std::erase_if(earlier,
                [](const auto& name) { return name == "recipe.yaml" || is_autosave(name); });
  for (const auto& name : earlier) require_not_start(recipe, folder / name);
  set_autosaves_aside(folder, earlier);
  for (const auto& name : earlier) io::remove_all(folder / name);
}

}  // namespace

void write_recipe(const RecipeOptions& recipe, const fs::path& folder) {
  io::write_atomically(folder / "recipe.yaml",
                       std::string(kMark) + config::to_yaml(config::to_node(recipe)));
}

RunFolder open_run_folder(const RecipeOptions& recipe, Resume resume, bool overwrite,
                          const Origin& origin) {
  const fs::path base = recipe.folder / recipe.name;
  const auto anew = [&](const fs::path& path) {
    RunFolder folder = locked(path);
    start_anew(recipe, path);
    return folder;
  };
  if (resume == Resume::never) return overwrite ? anew(base) : new_folder(recipe, base);
  const auto numbers = overwrite ? std::vector<int64_t>{1} : numbers_of(recipe.name, base);
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    if (has_autosaves(numbered(base, *number)))
      return resumed(numbered(base, *number), recipe, origin);
  if (resume == Resume::always) refuse_resume(base);
  const fs::path path = numbered(base, numbers.back());
  if (overwrite) return anew(path);
  if (!holds_recipe_of_run(path)) return new_folder(recipe, base);
  const auto results = result_names(recipe);
  const bool has_weights = std::ranges::any_of(
      results, [&](const auto& name) { return checkpoint::exists(path / name); });
  if (!is_finished(path) && !has_weights) return anew(path);
  {
    const RunFolder finished = locked(path);
    remove_leftovers(path, result_names(recipe));  // of a run that was killed after its end
  }
  return new_folder(recipe, base);
}

}  // namespace tare

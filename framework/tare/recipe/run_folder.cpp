// Chooses the folder of a run, and removes what an earlier run has left there.
#include "tare/recipe/run_folder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/autosave.h"
#include "tare/config/node.h"
#include "tare/recipe/file_names.h"
#include "tare/recipe/resume.h"

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

bool holds_run(const fs::path& folder) {
  return is_there(folder / "recipe.yaml") || is_there(folder / "report.json") ||
         has_autosaves(folder);
}

// A run that a kill ended before its first checkpoint has no report either.
bool is_finished(const fs::path& folder) {
  return is_there(folder / "report.json") && !has_autosaves(folder);
}

/// Returns a name that the run would write and that is taken in a folder without a run; empty:
/// there is none. Links count too, wherever they lead.
std::string foreign_file(const RecipeOptions& recipe, const fs::path& folder) {
  if (holds_run(folder)) return {};
  std::error_code ignored;
  for (const auto& name : result_names(recipe))
    if (fs::exists(fs::symlink_status(folder / name, ignored))) return name;
  return {};
}

void require_no_foreign_file(const RecipeOptions& recipe, const fs::path& folder) {
  const std::string name = foreign_file(recipe, folder);
  if (!name.empty())
    throw ConfigError("recipe.run", "'" + printable(folder.string()) + "' holds no run, but '" +
                                        printable(name) +
                                        "', which the run would write over: move it away, or set "
                                        "another name or folder");
}

RunFolder locked(const fs::path& path) {
  io::make_directories(path);
  return {.path = path, .lock = std::make_unique<io::FolderLock>(path)};
}

// A run of another recipe may have such a name: "digits-2" is no second run of "digits".
bool is_of(const std::string& name, const fs::path& folder) {
  const fs::path file = folder / "recipe.yaml";
  if (!is_there(file)) return true;
  const config::Node recipe = config::parse_file(file);
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
  const auto is_free = [&](const fs::path& path) {
    return !holds_run(path) && foreign_file(recipe, path).empty();
  };
  fs::path unfinished;
  for (int64_t number = 1;; ++number) {
    const fs::path path = numbered(base, number);
    if (!is_free(path)) {
      if (has_autosaves(path) && can_be_taken(path)) unfinished = path;
      continue;
    }
    try {
      RunFolder folder = locked(path);
      folder.unfinished = unfinished;
      if (is_free(path)) return folder;
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

RunFolder resumed(const fs::path& path, const Origin& origin) {
  RunFolder folder = locked(path);
  folder.from = find_resumable(path, origin);
  return folder;
}

/// Whether the file is the path, or lies in it.
bool is_in(const fs::path& file, const fs::path& path) {
  const fs::path whole = fs::weakly_canonical(file), start = fs::weakly_canonical(path);
  return std::ranges::mismatch(start, whole).in1 == start.end();
}

void remove_file_of(const RecipeOptions& recipe, const fs::path& file) {
  const std::string& weights = recipe.model.options.weights;
  if (weights.empty() || !is_in(weights, file)) io::remove_all(file);
}

// Whether the name is that of an entry of a folder: no path leads out of it.
bool is_entry(const fs::path& name) {
  return name.filename() == name && name != "." && name != "..";
}

// Lists what the earlier run of the folder has written by its own recipe.
std::vector<std::string> earlier_results(const fs::path& folder) {
  const fs::path file = folder / "recipe.yaml";
  if (!is_there(file)) return {};
  try {
    const auto recipe = config::read<RecipeOptions>(config::parse_file(file));
    check_file_names(recipe);
    auto names = result_names(recipe);
    if (std::ranges::all_of(names, is_entry)) return names;
    throw ConfigError(file.string(), "names a file that is not in the folder");
  } catch (const ConfigError& error) {
    log::warning("files that an earlier run has written to '" + printable(folder.string()) +
                 "' may stay there, because its recipe cannot be read: " + error.what());
    return {};
  }
}

// Removes what an earlier run has written, by its own recipe and under the names of this one, so
// that neither a predictor nor a report takes it for a result of this run. The report comes first:
// it says that a run ended. Weights from which this run starts stay until the run writes over them.
void remove_results(const RecipeOptions& recipe, const fs::path& folder) {
  const auto earlier = earlier_results(folder);
  for (const char* name : {"report.json", "report.html"}) remove_file_of(recipe, folder / name);
  for (const auto& names : {earlier, result_names(recipe)})
    for (const auto& name : names) remove_file_of(recipe, folder / name);
}

}  // namespace

RunFolder open_run_folder(const RecipeOptions& recipe, Resume resume, bool overwrite,
                          const Origin& origin) {
  const fs::path base = recipe.folder / recipe.name;
  if (resume == Resume::never && !overwrite) return new_folder(recipe, base);
  if (resume == Resume::never) {
    RunFolder folder = locked(base);
    require_no_foreign_file(recipe, base);
    set_autosaves_aside(base);
    remove_results(recipe, base);
    return folder;
  }
  const auto numbers = overwrite ? std::vector<int64_t>{1} : numbers_of(recipe.name, base);
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    if (has_autosaves(numbered(base, *number))) return resumed(numbered(base, *number), origin);
  if (resume == Resume::always) refuse_resume(base);
  const fs::path path = numbered(base, numbers.back());
  if (overwrite) require_no_foreign_file(recipe, path);
  if (!foreign_file(recipe, path).empty()) return new_folder(recipe, base);
  if (overwrite || !is_finished(path)) {
    RunFolder folder = resumed(path, origin);
    if (!folder.from) remove_results(recipe, path);
    return folder;
  }
  {
    const RunFolder finished = locked(path);
    remove_leftovers(path);  // of a run that was killed after its end
  }
  return new_folder(recipe, base);
}

}  // namespace tare

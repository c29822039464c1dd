// Chooses the folder of a run, and checks the names of its files.
#include "tare/recipe/run_folder.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/autosave.h"
#include "tare/config/node.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/phase_data.h"
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
RunFolder new_folder(const fs::path& base) {
  fs::path unfinished;
  for (int64_t number = 1;; ++number) {
    const fs::path path = numbered(base, number);
    if (holds_run(path)) {
      if (has_autosaves(path) && can_be_taken(path)) unfinished = path;
      continue;
    }
    try {
      RunFolder folder = locked(path);
      folder.unfinished = unfinished;
      if (!holds_run(path)) return folder;
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

// Removes what an earlier run has left under the names of this one, so that a run which is killed
// before its first checkpoint is not taken for that run. The report comes first: it says that a run
// ended. Weights from which this run starts stay until the run writes over them.
void remove_results(const RecipeOptions& recipe, const fs::path& folder) {
  std::vector<std::string> names{"report.json", "report.html", export_name(recipe)};
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    for (const char* suffix : {".csv", ".steps.csv"}) names.push_back(name_of(recipe, i) + suffix);
    names.push_back(recipe.phases[i].save);
  }
  const std::string& weights = recipe.model.options.weights;
  for (const auto& name : names) {
    if (name.empty() || (!weights.empty() && is_in(weights, folder / name))) continue;
    io::remove_all(folder / name);
  }
}

// The files of a run's folder, and whose they are.
class Names {
 public:
  explicit Names(const RecipeOptions& recipe) : recipe_(recipe) {
    for (const char* name : {"recipe.yaml", "report.json", "report.html", "run_data.json",
                             "run_data.csv", "history.json", "trial.json", "timeline.csv",
                             "trace.json", "snapshot.pickle", "peak.folded"})
      own(name);
    own(recipe.name + ".log");
    own(recipe.name + ".err");
    for (const auto& name : Autosave::names()) {
      own(name);
      own("before-" + name);
    }
  }

  /// Returns a file that the run writes for every recipe.
  void own(const std::string& name) { claim(name, "", "a file of the run itself"); }

  /// Claims the folder; `key` is the place of the name in the recipe, empty: it has none.
  void claim(const std::string& name, const std::string& key, const std::string& owner) {
    // A file or folder that is written under another name first must not have that of another.
    for (const char* suffix : {"", ".partial", ".old"}) {
      const auto [found, is_new] = owners_.emplace(name + suffix, owner);
      if (is_new || key.empty()) continue;
      throw ConfigError(recipe_.file.place(key), key,
                        "would be written to '" + name + suffix +
                            "' in the run's folder, which is " + found->second,
                        "another name", name);
    }
  }

 private:
  const RecipeOptions& recipe_;
  std::map<std::string, std::string> owners_;
};

}  // namespace

RunFolder open_run_folder(const RecipeOptions& recipe, Resume resume, bool overwrite,
                          const Origin& origin) {
  const fs::path base = recipe.folder / recipe.name;
  if (resume == Resume::never && !overwrite) return new_folder(base);
  if (resume == Resume::never) {
    RunFolder folder = locked(base);
    set_autosaves_aside(base);
    remove_results(recipe, base);
    return folder;
  }
  const auto numbers = overwrite ? std::vector<int64_t>{1} : numbers_of(recipe.name, base);
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    if (has_autosaves(numbered(base, *number))) return resumed(numbered(base, *number), origin);
  if (resume == Resume::always) refuse_resume(base);
  const fs::path path = numbered(base, numbers.back());
  if (overwrite || !is_finished(path)) {
    RunFolder folder = resumed(path, origin);
    if (!folder.from) remove_results(recipe, path);
    return folder;
  }
  {
    const RunFolder finished = locked(path);
    remove_leftovers(path);  // of a run that was killed after its end
  }
  return new_folder(base);
}

std::string best_checkpoint(size_t phase) { return "best-" + std::to_string(phase); }

void check_run_files(const RecipeOptions& recipe) {
  Names names(recipe);
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    if (!recipe.phases[i].best.empty()) names.own(best_checkpoint(i));
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    const PhaseOptions& phase = recipe.phases[i];
    const std::string number = phase_number(i), key = "phases." + std::to_string(i);
    if (!phase.name.empty()) {
      names.claim(phase.name + ".csv", key + ".name", "the table of " + number);
      names.claim(phase.name + ".steps.csv", key + ".name", "the steps of " + number);
    }
    if (!phase.save.empty()) names.claim(phase.save, key + ".save", "the checkpoint of " + number);
  }
  for (size_t i = 0; i <= recipe.phases.size(); ++i) {
    const auto of = i == 0 ? std::optional<size_t>() : std::optional(i - 1);
    for (const auto& [callback, path] : make_callbacks(recipe, of))
      for (const auto& file : callback->facts().files)
        names.claim(file, path, "written by the callback " + callback->name());
  }
  const std::string name = export_name(recipe);
  if (!name.empty()) names.claim(name, "export", "the bundle");
}

}  // namespace tare

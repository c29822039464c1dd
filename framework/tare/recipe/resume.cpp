#include "tare/recipe/resume.h"

#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/autosave.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/config/node.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

// The first value in which two trees differ, as "a.b: 1 there, 2 here"; empty where they are equal.
std::string difference(const config::Node& there, const config::Node& here,
                       const std::string& path) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + '.' + key; };
  if (there.kind == config::Kind::map && here.kind == config::Kind::map) {
    for (const auto& entry : here.entries) {
      const config::Node* other = there.find(entry.key);
      auto found = difference(other ? *other : config::Node{}, entry.value, below(entry.key));
      if (!found.empty()) return found;
    }
    return {};
  }
  if (there.kind == config::Kind::sequence && here.kind == config::Kind::sequence &&
      there.items.size() == here.items.size()) {
    for (size_t i = 0; i < here.items.size(); ++i) {
      auto found = difference(there.items[i], here.items[i], below(std::to_string(i)));
      if (!found.empty()) return found;
    }
    return {};
  }
  if (config::to_yaml(there) == config::to_yaml(here)) return {};
  return path + " is " + config::describe(there) + " there, " + config::describe(here) + " here";
}

// What may differ between the beginning of a run and its end.
config::Node essence(RecipeOptions recipe) {
  const RecipeOptions defaults;
  recipe.device = defaults.device;
  recipe.workers = defaults.workers;
  recipe.save_every = defaults.save_every;
  recipe.folder = defaults.folder;
  return config::to_node(recipe);
}

void check_same_recipe(const RecipeOptions& recipe, const fs::path& file) {
  if (!fs::is_regular_file(file)) return;
  const auto before = config::read<RecipeOptions>(config::parse_file(file));
  const std::string changed = difference(essence(before), essence(recipe), "");
  if (changed.empty()) return;
  throw ConfigError("recipe.resume", "'" + printable(file.string()) +
                                         "' is not the recipe to go on with: " + changed +
                                         "; give the old value, or start anew without --resume");
}

void remove_leftovers(const fs::path& folder) {
  for (const auto& name : Autosave::names()) {
    for (const auto& done : io::recover_directory(folder / name)) log::info("swept: " + done);
  }
}

void set_aside(const fs::path& folder) {
  bool found = false;
  for (const auto& name : Autosave::names()) {
    if (!checkpoint::exists(folder / name)) continue;
    io::move(folder / name, folder / ("before-" + name));
    found = true;
  }
  if (found) {
    log::warning(
        "an unfinished run was in '" + folder.string() +
        "': its checkpoints are set aside as before-autosave-*; --resume would have gone on");
  }
}

}  // namespace

void refuse_resume(const fs::path& folder) {
  throw ConfigError("recipe.resume", "'" + printable(folder.string()) +
                                         "' holds no unfinished run; run without --resume, or "
                                         "with --resume auto");
}

std::optional<CheckpointInfo> find_resumable(const RecipeOptions& recipe, const fs::path& folder,
                                             Resume resume) {
  remove_leftovers(folder);
  if (resume == Resume::never) {
    set_aside(folder);
    return {};
  }
  auto newest = newest_checkpoint(folder, Autosave::names());
  if (newest) {
    check_same_recipe(recipe, folder / "recipe.yaml");
  } else if (resume == Resume::always) {
    refuse_resume(folder);
  }
  return newest;
}

void remove_autosaves(const fs::path& folder) {
  for (const auto& name : Autosave::names()) io::remove_directory_atomically(folder / name);
}

}  // namespace tare

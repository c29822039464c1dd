// Finds the newest checkpoint of a run, and refuses that of another recipe.
#include "tare/recipe/resume.h"

#include <algorithm>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/folder_lock.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/autosave.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/config/node.h"
#include "tare/recipe/phase_data.h"

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
  const bool lists = there.kind == config::Kind::sequence || here.kind == config::Kind::sequence;
  const auto text = [lists](const config::Node& node) {
    return lists ? printable(config::flow_text(node), 200) : config::describe(node);
  };
  return path + " is " + text(there) + " there, " + text(here) + " here";
}

/// The place of the data is not compared: the data may have moved, and their content is compared
/// itself.
void drop_paths(config::Node* data) {
  static const std::vector<std::string> paths{"images", "labels",      "folder",    "file",
                                              "files",  "valid_files", "test_files"};
  if (data == nullptr) return;
  std::erase_if(data->entries, [](const config::Entry& entry) {
    return std::ranges::find(paths, entry.key) != paths.end();
  });
}

config::Node tree(const std::string& yaml) { return config::parse_text(yaml, "recipe"); }

[[noreturn]] void refuse(const fs::path& folder, const std::string& what) {
  throw ConfigError("recipe.resume", "'" + printable(folder.string()) + "' " + what +
                                         ", or start anew without --resume");
}

void check_same_recipe(const fs::path& folder, const std::string& checkpoint,
                       const std::string& before, const std::string& now) {
  const std::string changed = difference_of_essences(before, now);
  if (!changed.empty())
    refuse(folder, "was begun with another recipe: " + changed +
                       "; give the old value, begin a new run with its weights by model.weights=" +
                       printable((folder / checkpoint / "model.safetensors").string(), 1000));
}

std::string phase_text(size_t phase) { return "of " + phase_number(phase); }

/// How the data differ; empty where they are equal.
std::string difference(size_t phase, const Origin::Data& before, const Origin::Data& now) {
  const auto &old_one = before.identity, &new_one = now.identity;
  if (old_one.samples != new_one.samples || old_one.digest != new_one.digest) {
    const bool as_many = old_one.samples == new_one.samples;
    const std::string both =
        before.description == now.description
            ? printable(now.description)
            : printable(before.description) + " there, " + printable(now.description) + " here";
    return "was begun with other data " + phase_text(phase) + ": " + both + "; " +
           (as_many ? "there are " + format_count(now.identity.samples) +
                          " samples as then, but their classes, targets or names of files have "
                          "changed"
                    : "there were " + format_count(old_one.samples) +
                          " samples, and now there are " + format_count(new_one.samples)) +
           "; give it the old data";
  }
  // A checkpoint of an earlier version does not know the contents.
  if (!old_one.content.empty() && !new_one.content.empty() && old_one.content != new_one.content)
    return "was begun with other contents of the data " + phase_text(phase) + ": " +
           printable(now.description) +
           " has the same names and labels as then, but its samples have changed; give it the old "
           "data";
  return {};
}

void check_same_data(const fs::path& folder, const Origin& before, const Origin& now) {
  for (size_t i = 0; i < std::min(before.data.size(), now.data.size()); ++i) {
    const std::string changed = difference(i, before.data[i], now.data[i]);
    if (!changed.empty()) refuse(folder, changed);
  }
}

// Reads the origin of a run from its checkpoint; the checkpoint of an earlier version has none, so
// the recipe beside it is read.
Origin origin_of(const CheckpointInfo& checkpoint, const fs::path& folder) {
  Origin origin;
  for (const auto& callback : checkpoint.callbacks)
    if (callback.name == Position().name()) origin = Position::origin_in(callback.state);
  if (!origin.recipe.empty()) return origin;
  const fs::path file = folder / "recipe.yaml";
  if (!fs::is_regular_file(file))
    refuse(folder, "holds a checkpoint without a recipe: recipe.yaml is not there; put it back");
  origin.recipe = essence_of(config::read<RecipeOptions>(config::parse_file(file)));
  log::warning("the checkpoint of '" + printable(folder.string()) +
               "' is of an earlier version: whether its data has changed is not known");
  return origin;
}

}  // namespace

std::string essence_of(const RecipeOptions& given) {
  RecipeOptions recipe = given;
  const RecipeOptions defaults;
  recipe.learner.device = defaults.learner.device;
  recipe.learner.stages = defaults.learner.stages;
  recipe.learner.data_parallel.shard = defaults.learner.data_parallel.shard;
  recipe.learner.data_parallel.bucket_mib = defaults.learner.data_parallel.bucket_mib;
  recipe.learner.workers = defaults.learner.workers;
  recipe.learner.save_in_background = defaults.learner.save_in_background;
  recipe.save_every = defaults.save_every;
  recipe.folder = defaults.folder;
  if (export_name(recipe).empty()) recipe.export_to.reset();
  models::note_program(recipe.model.name, recipe.model.options);
  for (auto& phase : recipe.phases) phase.lr = rate_of(given, phase);
  config::Node root = config::to_node(recipe);
  drop_paths(root.find("data"));
  if (config::Node* phases = root.find("phases"))
    for (config::Node& phase : phases->items) drop_paths(phase.find("data"));
  return config::to_yaml(root);
}

std::string difference_of_essences(const std::string& before, const std::string& now) {
  const std::string completed = essence_of(config::read<RecipeOptions>(tree(before)));
  return difference(tree(completed), tree(now), "");
}

std::string changed_data(const std::vector<CallbackState>& callbacks, size_t phase,
                         const datasets::Named& now) {
  for (const auto& callback : callbacks) {
    if (callback.name != Position().name()) continue;
    const Origin origin = Position::origin_in(callback.state);
    if (phase < origin.data.size())
      return difference(phase, origin.data[phase], {now.description, now.identity});
  }
  return {};
}

bool has_autosaves(const fs::path& folder) {
  return std::ranges::any_of(Autosave::names(), [&](const std::string& name) {
    return checkpoint::exists(folder / name);
  });
}

namespace {

// Whether a process was killed while it wrote the folder as a checkpoint, put one in its place, or
// removed one, whose files go in any order.
bool is_left_of_a_save(const fs::path& path) {
  if (!fs::is_directory(path)) return false;
  const auto files = {"manifest.json", "model.safetensors", "optimizer.safetensors",
                      "extra.safetensors"};
  return fs::is_empty(path) ||
         std::ranges::any_of(files, [&](const char* file) { return fs::exists(path / file); });
}

// Returns the name of an automatic checkpoint of a run that was not continued.
std::string set_aside(const std::string& autosave) { return "before-" + autosave; }

}  // namespace

void remove_leftovers(const fs::path& folder, std::vector<std::string> names) {
  for (const auto& name : Autosave::names()) names.push_back(name);
  for (const auto& name : names) {
    const fs::path path = folder / name;
    if (is_left_of_a_save(path.string() + ".partial") || is_left_of_a_save(path.string() + ".old"))
      for (const auto& done : io::recover_directory(path)) log::info("cleaned up: " + done);
  }
}

std::vector<std::string> automatic_checkpoints() {
  auto names = Autosave::names();
  for (const auto& name : Autosave::names()) names.push_back(set_aside(name));
  return names;
}

void set_autosaves_aside(const fs::path& folder, const std::vector<std::string>& names) {
  remove_leftovers(folder, names);
  bool found = false;
  for (const auto& name : Autosave::names()) {
    if (!checkpoint::exists(folder / name)) continue;
    io::move(folder / name, folder / set_aside(name));
    found = true;
  }
  if (found) {
    log::warning("an unfinished run was in '" + printable(folder.string()) +
                 "': its checkpoints are set aside as before-autosave-*; --resume would have "
                 "continued it");
  }
}

void refuse_resume(const fs::path& folder) {
  if (fs::is_directory(folder)) {
    const io::FolderLock nobody_works_there(folder);
  }
  for (const auto& name : Autosave::names())
    if (fs::exists(folder / name / "model.safetensors"))
      throw ConfigError("recipe.resume",
                        "'" + printable((folder / name).string()) +
                            "' is not a whole checkpoint, because its manifest.json is missing, so "
                            "the run cannot continue; move it away, and start the run anew with "
                            "--overwrite in place of --resume");
  const bool begun = fs::exists(folder / "recipe.yaml") && !fs::exists(folder / "report.json");
  throw ConfigError("recipe.resume",
                    "'" + printable(folder.string()) + "' holds no " +
                        (begun ? "automatic checkpoint yet, which save_every writes; `tare export` "
                                 "saves what else it holds; run without --resume"
                               : "unfinished run; run without --resume, or with --resume auto"));
}

namespace {

std::optional<CheckpointInfo> newest_autosave(const fs::path& folder) {
  try {
    return newest_checkpoint(folder, Autosave::names());
  } catch (const FormatError& error) {
    throw FormatError("recipe.resume", folder.string(), "its automatic checkpoints",
                      "do not verify, so the run cannot continue (" + std::string(error.what()) +
                          "); start it anew with --overwrite in place of --resume");
  }
}

}  // namespace

std::optional<CheckpointInfo> find_resumable(const fs::path& folder,
                                             const std::vector<std::string>& names,
                                             const Origin& origin) {
  remove_leftovers(folder, names);
  auto newest = newest_autosave(folder);
  if (!newest) return newest;
  const Origin before = origin_of(*newest, folder);
  check_same_data(folder, before, origin);
  check_same_recipe(folder, newest->name, before.recipe, origin.recipe);
  return newest;
}

void remove_autosaves(const fs::path& folder) {
  for (const auto& name : Autosave::names()) io::remove_directory_atomically(folder / name);
}

}  // namespace tare

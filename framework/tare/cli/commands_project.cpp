// `tare new`, `tare cp`, `tare cat` and `tare validate`: begins a project, copies, shows and checks
// recipes.
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/parts.h"
#include "tare/cli/handlers.h"
#include "tare/cli/output.h"
#include "tare/cli/shipped.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/recipe/resolve.h"
#include "tare/runtime/init.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

/// The name of the project in the files that a new one is made from.
constexpr const char* kTemplate = "my_project";

/// Returns the name of a project in this folder. It is that of a CMake target and of a run too.
std::string project_name(const fs::path& folder) {
  const std::string name = fs::absolute(folder / "").parent_path().filename().string();
  return io::checked_name(name, "DIR");
}

/// Returns the text of a recipe with the name of the project, and of its bundle where it has one.
std::string renamed(const std::string& recipe, const std::string& name) {
  std::istringstream lines(recipe);
  std::string text;
  bool is_named = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("name:")) {
      text += "name: " + name;
      is_named = true;
    } else {
      text += line.starts_with("export:") ? "export: " + name + ".tare" : line;
    }
    text += '\n';
  }
  return is_named ? text : "name: " + name + '\n' + text;
}

/// Returns a line for each path of a recipe that is relative, so that another folder has to be the
/// current one, or the path has to be changed.
std::string notes_on_paths(const RecipeOptions& recipe) {
  std::string notes;
  const auto add = [&](const std::string& key, const fs::path& path) {
    if (path.empty() || path.is_absolute()) return;
    notes += "note: " + key + " is relative; in the folder of the project it is " +
             printable(fs::absolute(path).lexically_normal().string()) + '\n';
  };
  const auto add_data = [&](const std::string& key, const DataOptions& data) {
    for (const auto& [field, path] : datasets::paths_of(data)) add(key + '.' + field, path);
  };
  add("model.weights", recipe.model.options.weights);
  if (const config::Node* file = recipe.model.options.options.node.find("file"))
    add("model.options.file", file->text);
  add_data("data", recipe.data);
  for (size_t i = 0; i < recipe.phases.size(); ++i)
    if (recipe.phases[i].data)
      add_data("phases." + std::to_string(i) + ".data", *recipe.phases[i].data);
  return notes;
}

/// Writes the files of a project of this name; `recipe`: the text of its recipe, or empty.
void write_project(const fs::path& folder, const std::string& name, const std::string& recipe) {
  for (const auto& entry : fs::directory_iterator(project_folder())) {
    const std::string file = entry.path().filename().string();
    const std::string text = replaced(io::read_text(entry.path()), kTemplate, name);
    const bool of_recipe = file == "recipe.yaml" && !recipe.empty();
    io::write_atomically(folder / (file == "gitignore" ? ".gitignore" : file),
                         of_recipe ? recipe : text);
  }
}

}  // namespace

int new_command(const Arguments& arguments) {
  const fs::path folder = fs::path(arguments.positional().front()).lexically_normal();
  const std::string name = project_name(folder);
  std::string recipe, notes;
  if (arguments.has("from")) {
    const fs::path from = recipe_path(arguments.get("from"));
    notes = notes_on_paths(read_recipe(from));
    recipe = renamed(io::read_text(from), name);
  }
  if (fs::exists(folder))
    throw ConfigError("tare new", "'" + printable(folder.string()) +
                                      "' is there already; name a folder that is not there");
  const fs::path place = folder.has_filename() ? folder : folder.parent_path();
  if (place.has_parent_path()) io::make_directories(place.parent_path());
  io::write_directory_atomically(
      place, [&](const fs::path& partial) { write_project(partial, name, recipe); });
  std::cout << "made the project " << name << " in " << place.string()
            << "; its README.md says how to build it\n"
            << "try its recipe: cd " << place.string()
            << " && cmake -S . -B build -DCMAKE_PREFIX_PATH=DIR && "
            << "cmake --build build && ./build/" << name << " run recipe.yaml\n"
            << notes;
  return kSuccess;
}

int cat_command(const Arguments& arguments) {
  std::cout << io::read_text(recipe_path(arguments.positional().front()));
  return kSuccess;
}

int cp_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const fs::path from = recipe_path(words[0]);
  fs::path to = words[1];
  if (fs::is_directory(to)) to /= from.filename();
  if (fs::exists(to) && !arguments.has("overwrite"))
    throw ConfigError("tare cp", "'" + printable(to.string()) +
                                     "' is there already; give another name, or --overwrite");
  io::check_writable(to);
  io::write_atomically(to, io::read_text(from));
  std::cout << to.string() << '\n';
  return kSuccess;
}

int validate_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const fs::path path = recipe_path(words.front());
  const RecipeOptions recipe = read_recipe(path, {words.begin() + 1, words.end()});
  check_files(recipe);
  init();
  RecipeData data(datasets::Network::forbidden);
  check_run(recipe, data);
  std::cout << path.string() << " is valid: " << recipe.phases.size()
            << (recipe.phases.size() == 1 ? " phase" : " phases") << ", model " << recipe.model.name
            << ", data " << recipe.data.name << '\n';
  return kSuccess;
}

}  // namespace tare::cli

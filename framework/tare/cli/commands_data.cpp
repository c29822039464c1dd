// `tare ls` and `tare data`: lists what has a name, fetches, makes and checks data sets.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <map>

#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/base/table.h"
#include "tare/cli/data_check.h"
#include "tare/cli/entries.h"
#include "tare/cli/handlers.h"
#include "tare/cli/shipped.h"
#include "tare/config/override.h"
#include "tare/data/cifar.h"
#include "tare/data/datasets.h"
#include "tare/data/file_data_set.h"
#include "tare/data/generated_texts.h"
#include "tare/data/npy_check.h"
#include "tare/data/picture_check.h"
#include "tare/data/table_check.h"
#include "tare/data/text_check.h"
#include "tare/data/text_folder.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"

namespace tare::cli {
namespace {

/// Returns an option with its default, unless that is described in words, and its meaning.
ListEntry row_of(const RecipeKey& option) {
  const std::string& value = option.default_value;
  const bool is_value = !value.empty() && (value.starts_with('[') || value.find(' ') == value.npos);
  return {"  " + option_name(option) + (is_value ? '=' + value : ""), option.meaning};
}

/// Whether every entry takes the option, with the default and the meaning that it has here.
bool is_common(const std::vector<NamedEntry>& entries, const RecipeKey& option) {
  return std::ranges::all_of(entries, [&](const NamedEntry& entry) {
    return std::ranges::any_of(entry.options, [&](const RecipeKey& other) {
      return option_name(other) == option_name(option) &&
             other.default_value == option.default_value && other.meaning == option.meaning;
    });
  });
}

/// Returns each entry with its options below it, and then the options that all of them take.
std::string list_of(const EntryKind& kind, size_t width) {
  std::vector<ListEntry> rows, common;
  for (const auto& entry : kind.entries) {
    rows.push_back({entry.name, entry.summary});
    for (const auto& option : entry.options)
      if (!is_common(kind.entries, option)) rows.push_back(row_of(option));
  }
  for (const auto& option : kind.entries.front().options)
    if (is_common(kind.entries, option)) common.push_back(row_of(option));
  const std::string text = text_list(rows, 0, width);
  if (common.empty()) return text;
  return text + "\nAll of them take:\n" + text_list(common, 0, width);
}

/// Returns what `tare ls` lists, each kind with the names of its entries.
std::string list_of_kinds(const std::vector<EntryKind>& kinds, size_t width) {
  std::vector<ListEntry> rows;
  for (const auto& kind : kinds) {
    std::string names;
    for (const auto& entry : kind.entries) names += (names.empty() ? "" : ", ") + entry.name;
    rows.push_back({kind.list, names});
  }
  rows.push_back({"recipes", "what comes with Tare, to run by its name"});
  std::ranges::sort(rows, {}, &ListEntry::name);
  return text_list(rows, 0, width) + "\n`tare ls models` lists the models with their options.\n";
}

/// Throws ConfigError for an unknown action, and an option that the action does not take.
void check_options(const std::string& verb, const Arguments& arguments) {
  const std::map<std::string, std::vector<std::string>> taken{
      {"check", {"json", "target"}}, {"fetch", {}}, {"make", {"out", "png", "count", "style"}}};
  if (!taken.contains(verb))
    throw ConfigError("tare data", "there are check, fetch and make, got '" + printable(verb) +
                                       "'" + did_you_mean(verb, {"check", "fetch", "make"}));
  for (const auto& [of, options] : taken)
    for (const std::string& option : options)
      if (of != verb && arguments.has(option))
        throw ConfigError("tare data", "--" + option + " is an option of tare data " + of +
                                           ", not of " + verb + ": omit it");
}

/// Prints what is wrong with pictures.
int say(const PictureCheck& check, const std::string& place, bool as_json) {
  std::cout << (as_json ? json_of(check, place) : text_of(check, width_for(std::cout)));
  return check.problems.empty() ? kSuccess : kBadInput;
}

/// Prints what is wrong with the files of a table.
int say(const TableCheck& check, const std::string& place, bool as_json) {
  std::cout << (as_json ? json_of(check, place) : text_of(check, width_for(std::cout)));
  return check.problems.count == 0 ? kSuccess : kBadInput;
}

std::string extension_of(const std::string& file) {
  return lower_case(std::filesystem::path(file).extension().string());
}

/// Returns options of the data set of a file from `key=value`, as they stand below `data` in a
/// recipe. `data.key=value` is taken too, as a run takes it.
DataOptions file_options(const std::string& file, const std::vector<std::string>& settings,
                         const Arguments& arguments) {
  config::Node root = config::Node::map();
  for (std::string setting : settings) {
    if (setting.starts_with("data.")) setting.erase(0, 5);
    config::apply_override(root, setting);
  }
  std::vector<std::string> given;
  for (const auto& entry : root.entries) given.push_back(entry.key);
  if (arguments.has("target")) given.emplace_back("target");
  auto options = config::read<DataOptions>(root);
  if (!root.find("name")) options.name = data_set_of(file, given);
  if (!options.file.empty())
    throw ConfigError("tare data", "file", "is the one that the command names", "omit it",
                      options.file);
  options.file = file;
  if (arguments.has("target")) options.target = arguments.get("target");
  datasets::check(options);
  return options;
}

/// Checks the inputs of the data set npy, and with `labels` the targets and the data set too.
int check_arrays(const DataOptions& options, bool as_json) {
  std::vector<NpyCheck> arrays{check_npy(options.file, /*are_inputs=*/true)};
  if (!options.labels.empty()) arrays.push_back(check_npy(options.labels, /*are_inputs=*/false));
  const bool good =
      std::ranges::all_of(arrays, [](const NpyCheck& array) { return array.problem.empty(); });
  std::string description;
  if (good && arrays.size() > 1)  // throws its first problem
    description = datasets::make(options, datasets::Network::forbidden).description;
  std::cout << (as_json ? json_of(arrays, description)
                        : text_of(arrays, description, width_for(std::cout)));
  return good ? kSuccess : kBadInput;
}

/// Counts the texts of each class of a data set without problems.
TextCheck counted_texts(const Splits& splits) {
  TextCheck check;
  for (const std::string& label : splits.train->labels()) check.classes.push_back({label});
  for (const DatasetPtr& part : {splits.train, splits.valid, splits.test}) {
    if (!part) continue;
    check.texts += part->size();
    if (check.classes.empty()) continue;
    const at::Tensor targets = part->targets();
    const int64_t* label = targets.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < targets.numel(); ++i)
      ++check.classes[static_cast<size_t>(label[i])].texts;
  }
  return check;
}

/// Checks data of texts with classes.
int check_texts(const DataOptions& options, bool as_json) {
  const bool is_list = options.name == "text_list";
  TextCheck check = is_list ? check_text_list(options) : check_text_folder(options);
  std::string description;
  if (check.problems.count == 0) {  // throws what is wrong with the splits
    const datasets::Named named = datasets::make(options, datasets::Network::forbidden);
    description = named.description;
    if (!is_list) check = counted_texts(named.splits);
  }
  std::cout << (as_json ? json_of(check, description) : text_of(check, options.name, description));
  return check.problems.count == 0 ? kSuccess : kBadInput;
}

/// Checks a folder of pictures, of texts, or of CIFAR's files.
int check_folder(const std::string& folder, bool as_json) {
  datasets::check_files({.name = "image_folder", .folder = folder});
  if (is_cifar(folder)) return say(check_cifar(folder), folder, as_json);
  if (is_text_folder(folder))
    return check_texts({.name = "text_folder", .folder = folder}, as_json);
  return say(check_pictures(folder), folder, as_json);
}

/// Checks the data set of a recipe. One without a check of its own is read as by a run, which
/// throws its first problem.
int check_data_set(const DataOptions& options, bool as_json) {
  datasets::check_files(options);
  const std::string& name = options.name;
  if (name == "csv" || name == "jsonl") return say(check_table(options), options.file, as_json);
  if (name == "image_list")
    return say(check_listed_pictures(options.file, options.targets), options.file, as_json);
  if (name == "image_folder" || name == "cifar") return check_folder(options.folder, as_json);
  if (name == "npy") return check_arrays(options, as_json);
  if (name == "text_list" || name == "text_folder") return check_texts(options, as_json);
  const datasets::Named named = datasets::make(options, datasets::Network::forbidden);
  std::cout << (as_json ? json_of(named.description)
                        : printable(named.description, 2000) + "\n0 errors, 0 warnings\n");
  return kSuccess;
}

/// Checks a file as its data set, with options.
int check_file(const std::string& file, const std::vector<std::string>& settings,
               const Arguments& arguments) {
  const bool as_json = arguments.has("json");
  const DataOptions options = file_options(file, settings, arguments);
  if (settings.empty() && options.name == "text" && !as_json)
    std::cout << printable(file) << " is no table, and is checked as the data set text, as in "
              << "`data: {name: text, file: " << printable(file)
              << "}`; a table needs its options, such as target=COLUMN\n";
  return check_data_set(options, as_json);
}

/// Checks the data of a recipe and those that its phases have of their own, each once.
int check_recipe_data(const std::filesystem::path& path, const std::vector<std::string>& settings,
                      bool as_json) {
  const RecipeOptions recipe = read_recipe(path, settings);
  check_files(recipe);
  std::vector<DataOptions> all{recipe.data};
  for (const PhaseOptions& phase : recipe.phases)
    if (phase.data && std::ranges::find(all, *phase.data) == all.end()) all.push_back(*phase.data);
  int code = kSuccess;
  for (const DataOptions& options : all) {
    const int of_this = check_data_set(options, as_json);
    if (code == kSuccess) code = of_this;
  }
  return code;
}

/// Writes the files of a generated data set, and returns their paths.
std::vector<std::filesystem::path> make_data(const std::string& name, const Arguments& arguments) {
  const std::filesystem::path folder =
      arguments.get("out", (datasets::cache_folder() / name).string());
  if (name == "generated_texts") {
    for (const char* option : {"png", "style"})
      if (arguments.has(option))
        throw ConfigError("tare data", std::string("--") + option +
                                           " is for generated_digits, and generated_texts are "
                                           "texts: omit it");
    GeneratedTexts texts;
    if (arguments.has("count")) texts.count = arguments.number("count", 0, 0);
    return make_text_files(folder, texts);
  }
  GeneratedDigits digits;
  if (arguments.has("count")) digits.count = arguments.number("count", 0, 0);
  if (arguments.has("style")) digits.style = arguments.get("style");
  const auto make = arguments.has("png") ? datasets::make_png_files : datasets::make_files;
  return make(name, folder, digits);
}

bool is_recipe(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return std::filesystem::is_regular_file(path) && (extension == ".yaml" || extension == ".yml");
}

int check(const std::string& place, const std::vector<std::string>& settings,
          const Arguments& arguments) {
  namespace fs = std::filesystem;
  const bool as_json = arguments.has("json");
  const bool shipped =
      !fs::exists(place) && !fs::path(place).has_extension() && is_shipped_recipe(place);
  if (shipped || is_recipe(place)) {
    if (arguments.has("target"))
      throw ConfigError("tare data", "--target is for the file of a table, and '" +
                                         printable(place) +
                                         "' is a recipe: give data.target=COLUMN");
    return check_recipe_data(recipe_path(place), settings, as_json);
  }
  if (fs::is_regular_file(place) && extension_of(place) == ".tare")
    throw ConfigError("tare data", "'" + printable(place) +
                                       "' is a bundle and no data: `tare inspect " +
                                       printable(place) + "` describes it");
  if (fs::is_regular_file(place)) return check_file(place, settings, arguments);
  if (!fs::exists(place) && fs::path(place).has_extension())
    throw IoError("tare data", place, ENOENT);
  if (arguments.has("target"))
    throw ConfigError("tare data", "--target is for the file of a table, and '" + printable(place) +
                                       "' is no file");
  if (!settings.empty())
    throw ConfigError("tare data", "'" + printable(settings.front()) +
                                       "' is for the file of a table or for a recipe, and '" +
                                       printable(place) + "' is neither: omit it");
  return check_folder(place, as_json);
}

}  // namespace

int list_command(const Arguments& arguments) {
  const size_t width = width_for(std::cout);
  const auto kinds = entry_kinds();
  if (arguments.positional().empty()) {
    std::cout << list_of_kinds(kinds, width);
    return kSuccess;
  }
  const std::string& what = arguments.positional().front();
  std::vector<std::string> known{"recipes"};
  for (const auto& kind : kinds) {
    if (kind.list == what) {
      std::cout << list_of(kind, width);
      return kSuccess;
    }
    known.push_back(kind.list);
  }
  if (what != "recipes") {
    std::ranges::sort(known);
    throw ConfigError("tare ls", "there are " + listed(known) + " to list, got '" +
                                     printable(what) + "'" + did_you_mean(what, known));
  }
  std::cout << text_list(shipped_recipes(), 0, width);
  return kSuccess;
}

int data_command(const Arguments& arguments) {
  const std::string& verb = arguments.positional()[0];
  const std::string& name = arguments.positional()[1];
  const std::vector<std::string> settings(arguments.positional().begin() + 2,
                                          arguments.positional().end());
  check_options(verb, arguments);
  if (verb != "check" && !settings.empty())
    throw ConfigError("tare data", "'" + printable(settings.front()) +
                                       "' is one argument too many: tare data " + verb +
                                       " takes one name");
  if (verb == "fetch") {
    std::cout << datasets::fetch(name).string() << '\n';
    return kSuccess;
  }
  if (verb == "check") return check(name, settings, arguments);
  for (const auto& file : make_data(name, arguments)) std::cout << file.string() << '\n';
  return kSuccess;
}

}  // namespace tare::cli

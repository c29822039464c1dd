// Reads furcate's configurations as sweeps.
#include "tare/furcate/configuration.h"

#include <algorithm>
#include <array>

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/config/short_forms.h"
#include "tare/data/datasets.h"
#include "tare/recipe/recipe.h"
#include "tare/runtime/threads.h"
#include "tare/sweep/run_name.h"

namespace tare::furcate {
namespace {

using config::Kind;
using config::Node;

constexpr const char* kDefaults = R"(
log_dir: logs
learning_rate: 0.001
verbose: 2
cache: false
seed: 42
prefetch: 1
meta: {}
)";

/// The keys of the sweep itself; `framework` is a label.
constexpr std::array kOfSweep{"recipe", "framework", "log_dir", "data_name", "meta"};

/// The keys for furcate's programs; a recipe has no place for them.
constexpr std::array kOfPrograms{
    "verbose", "cache",        "shuffle_buffer_size", "num_parallel_reads",
    "gpu_id",  "train_prefix", "valid_prefix",        "test_prefix"};

/// The keys for the number of loader threads, of which furcate's programs take the first.
bool is_thread_key(const std::string& key) {
  return key == "num_parallel_calls" || key == "prefetch";
}

Meta meta_of(const Node& root) {
  try {
    return config::read<Meta>(*root.find("meta"));
  } catch (const ConfigError& error) {
    throw error.within("meta", root.find("meta")->source);
  }
}

bool is_of_sweep(std::string_view key) {
  return std::ranges::find(kOfSweep, key) != kOfSweep.end();
}

/// Whether the key is one that a recipe's sweep omits. Throws ConfigError where it says other
/// than what furcate does without it, which would be without effect.
bool is_for_programs(const Node& root, const config::Entry& entry) {
  if (std::ranges::find(kOfPrograms, entry.key) == kOfPrograms.end()) return false;
  const Node* given = root.find(entry.key);
  const Node defaults = config::parse_text(kDefaults, "furcate's defaults");
  const Node* usual = defaults.find(entry.key);
  if (given && given->kind != Kind::null && !(usual && usual->text == given->text))
    throw ConfigError(given->source, entry.key, "is for programs of tare::Fork, not for recipes",
                      usual ? "omit it, or " + usual->text : "omit it", config::describe(*given));
  return true;
}

/// Returns the number of loader threads for furcate's number of batches to prepare.
Node loader_threads(const Node& value) {
  const bool automatic = value.text == "auto" || value.text == "-1";
  if (!automatic) return value;
  constexpr int kMost = 256;  // as a recipe's workers
  Node threads = Node::scalar(std::to_string(std::min(kMost, runtime::usable_processors())));
  threads.source = value.source;
  return threads;
}

const char* varies_not(const Node& list, const char* otherwise) {
  return list.items.empty() ? "has no values" : otherwise;
}

/// Returns the key that a configuration of Furcate has for a field of SweepOptions.
std::string key_of(const std::string& field) {
  if (field == "name") return "data_name";
  if (field == "resources.jobs") return "meta.max_threads";
  if (field.starts_with("exclude.")) return "meta.exclude_configs" + field.substr(7);
  for (const std::string prefix : {"parameters.", "set."})
    if (field.starts_with(prefix)) return field.substr(prefix.size());
  return field;
}

sweep::SweepOrigin origin_of(const Node& all) {
  return {.configuration = all,
          .without = {"meta", "log_dir", "gpu_id", "recipe", "verbose"},
          .word_parameter = "data_dir",
          .numbered_logs = true,
          .key_of = key_of};
}

const std::vector<sweep::Alias>& aliases() {
  static const std::vector<sweep::Alias> all{
      {.name = "batch_size", .key = "batch"},
      {.name = "epochs", .key = "phases.0.epochs"},
      {.name = "learning_rate", .key = "phases.0.lr"},
      {.name = "data_dir", .key = "data.folder"},
      {.name = "prefetch", .key = "workers"},
      {.name = "num_parallel_calls", .key = "workers"},
      // Furcate's users write "SGD" and "Adam".
      {.name = "optimizer_name", .key = "optimizer.kind", .lower_case = true}};
  return all;
}

/// Returns the keys that Furcate has.
std::vector<std::string> own_keys() {
  std::vector<std::string> keys;
  for (const auto& alias : aliases()) keys.push_back(alias.name);
  keys.insert(keys.end(), kOfSweep.begin(), kOfSweep.end());
  keys.insert(keys.end(), kOfPrograms.begin(), kOfPrograms.end());
  return keys;
}

/// Returns the value of a key that Furcate needs. Throws ConfigError where it is missing, at the
/// place of another key that may be a misspelling of it.
const Node& required(const Node& root, const char* key) {
  if (const Node* value = root.find(key)) return *value;
  const auto known = own_keys();
  for (const auto& entry : root.entries) {
    if (std::ranges::find(known, entry.key) != known.end()) continue;
    if (const std::string hint = did_you_mean(entry.key, {key}); !hint.empty())
      throw ConfigError(entry.key_source, printable(entry.key),
                        "is not a key of furcate" + hint + ", and " + key + " is missing",
                        listed(known), {});
  }
  throw ConfigError(root.source, key, "is missing", "furcate needs it", {});
}

/// Returns the recipe's name of a key.
std::string recipe_key(const std::string& key) {
  const auto alias = std::ranges::find(aliases(), key, &sweep::Alias::name);
  return alias == aliases().end() ? key : alias->key;
}

/// Whether one of two keys of a recipe is the other or holds it.
bool overlap(const std::string& one, const std::string& other) {
  return one == other || one.starts_with(other + '.') || other.starts_with(one + '.');
}

/// Throws ConfigError for two keys that set one value of the recipe. num_parallel_calls comes
/// before prefetch, and what data_dir sets depends on the data set.
void check_keys(const Node& root) {
  const auto& all = root.entries;
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const std::string &key = all[i].key, &other = all[j].key;
      const bool both_threads = is_thread_key(key) && is_thread_key(other);
      if (key == "data_dir" || other == "data_dir" || both_threads) continue;
      if (overlap(recipe_key(key), recipe_key(other)))
        throw ConfigError(all[i].key_source, key,
                          "and " + printable(other) + " both set " + printable(recipe_key(key)) +
                              " of the recipe",
                          "one of the two", {});
    }
  }
}

/// Throws ConfigError for a key that neither furcate nor a recipe has; `recipe`: what the file of
/// the recipe has is checked by itself.
void check_known(const Node& root, const Node& recipe) {
  std::vector<std::string> known = own_keys();
  for (const auto& name : config::field_names<RecipeOptions>())
    if (name != "name" && name != "folder") known.push_back(name);
  for (const auto& entry : recipe.entries) known.push_back(entry.key);
  for (const auto& entry : root.entries) {
    const std::string first = entry.key.substr(0, entry.key.find('.'));
    if (first == "name" || first == "folder" || std::ranges::find(known, first) != known.end())
      continue;
    throw ConfigError(entry.key_source, printable(entry.key),
                      "is not a key of furcate or of a recipe" + did_you_mean(first, known),
                      listed(known), {});
  }
}

/// Removes the defaults of furcate for what the file sets by the recipe's name of the key.
void drop_other_defaults(const Node& root, Node& all) {
  std::erase_if(all.entries, [&](const config::Entry& one) {
    return !root.find(one.key) && std::ranges::any_of(root.entries, [&](const auto& other) {
      return overlap(recipe_key(one.key), other.key);
    });
  });
}

/// Returns the values that runs of the sweep have for a key of the recipe.
std::vector<Node> values_of(const sweep::SweepOptions& sweep, const Node& recipe,
                            const std::string& key) {
  if (const auto* parameter = sweep.parameters.find(key)) return parameter->values;
  if (const Node* value = sweep.set.find(key)) return {*value};
  const Node* at = &recipe;
  for (size_t start = 0; at && start <= key.size();) {
    const size_t end = std::min(key.find('.', start), key.size());
    // `data: digits` is short for its name.
    if (at->kind == Kind::scalar && key.substr(start) == "name") return {*at};
    at = at->find(key.substr(start, end - start));
    start = end + 1;
  }
  return at ? std::vector<Node>{*at} : std::vector<Node>();
}

/// Whether a file is the folder or lies in it.
bool is_in(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::filesystem::path whole = std::filesystem::weakly_canonical(folder);
  if (!whole.has_filename()) whole = whole.parent_path();
  const auto path = std::filesystem::weakly_canonical(file);
  return std::ranges::mismatch(whole, path).in1 == whole.end();
}

/// Throws ConfigError where the files of the recipe's data do not lie in data_dir.
void check_data_files(const sweep::SweepOptions& sweep, const Node& recipe, const Node& folder,
                      const std::string& field) {
  const std::string key = "data." + field;
  for (const Node& value : values_of(sweep, recipe, key)) {
    const auto files = value.kind == Kind::sequence ? value.items : std::vector<Node>{value};
    for (const Node& file : files)
      if (folder.kind != Kind::scalar || !is_in(file.text, folder.text))
        throw ConfigError(folder.source, "data_dir",
                          "is not where " + key + " lies, which the recipe's data set reads",
                          "the folder of '" + printable(file.text) + "', or another " + key,
                          config::describe(folder));
  }
}

/// Makes data_dir the folder that the recipe's data set reads. Throws ConfigError where the data
/// set reads files that are not in data_dir.
void set_data_folder(sweep::SweepOptions& sweep, Node recipe) {
  const Node* data = sweep.set.find("data");
  if (data) recipe.set("data", *data);
  const auto names = values_of(sweep, recipe, "data.name");
  const std::string name = names.empty() ? DataOptions().name : names.front().text;
  const auto known = datasets::names();
  if (std::ranges::find(known, name) == known.end()) return;  // the recipe refuses it
  const Node folder = *sweep.origin.configuration.find("data_dir");
  const auto fields = datasets::fields_of(name);
  const auto takes = [&](const char* field) {
    return std::ranges::find(fields, field) != fields.end();
  };
  if (takes("folder") && (sweep.set.find("data.folder") || sweep.parameters.find("data.folder") ||
                          (data && data->find("folder"))))
    throw ConfigError(folder.source, "data_dir",
                      "and data.folder both set data.folder of the recipe", "data_dir alone", {});
  if (takes("folder") && folder.kind == Kind::scalar)
    sweep.set.values.emplace_back("data_dir", folder);
  for (const char* field : {"images", "labels", "file", "files", "valid_files", "test_files"})
    if (takes(field)) check_data_files(sweep, recipe, folder, field);
}

void require_recipe(const sweep::SweepOptions& sweep) {
  if (!std::filesystem::exists(sweep.recipe))
    throw at_its_place(sweep, {"sweep", "recipe", "is not there",
                               "the path of a recipe, from the folder of this file",
                               printable(sweep.recipe.string())});
}

Node parsed(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Node root = config::parse_file(file);
  for (const auto& assignment : overrides) config::apply_sweep_override(root, assignment);
  return root;
}

/// Returns what sweeps of recipes and of programs have in common.
sweep::SweepOptions without_settings(const Node& all) {
  sweep::SweepOptions sweep;
  sweep.name = all.find("data_name")->text;
  sweep.log_dir = all.find("log_dir")->text;
  sweep.origin = origin_of(all);
  const Node& folder = *all.find("data_dir");
  if (folder.kind == Kind::scalar) sweep.origin.run_word = sweep::last_part(folder.text);
  const Meta meta = meta_of(all);
  sweep.exclude = meta.exclude_configs;
  sweep.resources.jobs = meta.max_threads < 0 ? (meta.allow_cpu ? 1 : 0) : meta.max_threads;
  sweep.origin.needs_gpu = !meta.allow_cpu;
  return sweep;
}

}  // namespace

void visit_fields(config::Visitor& visit, Meta& o) {
  visit("allow_cpu", o.allow_cpu);
  visit("max_threads", o.max_threads, config::between(-1, 4096));
  visit("exclude_configs", o.exclude_configs);
  visit("mem_trace", o.mem_trace);
}

bool is_configuration(const Node& root) { return root.find("data_name") && root.find("data_dir"); }

Node whole_configuration(const Node& root) {
  for (const char* key : {"data_name", "data_dir", "batch_size", "epochs"})
    (void)required(root, key);
  const Node& name = required(root, "data_name");
  for (const char* key : {"data_name", "log_dir", "recipe"})
    if (const Node* value = root.find(key); value && value->kind != Kind::scalar)
      throw ConfigError(value->source, key, "must be one text", "", config::describe(*value));
  Node all = config::parse_text(kDefaults, "furcate's defaults");
  for (const auto& entry : root.entries) all.set(entry.key, entry.value);
  all.set("meta", config::to_node(meta_of(all)));
  for (const char* split : {"train", "valid", "test"}) {
    const std::string key = split + std::string("_prefix");
    if (!all.find(key)) all.set(key, Node::string(name.text + '.' + split));
  }
  return all;
}

MemoryMonitorOptions monitor_of(const sweep::SweepOptions& sweep) {
  if (!is_configuration(sweep.origin.configuration)) return {};
  return meta_of(sweep.origin.configuration).mem_trace;
}

sweep::SweepOptions program_sweep(const Node& root) {
  const Node all = whole_configuration(root);
  sweep::SweepOptions sweep = without_settings(all);
  sweep.metric.name = "val_loss";
  sweep.origin.is_program = true;
  for (const auto& entry : all.entries) {
    if (entry.key == "data_name" || entry.key == "meta") continue;
    if (entry.key.find('=') != std::string::npos)
      throw ConfigError(entry.key_source, entry.key, "has a '='", "keys without", {});
    const Node& value = entry.value;
    const bool varies = value.kind == Kind::sequence;
    if (varies && (entry.key == "log_dir" || value.items.empty()))
      throw ConfigError(value.source, entry.key, varies_not(value, "holds all runs"),
                        value.items.empty() ? "at least one" : "a single folder", {});
    if (varies)
      sweep.parameters.parameters.push_back({.name = entry.key, .values = value.items});
    else
      sweep.set.values.emplace_back(entry.key, value);
  }
  return sweep;
}

sweep::SweepOptions recipe_sweep(const Node& root) {
  check_keys(root);
  Node all = whole_configuration(root);
  drop_other_defaults(root, all);
  sweep::SweepOptions sweep = without_settings(all);
  sweep.origin.aliases = aliases();
  if (const Node* recipe = all.find("recipe")) sweep.recipe = recipe->text;
  for (const auto& entry : all.entries) {
    if (is_for_programs(root, entry)) continue;
    const bool threads = is_thread_key(entry.key);
    // The recipe's own number stays unless the file gives another.
    if (entry.key == "prefetch" && (!root.find("prefetch") || root.find("num_parallel_calls")))
      continue;
    const Node value = threads ? loader_threads(entry.value) : entry.value;
    const bool varies = value.kind == Kind::sequence;
    if (varies && (is_of_sweep(entry.key) || threads || value.items.empty()))
      throw ConfigError(value.source, entry.key, varies_not(value, "cannot vary in a recipe"),
                        value.items.empty() ? "at least one" : "a single value", {});
    if (varies)
      sweep.parameters.parameters.push_back({.name = entry.key, .values = value.items});
    else if (!is_of_sweep(entry.key) && entry.key != "data_dir")
      sweep.set.values.emplace_back(entry.key, value);
  }
  return sweep;
}

sweep::SweepOptions read_sweep(const std::filesystem::path& file,
                               const std::vector<std::string>& overrides) {
  Node root = parsed(file, overrides);
  if (!is_configuration(root)) {
    auto own = sweep::read_sweep(file, overrides);
    require_recipe(own);
    return own;
  }
  auto sweep = recipe_sweep(root);
  sweep.root = std::move(root);
  if (sweep.recipe.empty())
    throw at_its_place(sweep, {"sweep", "recipe", "is missing",
                               "recipe=FILE, or a program with tare::Fork", "nothing"});
  check(sweep);
  resolve_paths(sweep, file);
  require_recipe(sweep);
  Node recipe = config::parse_file(sweep.recipe);
  check_known(sweep.root, recipe);
  set_data_folder(sweep, std::move(recipe));
  return sweep;
}

sweep::SweepOptions read_program_sweep(const std::filesystem::path& file,
                                       const std::vector<std::string>& overrides) {
  Node root = parsed(file, overrides);
  auto sweep = program_sweep(root);
  sweep.root = std::move(root);
  check(sweep);
  return sweep;
}

sweep::SweepOptions read_any_sweep(const std::filesystem::path& file,
                                   const std::vector<std::string>& overrides) {
  const Node root = parsed(file, overrides);
  return is_configuration(root) && !root.find("recipe") ? read_program_sweep(file, overrides)
                                                        : read_sweep(file, overrides);
}

}  // namespace tare::furcate

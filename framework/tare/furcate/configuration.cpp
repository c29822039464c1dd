// Reads furcate's configurations as sweeps.
#include "tare/furcate/configuration.h"

#include <algorithm>
#include <array>

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/config/short_forms.h"
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

const Node& required(const Node& root, const char* key) {
  const Node* value = root.find(key);
  if (!value) throw ConfigError(root.source, key, "is missing", "furcate needs it", {});
  return *value;
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

/// Makes data_dir the folder of the recipe's images.
void set_data_folder(sweep::SweepOptions& sweep) {
  const Node recipe = config::parse_file(sweep.recipe);
  const Node* data = recipe.find("data");
  const Node* name = data ? data->find("name") : nullptr;
  const Node& folder = *sweep.origin.configuration.find("data_dir");
  if (name && name->text == "png_folder" && folder.kind == Kind::scalar)
    sweep.set.values.emplace_back("data_dir", folder);
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

MemoryMonitorOptions mem_trace_of(const sweep::SweepOptions& sweep) {
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
  const Node all = whole_configuration(root);
  sweep::SweepOptions sweep = without_settings(all);
  sweep.origin.aliases = {{.name = "batch_size", .key = "batch"},
                          {.name = "epochs", .key = "phases.0.epochs"},
                          {.name = "learning_rate", .key = "phases.0.lr"},
                          {.name = "data_dir", .key = "data.folder"},
                          {.name = "prefetch", .key = "workers"},
                          {.name = "num_parallel_calls", .key = "workers"},
                          // Furcate's users write "SGD" and "Adam".
                          {.name = "optimizer_name", .key = "optimizer.kind", .lower_case = true}};
  if (const Node* recipe = all.find("recipe")) sweep.recipe = recipe->text;
  for (const auto& entry : all.entries) {
    if (is_for_programs(root, entry)) continue;
    const bool threads = entry.key == "prefetch" || entry.key == "num_parallel_calls";
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
  if (!is_configuration(root)) return sweep::read_sweep(file, overrides);
  auto sweep = recipe_sweep(root);
  sweep.root = std::move(root);
  if (sweep.recipe.empty())
    throw at_its_place(sweep, {"sweep", "recipe", "is missing",
                               "recipe=FILE, or a program with tare::Fork", "nothing"});
  check(sweep);
  resolve_paths(sweep, file);
  set_data_folder(sweep);
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

// Reads and checks the options of a sweep.
#include "tare/sweep/sweep_options.h"

#include <algorithm>
#include <cmath>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/config/scalar.h"
#include "tare/config/short_forms.h"
#include "tare/search/grid.h"
#include "tare/search/sampler.h"

namespace tare::sweep {
namespace {

using config::Kind;
using config::Node;

constexpr size_t kMaxName = 64;  // numbers and values follow it

/// Checks the parameters that conditions and exclusions name.
void check_known(const SweepOptions& sweep, const search::Settings& settings,
                 const std::string& path) {
  for (const auto& [name, value] : settings.values) {
    if (sweep.parameters.find(name) || sweep.set.find(name)) continue;
    std::vector<std::string> names;
    for (const auto& parameter : sweep.parameters.parameters) names.push_back(parameter.name);
    throw ConfigError(value.source, path + '.' + name,
                      "is not a parameter" + did_you_mean(name, names), listed(names), {});
  }
}

void check_recipe_is_there(const SweepOptions& sweep) {
  if (sweep.recipe.empty() && !sweep.origin.is_program)
    throw ConfigError("sweep", "recipe", "is missing", "the path of a recipe", "nothing");
}

void check_name(const SweepOptions& sweep) {
  io::checked_name(sweep.name, "name");
  if (sweep.name.size() > kMaxName)
    throw ConfigError("sweep", "name", "is too long for the folders of runs",
                      "at most " + std::to_string(kMaxName) + " bytes",
                      std::to_string(sweep.name.size()));
}

/// Throws for the ranks of a run among the keys of the recipe.
void check_no_ranks(const std::string& key, const std::string& group, const Source& place) {
  if (key != "resources.ranks") return;
  throw ConfigError(place, group + '.' + key,
                    "is no key of the recipe, and all runs have equally many ranks",
                    "`resources: {ranks: 2}` beside `" + group +
                        "`; a sweep of its own, with a "
                        "log_dir of its own, for another number",
                    {});
}

void check_search(const SweepOptions& sweep) {
  for (const auto& [key, value] : sweep.set.values) {
    if (!sweep.origin.is_program) check_no_ranks(key, "set", value.source);
    if (sweep.parameters.find(key))
      throw ConfigError(value.source, "set." + key, "is a parameter as well", "one of the two", {});
    if (!sweep.origin.is_program && (key == "name" || key == "folder"))
      throw ConfigError(value.source, "set." + key,
                        "has no effect, because each run has a name and a folder of its own",
                        "omit it", {});
  }
  for (const auto& parameter : sweep.parameters.parameters) {
    const std::string& name = parameter.name;
    if (!sweep.origin.is_program) check_no_ranks(name, "parameters", {});
    const bool given = !sweep.origin.is_program && (name == "name" || name == "folder");
    if (given || name.find('=') != std::string::npos)
      throw ConfigError("sweep", "parameters." + printable(name), "cannot vary",
                        "keys of the recipe; each run has a name and a folder of its own", {});
  }
  const bool endless = std::ranges::any_of(sweep.parameters.parameters, [](const auto& parameter) {
    return std::isinf(search::count_of(parameter));
  });
  if (search::draws(sweep) && sweep.trials == 0 && endless)
    throw ConfigError("sweep", "trials", "is missing", "how many runs to draw from ranges", {});
  if (!search::draws(sweep) && sweep.seed != SweepOptions{}.seed)
    throw ConfigError("sweep", "seed",
                      "has no effect, because the method " + sweep.method.name + " draws nothing",
                      "omit it, or a method that draws", std::to_string(sweep.seed));
  if (search::draws(sweep) && launch::executor_type(sweep.executor).is_remote &&
      sweep.resources.jobs == 0)
    throw ConfigError("sweep", "resources.jobs", "is missing",
                      "how many runs may run at a time, while others wait for their results", {});
  for (size_t i = 0; i < sweep.exclude.size(); ++i)
    check_known(sweep, sweep.exclude[i], "exclude." + std::to_string(i));
  for (size_t i = 0; i < sweep.when.size(); ++i) {
    const std::string path = "when." + std::to_string(i);
    check_known(sweep, sweep.when[i].condition, path + ".if");
    if (!sweep.parameters.find(sweep.when[i].param))
      throw ConfigError("sweep", path + ".param", "is not a parameter", "one of parameters",
                        printable(sweep.when[i].param));
  }
}

/// Returns where the value at a dotted path is, whose keys may hold dots themselves; or what it
/// would stand in.
Source place_in(const Node& node, std::string_view path) {
  if (path.empty()) return node.source;
  for (const auto& entry : node.entries) {
    if (!path.starts_with(entry.key)) continue;
    if (path.size() == entry.key.size())
      return entry.value.source.file.empty() ? entry.key_source : entry.value.source;
    if (path[entry.key.size()] == '.')
      return place_in(entry.value, path.substr(entry.key.size() + 1));
  }
  const auto index = config::as_count(path.substr(0, path.find('.')));
  if (node.kind != Kind::sequence || !index || *index >= node.items.size()) return node.source;
  const size_t dot = path.find('.');
  return place_in(node.items[*index], dot == path.npos ? std::string_view() : path.substr(dot + 1));
}

/// Throws ConfigError for a recipe in the place of a sweep, with the command to type.
void refuse_recipe(const Node& root, const std::filesystem::path& file) {
  const Node* own = root.find("phases") ? root.find("phases") : root.find("model");
  if (!own || root.find("recipe") || root.find("parameters")) return;
  const std::string name = printable(file.string());
  throw ConfigError(own->source, "",
                    "'" + name + "' is a recipe, not a sweep: type `tare run " + name +
                        "`, or name it as `recipe` in the file of a sweep");
}

/// Returns the device in `set`; "" where there is none.
std::string device_of(const SweepOptions& sweep) {
  const Node* const device = sweep.set.find("device");
  return device ? device->text : "";
}

}  // namespace

ConfigError at_its_place(const SweepOptions& sweep, const ConfigError& error) {
  const auto key_of = sweep.origin.key_of;
  const std::string key = key_of ? key_of(error.field()) : error.field();
  Source source = error.source();
  if (source.file.empty()) source = place_in(sweep.root, key);
  if (source.file.empty() || key.empty()) return error;
  return {source, key, error.problem(), error.allowed(), error.got()};
}

void from_node(const Node& node, ByteLimit& value) {
  value.bytes.reset();
  if (node.kind == Kind::scalar && node.text == "auto") return;
  if (node.kind == Kind::scalar) value.bytes = parse_bytes(node.text);
  if (!value.bytes || *value.bytes == 0)
    throw ConfigError(node.source, "", "must be auto or a number of bytes such as 2GiB", "",
                      config::describe(node));
}

Node to_node(const ByteLimit& value) {
  return value.bytes ? config::to_node(*value.bytes) : Node::string("auto");
}

void visit_fields(config::Visitor& visit, Resources& o) {
  visit("jobs", o.jobs, config::between(0, 4096));
  visit("ranks", o.ranks, config::between(1, 1024));
  visit("max_per_gpu", o.max_per_gpu, config::between(1, 4096));
  visit("total", o.total)("memory", o.memory);
}

void visit_fields(config::Visitor& visit, OnFailure& o) {
  visit("max_retries", o.max_retries, config::between(0, 100));
  visit("max_failed", o.max_failed, config::at_least(0));
}

void visit_fields(config::Visitor& visit, SweepOptions& o) {
  visit("name", o.name);
  visit("recipe", o.recipe);
  visit("log_dir", o.log_dir);
  visit_fields(visit, static_cast<search::SearchOptions&>(o));
  visit("trials", o.trials, config::at_least(0));
  visit("seed", o.seed);
  visit("pruner", o.pruner);
  visit("resources", o.resources);
  visit("on_failure", o.on_failure);
  visit("executor", o.executor);
}

const char* fixed_key(const SweepOptions& before, const SweepOptions& after) {
  if (after.name != before.name) return "name";
  if (after.recipe != before.recipe) return "recipe";
  if (after.log_dir != before.log_dir) return "log_dir";
  if (!(after.method == before.method)) return "method";
  if (after.metric.name != before.metric.name || after.metric.goal != before.metric.goal)
    return "metric";
  if (!(after.executor == before.executor)) return "executor";
  if (after.resources.ranks != before.resources.ranks) return "resources.ranks";
  if (device_of(after) != device_of(before)) return "set.device";
  return nullptr;
}

void check(const SweepOptions& sweep) {
  try {
    check_recipe_is_there(sweep);
    check_search(sweep);
    check_name(sweep);
  } catch (const ConfigError& error) {
    throw at_its_place(sweep, error);
  }
}

void check_not_all_excluded(const SweepOptions& sweep) {
  if (sweep.exclude.empty() || search::draws(sweep) || !search::grid(sweep).empty()) return;
  throw at_its_place(sweep, {"sweep",
                             "exclude.0",
                             "and what follows exclude every combination",
                             "at least one combination that runs",
                             {}});
}

void resolve_paths(SweepOptions& sweep, const std::filesystem::path& file) {
  if (sweep.recipe.is_relative()) sweep.recipe = file.parent_path() / sweep.recipe;
  if (sweep.log_dir.empty()) sweep.log_dir = std::filesystem::path("runs") / sweep.name;
  if (launch::executor_type(sweep.executor).is_remote) {
    sweep.recipe = std::filesystem::absolute(sweep.recipe);
    sweep.log_dir = std::filesystem::absolute(sweep.log_dir);
  }
}

SweepOptions read_sweep(const std::filesystem::path& file,
                        const std::vector<std::string>& overrides) {
  Node root = config::parse_file(file);
  refuse_recipe(root, file);
  for (const auto& assignment : overrides) config::apply_sweep_override(root, assignment);
  auto sweep = config::read<SweepOptions>(root);
  sweep.root = std::move(root);
  check(sweep);
  resolve_paths(sweep, file);
  return sweep;
}

}  // namespace tare::sweep

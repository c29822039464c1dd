// Tries every value of a sweep in its recipe before anything runs.
#include "tare/cli/sweep_check.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/scalar.h"
#include "tare/launch/executors.h"
#include "tare/metric/metric.h"
#include "tare/recipe/file_names.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/rank_check.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/resolve.h"
#include "tare/recipe/target_metrics.h"
#include "tare/search/grid.h"
#include "tare/search/sampler.h"
#include "tare/search/value_text.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/run_name.h"

namespace tare {
namespace {

using config::Node;
using search::Cell;
using search::Settings;
using sweep::SweepOptions;
using Setting = std::pair<std::string, Node>;

/// Returns the alias of that name, or nullptr.
const sweep::Alias* alias_of(const SweepOptions& sweep, const std::string& key) {
  const auto alias = std::ranges::find(sweep.origin.aliases, key, &sweep::Alias::name);
  return alias == sweep.origin.aliases.end() ? nullptr : &*alias;
}

/// Returns the recipe's name of a setting.
std::string recipe_key(const SweepOptions& sweep, const std::string& key) {
  const auto* alias = alias_of(sweep, key);
  return alias ? alias->key : key;
}

/// Returns the error with the value as the sweep's file has it, where the recipe has it in lower
/// case.
ConfigError with_written_value(const SweepOptions& sweep, const Setting& setting,
                               const ConfigError& error) {
  const auto* alias = alias_of(sweep, setting.first);
  if (!alias || !alias->lower_case || error.got().empty()) return error;
  return {error.source(), error.field(), error.problem(), error.allowed(),
          printable(setting.second.text)};
}

/// Returns the index of a parameter's value among several in the sweep's file; "" for an end of a
/// range.
std::string index_of(const SweepOptions& sweep, const std::string& group, const Setting& setting) {
  if (group != "parameters") return "";
  const auto& [key, value] = setting;
  const bool own_file = sweep.origin.configuration.kind == config::Kind::null;
  const Node* all = own_file ? sweep.root.find(group) : &sweep.root;
  const Node* written = all ? all->find(key) : nullptr;
  if (written && written->kind == config::Kind::map) written = written->find("values");
  if (!written || written->items.size() < 2) return "";
  const std::string text = config::to_yaml(value);
  for (size_t i = 0; i < written->items.size(); ++i)
    if (config::to_yaml(written->items[i]) == text) return '.' + std::to_string(i);
  return "";
}

/// Throws an error at the place of a value in the sweep's file: a parameter's under its name.
[[noreturn]] void throw_at(const SweepOptions& sweep, const std::string& group,
                           const Setting& setting, const std::string& behind,
                           const ConfigError& error) {
  const auto& [key, value] = setting;
  const std::string path = group + '.' + key + index_of(sweep, group, setting) + behind;
  const ConfigError own(value.source, path, error.problem(), error.allowed(), error.got());
  throw at_its_place(sweep, own);
}

/// Whether one of two keys is the other or a part of it.
bool is_part_of(const std::string& one, const std::string& other) {
  const auto& [longer, shorter] =
      one.size() > other.size() ? std::tie(one, other) : std::tie(other, one);
  return longer == shorter || longer.starts_with(shorter + '.');
}

/// Returns the setting that the error is about, about a part of which it is, or which is a part of
/// what it is about; nullptr: there is none.
const Setting* named_by(const SweepOptions& sweep, const Settings& settings,
                        const ConfigError& error) {
  for (const auto& setting : settings.values)
    if (!error.field().empty() && is_part_of(error.field(), recipe_key(sweep, setting.first)))
      return &setting;
  return nullptr;
}

/// Throws the error of a setting that the error is about, see named_by().
[[noreturn]] void throw_named(const SweepOptions& sweep, const std::string& group,
                              const Setting& setting, const ConfigError& error) {
  const std::string name = recipe_key(sweep, setting.first), &field = error.field();
  throw_at(sweep, group, setting, field.substr(std::min(field.size(), name.size())),
           with_written_value(sweep, setting, error));
}

/// Throws the error at the place of a setting that causes it and is not named in it.
[[noreturn]] void throw_caused(const SweepOptions& sweep, const std::string& group,
                               const Setting& setting, const ConfigError& error) {
  const std::string field = error.field().empty() ? "" : error.field() + ' ';
  throw_at(sweep, group, setting, "",
           {setting.second.source, setting.first,
            "is refused by the recipe: " + field + error.problem(), error.allowed(), error.got()});
}

/// Returns the sweep with each range reduced to its two ends.
SweepOptions with_ends(SweepOptions sweep) {
  for (auto& parameter : sweep.parameters.parameters) {
    if (!parameter.range) continue;
    for (const double end : {parameter.range->low, parameter.range->high}) {
      parameter.values.push_back(search::number_node(*parameter.range, end));
      // A range is in the file as a whole.
      if (const Node* all = sweep.root.find("parameters"))
        if (const Node* range = all->find(parameter.name))
          parameter.values.back().source = range->source;
    }
    parameter.range.reset();
  }
  sweep.trials = 0;
  return sweep;
}

/// Returns how many combinations there are, also of those that are excluded.
double count_of(const SweepOptions& sweep) {
  double count = 1;
  for (const auto& parameter : sweep.parameters.parameters) count *= search::count_of(parameter);
  return count;
}

/// Returns cells such that each value of each parameter is in one of them. In a small grid they are
/// the cells that have a value which no earlier cell of the grid has.
std::vector<Cell> with_every_value(const SweepOptions& sweep) {
  std::vector<Cell> cells;
  if (count_of(sweep) <= static_cast<double>(search::kMaxCells)) {
    std::set<std::string> seen;
    for (Cell& cell : search::grid(sweep)) {
      bool is_new = false;
      for (const auto& [key, value] : cell.values)
        is_new = seen.insert(sweep::override_text(key, value)).second || is_new;
      if (is_new) cells.push_back(std::move(cell));
    }
    return cells;
  }
  Cell first;
  for (const auto& parameter : sweep.parameters.parameters)
    first.values.emplace_back(parameter.name, parameter.values.front());
  for (size_t i = 0; i < first.values.size(); ++i)
    for (const Node& value : sweep.parameters.parameters[i].values) {
      Cell cell = first;
      cell.values[i].second = value;
      cells.push_back(search::reduced(std::move(cell), sweep));
    }
  return cells;
}

/// Throws for a goal that is not the direction which the metric says of itself.
void check_goal(const SweepOptions& sweep, const RecipeOptions& recipe) {
  const std::string& name = sweep.metric.name;
  for (const Metric& metric : metrics_of(recipe)) {
    const MetricState state(metric);
    if (state.name() != name || !state.lower_is_better()) continue;
    const char* const goal = *state.lower_is_better() ? "minimize" : "maximize";
    if (sweep.metric.goal == goal) return;
    throw at_its_place(
        sweep,
        {"tare sweep", "metric.goal",
         std::string("is the wrong one for ") + printable(name) + ", of which " +
             (*state.lower_is_better() ? "lower" : "higher") + " is better",
         std::string("{name: ") + printable(name) + ", goal: " + goal + '}', sweep.metric.goal});
  }
}

void check_metric(const SweepOptions& sweep, const RecipeOptions& recipe) {
  check_goal(sweep, recipe);
  auto names = metric_columns(recipe);
  names.insert(names.end(), {"valid_loss", "train_loss"});
  if (std::ranges::find(names, sweep.metric.name) != names.end()) return;
  throw at_its_place(sweep, {"tare sweep", "metric.name", "is not a metric of the recipe",
                             listed(names), printable(sweep.metric.name)});
}

/// grid() would report it without the place.
void check_countable(const SweepOptions& sweep) {
  for (const auto& parameter : sweep.parameters.parameters)
    if (!search::draws(sweep) && std::isinf(search::count_of(parameter)))
      throw at_its_place(sweep,
                         {"sweep", "parameters." + parameter.name, "cannot be counted for a grid",
                          "a list, a step, or whole numbers", "a range"});
}

/// Checks a recipe; throws ConfigError.
using Check = std::function<void(const RecipeOptions&)>;

/// Returns the recipe of a combination; throws ConfigError, also of the check.
RecipeOptions recipe_of(const SweepOptions& sweep, const Settings& set, const Settings& cell,
                        const Check& check) {
  auto settings = sweep::override_texts(sweep, set);
  for (auto& text : sweep::override_texts(sweep, cell)) settings.push_back(std::move(text));
  RecipeOptions recipe = read_recipe(sweep.recipe, settings);
  check(recipe);
  return recipe;
}

bool is_accepted(const SweepOptions& sweep, const Settings& set, const Settings& cell,
                 const Check& check) {
  try {
    (void)recipe_of(sweep, set, cell, check);
    return true;
  } catch (const ConfigError& error) {
    log::debug("a combination is refused: " + std::string(error.what()));
    return false;
  }
}

Settings without(Settings settings, size_t index) {
  settings.values.erase(settings.values.begin() + static_cast<std::ptrdiff_t>(index));
  return settings;
}

/// Returns a combination that the recipe accepts with the settings that all runs share.
std::optional<Cell> accepted_cell(const SweepOptions& sweep, const Check& check) {
  const SweepOptions ends = with_ends(sweep);
  for (Cell& cell : with_every_value(ends))
    if (is_accepted(ends, ends.set, cell, check)) return std::move(cell);
  return {};
}

/// Reads the recipe with the settings that all runs share and, where the recipe refuses these by
/// themselves, with a combination that makes them valid.
RecipeOptions read_with_set(const SweepOptions& sweep, const Check& check) {
  try {
    return recipe_of(sweep, sweep.set, {}, check);
  } catch (const ConfigError& error) {
    if (const auto cell = accepted_cell(sweep, check))
      return recipe_of(sweep, sweep.set, *cell, check);
    const auto& values = sweep.set.values;
    if (const Setting* setting = named_by(sweep, sweep.set, error))
      throw_named(sweep, "set", *setting, error);
    for (size_t i = 0; i < values.size(); ++i)
      if (is_accepted(sweep, without(sweep.set, i), {}, check))
        throw_caused(sweep, "set", values[i], error);
    throw;
  }
}

/// Whether the recipe accepts a combination that has the setting.
bool is_accepted_somewhere(SweepOptions sweep, const Setting& setting, const Check& check) {
  constexpr double kMost = 256;  // of all combinations; of more, each other value is in one
  for (auto& parameter : sweep.parameters.parameters)
    if (parameter.name == setting.first) parameter.values = {setting.second};
  const auto cells = count_of(sweep) <= kMost ? search::grid(sweep) : with_every_value(sweep);
  return std::ranges::any_of(cells, [&](const Cell& cell) {
    return cell.find(setting.first) && is_accepted(sweep, sweep.set, cell, check);
  });
}

/// Throws the error of a combination if one of its values is in no combination that the recipe
/// accepts.
void throw_if_never_accepted(const SweepOptions& sweep, const Cell& cell, const Check& check,
                             const ConfigError& error) {
  const Setting* named = named_by(sweep, cell, error);
  if (named && !is_accepted_somewhere(sweep, *named, check))
    throw_named(sweep, "parameters", *named, error);
  for (size_t i = 0; i < cell.values.size(); ++i) {
    const Setting& setting = cell.values[i];
    if (!is_accepted(sweep, sweep.set, without(cell, i), check)) continue;
    if (is_accepted_somewhere(sweep, setting, check)) continue;
    if (const Setting* shared = named_by(sweep, sweep.set, error))
      throw_named(sweep, "set", *shared, error);
    throw_caused(sweep, "parameters", setting, error);
  }
}

/// Whether a combination that is invalid only as a whole is named in a warning.
enum class Together { silent, warned };

void warn_of(const SweepOptions& sweep, const Cell& cell, const ConfigError& error) {
  std::string pairs;
  for (const auto& [key, value] : cell.values)
    pairs += (pairs.empty() ? "" : ", ") + key + ": " + search::flow_text(value);
  const std::string exclude = sweep.origin.key_of ? "meta.exclude_configs" : "exclude";
  log::warning("a run of the combination {" + printable(pairs, 300) + "} fails: " + error.what() +
               "; add the combination to `" + exclude + "` to skip it");
}

void check_cell(const SweepOptions& sweep, const Cell& cell, const Check& check,
                Together together) {
  try {
    (void)recipe_of(sweep, sweep.set, cell, check);
  } catch (const ConfigError& error) {
    throw_if_never_accepted(sweep, cell, check, error);
    if (together == Together::warned) warn_of(sweep, cell, error);
  }
}

void check_all(const SweepOptions& sweep, const Check& check, Together together) {
  const SweepOptions ends = with_ends(sweep);
  for (const Cell& cell : with_every_value(ends)) check_cell(ends, cell, check, together);
}

/// Throws if a file of a run would have the name of what the runs of the sweep print.
void check_logs(const SweepOptions& sweep, const RecipeOptions& recipe) {
  for (const auto& file : named_files(recipe)) {
    const std::filesystem::path path(file.name);
    if (path.extension() != ".log" && path.extension() != ".err") continue;
    if (!sweep::number_in(path.stem().string(), sweep.name)) continue;
    throw ConfigError(recipe.file.place(file.key), file.key,
                      "would be written to '" + file.name +
                          "', and the output of the sweep's runs has such names",
                      "another name", file.name);
  }
}

/// Throws for a card by its number where runs have several ranks, or where other machines do the
/// runs, of which each sees the cards that it was given.
void check_card(const SweepOptions& sweep, const RecipeOptions& recipe) {
  if (!recipe.learner.stages.empty())
    throw ConfigError(recipe.file.place("stages"), "stages",
                      "divide a model over several devices, and a sweep gives each run one",
                      "no stages in a sweep",
                      std::to_string(recipe.learner.stages.size()) + " stages");
  const std::string& device = recipe.learner.device;
  if (sweep.resources.ranks > 1 && device.starts_with("cuda:"))
    throw ConfigError(recipe.file.place("device"), "device",
                      "names one card, and resources.ranks is " +
                          std::to_string(sweep.resources.ranks) +
                          ", so that a run needs a card for each of its ranks",
                      "auto, cuda or cpu", device);
  if (!device.starts_with("cuda:") || device == "cuda:0") return;
  if (!launch::executor_type(sweep.executor).is_remote) return;
  throw ConfigError(recipe.file.place("device"), "device",
                    "names a card by its number, and the executor '" + sweep.executor.name +
                        "' gives each run a card, which is the only one that it sees",
                    "auto or cuda", device);
}

/// Throws for a device that varies: runs that differ in it alone are one run, see
/// sweep::Identity.
void check_one_device(const SweepOptions& sweep) {
  for (const auto& parameter : sweep.parameters.parameters)
    if (recipe_key(sweep, parameter.name) == "device")
      throw at_its_place(
          sweep, {"tare sweep", "parameters." + parameter.name,
                  "makes no other runs, because a device does not change what a run computes",
                  "`device` in `set` or in the recipe, for all runs; with auto they use all cards "
                  "that CUDA_VISIBLE_DEVICES allows",
                  ""});
}

}  // namespace

void check_sweep(const SweepOptions& sweep) {
  const Check check = [&sweep](const RecipeOptions& recipe) {
    check_files(recipe);
    check_logs(sweep, recipe);
    check_card(sweep, recipe);
    check_ranks(recipe, sweep.resources.ranks);
  };
  check_one_device(sweep);
  check_metric(sweep, read_with_set(sweep, check));
  check_countable(sweep);
  sweep::check_not_all_excluded(sweep);
  check_all(sweep, check, Together::silent);
}

void check_sweep_with_data(const SweepOptions& sweep) {
  RecipeData data(datasets::Network::forbidden);
  const Check check = [&](const RecipeOptions& recipe) {
    check_run(recipe, data, sweep.resources.ranks);
  };
  static_cast<void>(read_with_set(sweep, check));
  check_all(sweep, check, Together::warned);
}

RecipeOptions shared_recipe(const SweepOptions& sweep) {
  return read_with_set(sweep, [](const RecipeOptions&) {});
}

}  // namespace tare

// Tries every value of a sweep in its recipe before anything runs.
#include "tare/cli/sweep_check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/resolve.h"
#include "tare/search/grid.h"
#include "tare/search/sampler.h"
#include "tare/sweep/identity.h"

namespace tare {
namespace {

using config::Node;
using search::Cell;
using search::Settings;
using sweep::SweepOptions;

/// Returns the recipe's name of a setting.
std::string recipe_key(const SweepOptions& sweep, const std::string& key) {
  const auto alias = std::ranges::find(sweep.origin.aliases, key, &sweep::Alias::name);
  return alias == sweep.origin.aliases.end() ? key : alias->key;
}

/// Throws an error at the place of a value in the sweep's file: a parameter's under its name.
[[noreturn]] void throw_at(const SweepOptions& sweep, const std::string& group,
                           const std::string& key, const Node& value, const std::string& behind,
                           const ConfigError& error) {
  const ConfigError own(value.source, group + '.' + key + behind, error.problem(), error.allowed(),
                        error.got());
  throw at_its_place(sweep, own);
}

/// Whether one of two keys is the other or a part of it.
bool is_part_of(const std::string& one, const std::string& other) {
  const auto& [longer, shorter] =
      one.size() > other.size() ? std::tie(one, other) : std::tie(other, one);
  return longer == shorter || longer.starts_with(shorter + '.');
}

/// Throws if the error is about one of the settings, about a part of one, or about what one is a
/// part of.
void throw_if_about(const SweepOptions& sweep, const std::string& group, const Settings& settings,
                    const ConfigError& error) {
  for (const auto& [key, value] : settings.values) {
    const std::string name = recipe_key(sweep, key);
    const std::string& field = error.field();
    if (!field.empty() && is_part_of(field, name))
      throw_at(sweep, group, key, value, field.substr(std::min(field.size(), name.size())), error);
  }
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

/// Returns cells such that each value of each parameter is in one of them. In a small grid they are
/// the cells that have a value which no earlier cell of the grid has.
std::vector<Cell> with_every_value(const SweepOptions& sweep) {
  double count = 1;
  for (const auto& parameter : sweep.parameters.parameters) count *= search::count_of(parameter);
  std::vector<Cell> cells;
  if (count <= static_cast<double>(search::kMaxCells)) {
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

void check_metric(const SweepOptions& sweep, const RecipeOptions& recipe) {
  auto names = chosen_metrics(recipe);
  names.insert(names.end(), {"valid_loss", "train_loss"});
  if (std::ranges::find(names, sweep.metric.name) != names.end()) return;
  throw at_its_place(sweep, {"tare sweep", "metric.name", "is not a metric of the recipe",
                             config::joined(names), printable(sweep.metric.name)});
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

/// Reads the recipe with the settings that all runs share.
RecipeOptions read_with_set(const SweepOptions& sweep, const Check& check) {
  try {
    RecipeOptions recipe = read_recipe(sweep.recipe, sweep::override_texts(sweep, sweep.set));
    check(recipe);
    return recipe;
  } catch (const ConfigError& error) {
    throw_if_about(sweep, "set", sweep.set, error);
    throw;
  }
}

void check_cell(const SweepOptions& sweep, const Cell& cell, const Check& check) {
  auto settings = sweep::override_texts(sweep, sweep.set);
  for (auto& text : sweep::override_texts(sweep, cell)) settings.push_back(std::move(text));
  try {
    check(read_recipe(sweep.recipe, settings));
  } catch (const ConfigError& error) {
    throw_if_about(sweep, "parameters", cell, error);
    throw_if_about(sweep, "set", sweep.set, error);
  }
}

}  // namespace

void check_sweep(const SweepOptions& sweep) {
  check_metric(sweep, read_with_set(sweep, check_files));
  check_countable(sweep);
  const SweepOptions ends = with_ends(sweep);
  for (const Cell& cell : with_every_value(ends)) check_cell(ends, cell, check_files);
}

void check_sweep_with_data(const SweepOptions& sweep) {
  RecipeData data(datasets::Network::forbidden);
  const Check check = [&data](const RecipeOptions& recipe) { check_run(recipe, data); };
  static_cast<void>(read_with_set(sweep, check));
  const SweepOptions ends = with_ends(sweep);
  for (const Cell& cell : with_every_value(ends)) check_cell(ends, cell, check);
}

}  // namespace tare

// Makes and checks the callbacks that a recipe names.
#include "tare/recipe/chosen_callbacks.h"

#include <algorithm>
#include <set>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/registry.h"

namespace tare {
namespace {

[[noreturn]] void refuse(const RecipeOptions& recipe, const std::string& path,
                         const std::string& problem, const std::string& allowed,
                         const std::string& got) {
  throw ConfigError(recipe.file.place(path), path, problem, allowed, got);
}

ChosenCallback made(const RecipeOptions& recipe, const CallbackChoice& choice,
                    const std::string& place) {
  const auto& registry = callbacks::registry();
  try {
    return {registry.make(registry.complete(choice)), place + '.' + choice.name};
  } catch (const ConfigError& error) {
    throw error.within(place, recipe.file.place(place + '.' + error.field()));
  }
}

/// The columns of the epochs table and the names of callbacks, as the list of a fit is walked.
class Walk {
 public:
  explicit Walk(const RecipeOptions& recipe)
      : recipe_(recipe), columns_(chosen_metrics(recipe)), metrics_(columns_) {
    columns_.insert(columns_.end(), {"train_loss", "valid_loss"});
  }

  void check(const std::vector<ChosenCallback>& list) {
    for (const auto& [callback, path] : list) {
      if (!names_.insert(callback->name()).second)
        refuse(recipe_, path, "is there twice in one fit", "once", callback->name());
      const CallbackFacts facts = callback->facts();
      for (const auto& figure : facts.watched) check_column(path, figure);
      columns_.insert(columns_.end(), facts.columns.begin(), facts.columns.end());
      for (const auto& file : facts.files) check_file(path, file);
    }
  }

 private:
  void check_column(const std::string& path, const std::string& figure) const {
    if (std::ranges::find(columns_, figure) != columns_.end()) return;
    // Of data with several targets a metric has a column for each: "mae.age".
    const std::string metric = figure.substr(0, figure.rfind('.'));
    if (std::ranges::find(metrics_, metric) != metrics_.end()) return;
    refuse(recipe_, path,
           "watches what is no column of the epochs table here" + did_you_mean(figure, columns_),
           config::joined(columns_), figure);
  }

  void check_file(const std::string& path, const std::string& file) const {
    try {
      io::checked_name(file, path);
    } catch (const ConfigError& error) {
      throw error.within("", recipe_.file.place(path));
    }
  }

  const RecipeOptions& recipe_;
  std::vector<std::string> columns_, metrics_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<ChosenCallback> make_callbacks(const RecipeOptions& recipe,
                                           std::optional<size_t> phase) {
  const auto& choices = phase ? recipe.phases[*phase].callbacks : recipe.callbacks;
  const std::string list = phase ? "phases." + std::to_string(*phase) + ".callbacks" : "callbacks";
  std::vector<ChosenCallback> all;
  for (size_t i = 0; i < choices.size(); ++i)
    all.push_back(made(recipe, choices[i], list + '.' + std::to_string(i)));
  return all;
}

void check_callbacks(const RecipeOptions& recipe) {
  Walk of_recipe(recipe);
  of_recipe.check(make_callbacks(recipe));
  for (size_t i = 0; i < recipe.phases.size(); ++i) {
    Walk of_phase = of_recipe;
    of_phase.check(make_callbacks(recipe, i));
  }
}

void check_callbacks_without_validation(const RecipeOptions& recipe, size_t phase) {
  std::vector<std::string> of_validation = chosen_metrics(recipe);
  of_validation.emplace_back("valid_loss");
  for (const auto& of : {std::optional<size_t>(), std::optional(phase)})
    for (const auto& [callback, path] : make_callbacks(recipe, of))
      for (const auto& figure : callback->facts().watched)
        if (std::ranges::find(of_validation, figure) != of_validation.end())
          refuse(recipe, path, "needs a validation split", "train_loss", figure);
}

}  // namespace tare

// Makes and checks the callbacks that a recipe names.
#include "tare/recipe/chosen_callbacks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/mixing.h"
#include "tare/callback/monitor.h"
#include "tare/callback/registry.h"
#include "tare/callback/sample_text.h"
#include "tare/recipe/column_check.h"
#include "tare/recipe/target_metrics.h"

namespace tare {
namespace {

[[noreturn]] void refuse(const RecipeOptions& recipe, const std::string& path,
                         const std::string& problem, const std::string& allowed,
                         const std::string& got) {
  throw ConfigError(recipe.file.place(path), path, problem, allowed, got);
}

// Of data with several targets a metric has a column for each: "mae.age" is one of the metric mae.
std::string metric_of(const std::string& figure) { return figure.substr(0, figure.rfind('.')); }

ChosenCallback made(const RecipeOptions& recipe, const CallbackChoice& choice,
                    const std::string& place) {
  const auto& registry = callbacks::registry();
  try {
    const config::Choice complete = registry.complete(choice);
    CallbackPtr callback = registry.make(complete);
    auto* const mixing = dynamic_cast<BatchMixing*>(callback.get());
    if (mixing) mixing->set_classes(recipe.model.options.classes);
    return {std::move(callback), place + '.' + choice.name, complete.options};
  } catch (const ConfigError& error) {
    throw error.within(place, recipe.file.place(place + '.' + error.field()));
  }
}

void check_loss(const RecipeOptions& recipe, const ChosenCallback& chosen) {
  if (!dynamic_cast<const BatchMixing*>(chosen.callback.get())) return;
  if (loss_name(recipe) == "cross_entropy") return;
  refuse(recipe, chosen.path, "mixes classes, which only the loss cross_entropy can be given mixed",
         "loss: cross_entropy", loss_name(recipe));
}

// A value between two codes is the code of another category.
void check_mixes_no_codes(const RecipeOptions& recipe, const DataFacts& facts,
                          const Callback& callback) {
  if (!dynamic_cast<const BatchMixing*>(&callback)) return;
  constexpr size_t kMostNames = 10;
  const std::vector<std::string> columns = category_columns(recipe, facts);
  if (!columns.empty())
    throw ConfigError("recipe.run", "",
                      "would mix the codes of categories: " + listed(columns, kMostNames),
                      "data.columns without them, or no such callback", callback.name());
}

/// Refuses a second callback that restores the best weights of a phase, of which one would have no
/// effect.
void check_restores_once(const RecipeOptions& recipe, size_t phase) {
  std::string first;
  if (!recipe.phases[phase].best.empty()) first = "phases." + std::to_string(phase) + ".best";
  for (const auto& of : {std::optional<size_t>(), std::optional(phase)})
    for (const ChosenCallback& chosen : make_callbacks(recipe, of)) {
      if (!dynamic_cast<const SaveBest*>(chosen.callback.get())) continue;
      const auto [monitor, checkpoint, restore] = config::read<SaveBestOptions>(chosen.options);
      if (!restore) continue;
      if (!first.empty())
        refuse(recipe, chosen.path,
               "restores the best weights at the end of a phase, as " + first +
                   " does, so that one of the two would have no effect",
               "restore: false, or one of the two", monitor.figure);
      first = chosen.path;
    }
}

/// The columns of the epochs table and the names of callbacks, as the list of a fit is walked.
class Walk {
 public:
  explicit Walk(const RecipeOptions& recipe)
      : recipe_(recipe), columns_(watched_columns(recipe)), metrics_(chosen_metrics(recipe)) {
    columns_.insert(columns_.end(), {"train_loss", "valid_loss"});
  }

  void check(const std::vector<ChosenCallback>& list) {
    for (const ChosenCallback& one : list) {
      const auto& [callback, path, options] = one;
      check_loss(recipe_, one);
      if (!names_.insert(callback->name()).second)
        refuse(recipe_, path, "is given twice for one fit", "once", callback->name());
      const CallbackFacts facts = callback->facts();
      if (facts.needs_gradients && recipe_.learner.step_in_backward)
        refuse(recipe_, path, "needs the gradients of a whole step, which step_in_backward frees",
               "step_in_backward: false, or no such callback", callback->name());
      const std::string& shard = recipe_.learner.data_parallel.shard;
      if (facts.needs_gradients && parallel::shards_gradients(recipe_.learner.data_parallel))
        refuse(recipe_, path, "needs all gradients, of which each rank keeps a part",
               "data_parallel.shard: none or optimizer, or no such callback", callback->name());
      if (facts.lends_weights && shard == "parameters")
        refuse(recipe_, path, "exchanges weights, of which each rank keeps a part",
               "another data_parallel.shard than parameters, or no such callback",
               callback->name());
      for (const auto& figure : facts.watched) check_column(path, figure, list);
      for (const std::string& column : facts.columns)
        if (std::ranges::find(metrics_, column) != metrics_.end())
          refuse(recipe_, path, "adds the column " + column + ", which a metric has as its name",
                 "another `as` of the metric, or no such callback", callback->name());
      columns_.insert(columns_.end(), facts.columns.begin(), facts.columns.end());
      for (const auto* names : {&facts.files, &facts.prefixes})
        for (const auto& file : *names) check_file(one.place_of(file), file);
      if (facts.lends_weights && !std::exchange(lender_, callback->name()).empty())
        refuse(recipe_, path, "is the second callback that puts weights into the validation",
               "one for one fit", callback->name());
    }
  }

 private:
  void check_column(const std::string& path, const std::string& figure,
                    const std::vector<ChosenCallback>& list) const {
    if (std::ranges::find(columns_, figure) != columns_.end()) return;
    if (std::ranges::find(metrics_, metric_of(figure)) != metrics_.end()) return;
    for (const ChosenCallback& other : list)
      if (const auto added = other.callback->facts().columns;
          std::ranges::find(added, figure) != added.end())
        refuse(recipe_, path,
               "watches a column that " + other.callback->name() + " adds, which comes behind it",
               other.callback->name() + " in front of it", figure);
    refuse(recipe_, path,
           "watches what is not a column of the epochs table" + did_you_mean(figure, columns_),
           listed(columns_), figure);
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
  std::string lender_;  // the callback that puts weights into the validation
};

}  // namespace

std::string ChosenCallback::place_of(const std::string& value) const {
  const auto has_it = [&](const config::Entry& option) { return option.value.text == value; };
  const auto found = std::ranges::find_if(options.entries, has_it);
  return found == options.entries.end() ? path : path + '.' + found->key;
}

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
    check_restores_once(recipe, i);
  }
}

void check_callbacks(const RecipeOptions& recipe, size_t phase, const DataFacts& facts) {
  const auto metrics = metric_columns(recipe);
  const auto is_metric = [&](const std::string& name) {
    return std::ranges::find(metrics, name) != metrics.end();
  };
  for (const auto& of : {std::optional<size_t>(), std::optional(phase)})
    for (const auto& [callback, path, options] : make_callbacks(recipe, of)) {
      try {
        if (!facts.sample.inputs.empty()) callback->check_data(facts.sample);
        check_mixes_no_codes(recipe, facts, *callback);
        const auto* writer = dynamic_cast<const SampleText*>(callback.get());
        if (writer && facts.bundle) writer->check_prompt(facts.bundle->labels);
      } catch (const ConfigError& error) {
        refuse(recipe, error.field().empty() ? path : path + '.' + error.field(), error.problem(),
               error.allowed(), error.got());
      }
      for (const auto& figure : callback->facts().watched) {
        const std::string metric = metric_of(figure);
        const bool of_a_target = !is_metric(figure) && is_metric(metric);
        const bool of_valid = is_metric(figure) || of_a_target || figure == "valid_loss";
        if (!facts.has_valid && of_valid)
          refuse(recipe, path, "needs a validation split", "train_loss", figure);
        if (of_a_target && facts.sample.targets.size() < 2)
          refuse(recipe, path,
                 "watches a figure of one of several targets, and the data have " +
                     (metrics == chosen_metrics(recipe)
                          ? "one"
                          : "no such one" + did_you_mean(figure, metrics)),
                 metrics == chosen_metrics(recipe) ? metric : listed(metrics), figure);
      }
    }
}

}  // namespace tare

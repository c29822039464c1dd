// Reads a recipe, applies overrides, and checks it.
#include "tare/recipe/read_recipe.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/monitor.h"
#include "tare/config/scalar.h"
#include "tare/config/short_forms.h"
#include "tare/interchange/export_file.h"
#include "tare/learner/learner_devices.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/class_weights.h"
#include "tare/recipe/file_names.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/target_metrics.h"
#include "tare/runtime/device_name.h"
#include "tare/train/recorded_steps.h"

namespace tare {
namespace {

class Checker {
 public:
  explicit Checker(const RecipeOptions& recipe) : recipe_(recipe) {}

  void check() const {
    plain_name(recipe_.name, {"name"});
    at({"device"}, "", [&] { runtime::check_device_name(recipe_.learner.device); });
    at({"stages"}, "", [&] { check_stages(recipe_.learner, "recipe"); });
    if (recipe_.phases.empty())
      fail({"phases"}, "must have at least one phase", "a list of phases", "none");
    check_learner();
    check_loss();
    check_metrics();
    known(recipe_.model.name, models::names(), {"model", "name"});
    if (loss_name(recipe_) == "nll" && !models::family(recipe_.model.name).log_probabilities)
      fail({"loss"},
           "wants logarithms of probabilities, and a " + recipe_.model.name + " gives logits",
           "cross_entropy", "nll");
    at({"model"}, "model", [&] { models::check(recipe_.model.name, counted(recipe_.model)); });
    at({"optimizer"}, "optimizer", [&] { check_optimizer(recipe_.learner.optimizer); });
    check_momentum();
    check_frozen_weights();
    check_optimizer_keys();
    check_data(recipe_.data, {"data"});
    check_overfit();
    check_order();
    check_export();
    at({"clip"}, "clip", [&] { check_clip(recipe_.learner.clip); });
    check_callbacks(recipe_);
    check_saving();
    if (recipe_.learner.step_in_backward && recipe_.learner.clip)
      fail({"clip"}, "needs all gradients of a step, which step_in_backward never has",
           "step_in_backward: false, or no clip", "a bound");
    if (recipe_.learner.step_in_backward && recipe_.learner.precision == "fp16")
      fail({"step_in_backward"}, "leaves nothing to unscale for fp16", "false, or precision: bf16",
           "true");
    check_graph();
    check_phases();
    check_file_names(recipe_);
  }

 private:
  void check_overfit() const {
    if (recipe_.overfit == 0) return;
    if (recipe_.limit)
      fail({"limit"}, "contradicts overfit, which takes its own batches", "one of them", "a limit");
    if (recipe_.learner.sampling != "each")
      fail({"sampling"}, "contradicts overfit, whose batches are the same in each epoch", "each",
           recipe_.learner.sampling);
    if (!recipe_.learner.class_sampling.weights.empty())
      fail({"class_sampling"}, "contradicts overfit, whose batches are the same in each epoch",
           "omit it", "weights");
    if (recipe_.learner.group_by_length)
      fail({"group_by_length"}, "contradicts overfit, whose batches are the same in each epoch",
           "false", "true");
  }

  void check_order() const {
    if (recipe_.learner.group_by_length && !recipe_.learner.shuffle)
      fail({"group_by_length"},
           "chooses the order of the samples, and shuffle: false keeps that of the data",
           "one of them", "true");
    if (recipe_.learner.sampling != "each" && !recipe_.learner.class_sampling.weights.empty())
      fail({"class_sampling"}, "and sampling both say how samples are drawn", "one of them",
           "weights");
    if (recipe_.learner.sampling == "balanced" && has_balanced_weights(recipe_))
      fail({"sampling"},
           "draws every class equally often, and loss.cross_entropy.class_weights: balanced would "
           "weigh the rare ones more once again",
           "one of them", "balanced");
  }

  void check_saving() const {
    if (!recipe_.learner.save_in_background || recipe_.save_every > 0) return;
    const auto any_saves = [](const std::vector<ChosenCallback>& chosen) {
      return std::ranges::any_of(chosen, [](const ChosenCallback& one) {
        const CallbackFacts facts = one.callback->facts();
        return facts.saves_epochs || facts.saves_steps;
      });
    };
    bool saves = any_saves(make_callbacks(recipe_));
    for (size_t i = 0; i < recipe_.phases.size(); ++i)
      saves = saves || !recipe_.phases[i].best.empty() || any_saves(make_callbacks(recipe_, i));
    if (!saves)
      fail({"save_in_background"}, "has no effect, because nothing saves inside a phase",
           "omit it, or a save_every above 0", "true");
  }

  // With a number of classes, which the data may give later.
  static ModelOptions counted(const ModelChoice& model) {
    ModelOptions options = model.options;
    if (options.classes == 0) options.classes = ModelOptions().classes;
    return options;
  }

  // The recipe.yaml of a run would lack what a file cannot contain.
  void check_learner() const {
    struct Option {
      const char* name = "";
      bool given = false;
    };
    const LearnerOptions &given = recipe_.learner, standard;
    for (const Option& option :
         {Option{"optimizer_factory", static_cast<bool>(given.optimizer_factory)},
          Option{"optimizers", !given.optimizers.empty()},
          Option{"callbacks", !given.callbacks.empty()},
          Option{"task", given.task || !given.task.turns.empty()},
          Option{"batch", given.batch != standard.batch},
          Option{"folder", given.folder != standard.folder},
          Option{"progress", given.progress != standard.progress}})
      if (option.given)
        fail({"learner", option.name}, "is not read from LearnerOptions in a recipe",
             "the keys of a recipe, see docs/recipes.md; or a Learner of your own", "a value");
  }

  void check_loss() const {
    if (!std::holds_alternative<std::string>(recipe_.learner.loss))
      fail({"loss"}, "must be a name, which the run's recipe.yaml can hold", listed(loss_names()),
           "a function");
    known(loss_name(recipe_), loss_names(), {"loss"});
    at({"loss"}, "loss", [&] {
      static_cast<void>(losses::registry().complete(
          {.name = loss_name(recipe_), .options = recipe_.learner.loss.options}));
    });
  }

  void check_metrics() const {
    std::set<std::string> seen;
    for (size_t i = 0; i < recipe_.learner.metrics.size(); ++i) {
      const Metric& metric = recipe_.learner.metrics[i];
      const auto* name = std::get_if<std::string>(&metric);
      if (!name)
        fail({"metrics", std::to_string(i)}, "must be a name, which the run's recipe.yaml can hold",
             listed(metric_names()), "a function");
      known(*name, metric_names(), {"metrics", std::to_string(i)});
      at({"metrics", std::to_string(i)}, "metrics." + std::to_string(i),
         [&] { (void)MetricState(metric); });
      if (!seen.insert(column_of(metric)).second)
        fail({"metrics", std::to_string(i)}, "stands twice in the list",
             "once, or with options and a name of its own, such as {f1: {average: micro, as: "
             "f1_micro}}",
             column_of(metric));
    }
  }

  // A one-cycle schedule sets the momentum of every step, unless the optimizer has none.
  void check_momentum() const {
    const auto& momentum = recipe_.learner.optimizer.momentum;
    const bool given = momentum && *momentum > 0 && !recipe_.phases.empty();
    if (given && std::ranges::all_of(recipe_.phases, [](const PhaseOptions& phase) {
          return phase.schedule.kind == "one_cycle";
        }))
      fail({"optimizer", "momentum"}, "is set by the one-cycle schedule of every phase",
           "0, another schedule, or schedule.one_cycle.momentum_start and momentum_lowest",
           config::number_text(*momentum));
    if (momentum_of(recipe_.learner.optimizer) > 0) return;
    for (size_t i = 0; i < recipe_.phases.size(); ++i) {
      const OneCycle& shape = recipe_.phases[i].schedule.one_cycle;
      const auto unused = [&](const char* key, double value, double standard) {
        if (value != standard)
          fail({"phases", std::to_string(i), "schedule", "one_cycle", key},
               "has no effect, because the optimizer " + recipe_.learner.optimizer.kind +
                   " has no momentum",
               "omit it, or take an optimizer with momentum", config::number_text(value));
      };
      unused("momentum_start", shape.momentum_start, OneCycle{}.momentum_start);
      unused("momentum_lowest", shape.momentum_lowest, OneCycle{}.momentum_lowest);
    }
  }

  void check_frozen_weights() const {
    const auto freezes = [](const PhaseOptions& phase) { return phase.freeze_to != 0; };
    if (recipe_.learner.frozen_weights == "fp8" && std::ranges::none_of(recipe_.phases, freezes))
      fail({"frozen_weights"}, "has no effect, because no phase freezes layers",
           "omit it, or freeze_to in a phase", recipe_.learner.frozen_weights);
  }

  // The rate of the optimizer is that of the phases that have none.
  void check_optimizer_keys() const {
    const OptimizerOptions &given = recipe_.learner.optimizer, standard;
    const auto has_rate = [](const PhaseOptions& phase) { return phase.lr.has_value(); };
    if (given.lr != standard.lr && std::ranges::all_of(recipe_.phases, has_rate))
      fail({"optimizer", "lr"}, "has no effect, because every phase has an lr of its own",
           "omit it, or omit the lr of a phase", config::number_text(given.lr));
    if (given.decay_norm_and_bias && given.weight_decay == 0)
      fail({"optimizer", "decay_norm_and_bias"}, "has no effect, because weight_decay is 0",
           "omit it, or a weight_decay above 0", "true");
  }

  void check_export() const {
    const std::string name = export_name(recipe_);
    if (name.empty() && recipe_.export_weights != RecipeOptions{}.export_weights)
      fail({"export_weights"}, "has no effect, because the recipe exports no bundle",
           "omit it, or export: the name of a file", recipe_.export_weights);
    if (recipe_.export_tolerance && !rounds_weights(recipe_.export_weights))
      fail({"export_tolerance"}, "has no effect, because the weights of the bundle are not rounded",
           "omit it, or export_weights: bf16, fp16, fp8 or int8",
           config::number_text(*recipe_.export_tolerance));
    if (name.empty() && !recipe_.export_formats.empty())
      fail({"export_formats"}, "has no effect, because the recipe exports no bundle",
           "omit it, or export: the name of a file", recipe_.export_formats.front());
    for (size_t i = 0; i < recipe_.export_formats.size(); ++i)
      known(recipe_.export_formats[i], interchange::format_names(),
            {"export_formats", std::to_string(i)});
    if (recipe_.export_fold_norms &&
        std::ranges::none_of(recipe_.export_formats, [this](const std::string& format) {
          return folds_norms(recipe_, format);
        }))
      fail({"export_fold_norms"}, "has no effect, because the recipe exports no graph",
           "omit it, or export_formats: [onnx] or [pt2]", "true");
    const int64_t opset = recipe_.export_opset;
    if (!interchange::is_opset(opset))
      fail({"export_opset"}, "is no version of ONNX's operators that Tare writes", "18 or 23",
           std::to_string(opset));
    if (opset != RecipeOptions{}.export_opset &&
        std::ranges::find(recipe_.export_formats, "onnx") == recipe_.export_formats.end())
      fail({"export_opset"}, "has no effect, because the recipe exports no onnx file",
           "omit it, or export_formats: [onnx]", std::to_string(opset));
    if (name.empty()) return;
    if (name == "true" || name == "false")
      fail({"export"}, "must be the name of a file", "such as model.tare; null: none", name);
    for (const interchange::FileFormat& format : interchange::file_formats())
      if (name.ends_with(format.extension))
        fail({"export"}, "names a bundle, and has the extension of " + format.name,
             "such as model.tare, with export_formats: [" + format.name + "]", name);
    plain_name(name, {"export"});
  }

  void check_phases() const {
    std::set<std::string> saved, names;
    for (size_t i = 0; i < recipe_.phases.size(); ++i) {
      const PhaseOptions& phase = recipe_.phases[i];
      const std::string index = std::to_string(i);
      if (!phase.name.empty()) plain_name(phase.name, {"phases", index, "name"});
      if (!phase.name.empty() && !names.insert(phase.name).second) {
        fail({"phases", index, "name"}, "is the name of two phases", "a name of its own",
             phase.name);
      }
      check_micro_batch(phase, i);
      if (phase.data) check_data(*phase.data, {"phases", index, "data"});
      if (!phase.load.empty() && !saved.contains(phase.load)) {
        fail({"phases", index, "load"}, "is saved by no earlier phase",
             saved.empty() ? "nothing is saved before" : listed({saved.begin(), saved.end()}),
             phase.load);
      }
      if (phase.lr) check_rate(*phase.lr, {"phases", index, "lr"});
      if (phase.duration) check_duration(phase, index);
      if (!phase.best.empty()) check_figure(phase.best, {"phases", index, "best"});
      at({"phases", index, "schedule"}, "phases." + index + ".schedule",
         [&] { phase.schedule.check(); });
      check_schedules(phase, i);
      for (const auto* list : {&recipe_.callbacks, &phase.callbacks})
        for (const CallbackChoice& one : *list)
          if (one.name == "save_best")
            saved.insert(config::read<SaveBestOptions>(one.options).checkpoint);
      if (phase.save.empty()) continue;
      plain_name(phase.save, {"phases", index, "save"});
      saved.insert(phase.save);
    }
  }

  void check_duration(const PhaseOptions& phase, const std::string& index) const {
    const std::vector<std::string> keys{"phases", index, "duration"};
    if (phase.epochs != PhaseOptions{}.epochs)
      fail(keys, "is given beside epochs",
           "one of them, such as duration: {epochs: 3, minutes: 10}",
           "epochs: " + std::to_string(phase.epochs));
    at(keys, "phases." + index,
       [&] { tare::check(*phase.duration, phase.schedule, phase.schedules, "recipe.run"); });
  }

  using Keys = std::vector<std::string>;

  void check_schedules(const PhaseOptions& phase, size_t index) const {
    const Keys keys{"phases", std::to_string(index), "schedules"};
    at(keys, dotted(keys), [&] {
      phase.schedules.check(phase.schedule);
      check_bounds(phase.schedules, momentum_of(recipe_.learner.optimizer),
                   group_beta2_of(recipe_.learner.optimizer));
    });
    const OptimizerOptions& optimizer = recipe_.learner.optimizer;
    const auto unused = [&](const char* key, const std::string& why, const std::string& got) {
      Keys below = keys;
      below.emplace_back(key);
      fail(below, "has no effect, because the optimizer " + optimizer.kind + " has " + why,
           "omit it, or a value above 0 in the optimizer", got);
    };
    if (phase.schedules.momentum && momentum_of(optimizer) == 0)
      unused("momentum", "no momentum", phase.schedules.momentum->kind);
    if (phase.schedules.beta2 && group_beta2_of(optimizer).value_or(0) == 0)
      unused("beta2", "no beta2", phase.schedules.beta2->kind);
    const bool decays = optimizers::registry().make(optimizer.kind, optimizer.options).weight_decay;
    if (phase.schedules.weight_decay && (!decays || optimizer.weight_decay == 0))
      unused("weight_decay", "no weight decay", phase.schedules.weight_decay->kind);
  }

  void check_figure(const std::string& name, const std::vector<std::string>& keys) const {
    const std::vector<std::string> names = figures();
    if (std::ranges::find(names, name) == names.end())
      fail(keys, "is not a figure of this recipe" + did_you_mean(name, names), listed(names), name);
  }

  [[nodiscard]] std::vector<std::string> figures() const {
    std::vector<std::string> all = watched_columns(recipe_);
    all.insert(all.end(), {"train_loss", "valid_loss"});
    return all;
  }

  /// Looks at the options of each phase.
  void check_graph() const {
    LearnerOptions options = recipe_.learner;
    const auto check = [&](const std::string& of_phase) {
      if (const auto refused = refused_by_graph(options))
        fail({refused->field}, refused->problem + of_phase, refused->allowed, refused->got);
    };
    check("");
    for (size_t i = 0; i < recipe_.phases.size(); ++i) {
      options.recompute = recompute_of(recipe_, recipe_.phases[i]);
      options.offload = offload_of(recipe_, recipe_.phases[i]);
      check(", as " + phase_number(i) + " does");
    }
  }

  void check_micro_batch(const PhaseOptions& phase, size_t index) const {
    const auto samples = micro_batch_of(recipe_, phase);
    const auto given = given_batch(recipe_, phase);
    if (!samples || !given) return;  // a batch that the data decides is checked with it
    const int64_t batch = *given;
    if (recipe_.learner.step_in_backward && *samples < batch)
      fail({"step_in_backward"},
           "steps at the first backward, but " + phase_number(index) + " works in micro-batches",
           "false, or no micro_batch", "true");
    if (*samples <= batch) return;
    const Keys keys = phase.micro_batch ? Keys{"phases", std::to_string(index), "micro_batch"}
                                        : Keys{"micro_batch"};
    fail(keys, "is larger than the batch of " + phase_number(index),
         "auto, or at most " + std::to_string(batch), std::to_string(*samples));
  }

  void check_data(const DataOptions& data, const Keys& keys) const {
    Keys name = keys;
    name.emplace_back("name");
    known(data.name, datasets::names(), name);
    at(keys, dotted(keys), [&] { datasets::check(data); });
  }

  // Infinity is above 0, as the field asks.
  void check_rate(const LearningRate& lr, const Keys& keys) const {
    if (const LrFindOptions* search = lr.search()) {
      Keys below = keys;
      below.emplace_back("find");
      return at(below, dotted(below), [&] { search->check("recipe"); });
    }
    const auto* one = std::get_if<double>(&lr);
    const LrRange range = one ? LrRange{*one, *one} : std::get<LrRange>(lr);
    for (const double rate : {range.from, range.to})
      if (!std::isfinite(rate)) fail(keys, "must be finite", "", config::number_text(rate));
  }

  void plain_name(const std::string& name, const Keys& keys) const {
    at(keys, "", [&] { io::checked_name(name, dotted(keys)); });
  }

  /// Gives a ConfigError of `call` the place of the value that `keys` lead to.
  template <class Call>
  void at(const Keys& keys, const std::string& parent, Call call) const {
    try {
      call();
    } catch (const ConfigError& error) {
      const bool below = !parent.empty() && !error.field().empty();
      throw error.within(
          parent, recipe_.file.place(dotted(keys) + (below ? "." + error.field() : std::string())));
    }
  }

  static std::string dotted(const Keys& keys) {
    std::string path;
    for (const auto& key : keys) path += (path.empty() ? "" : ".") + key;
    return path;
  }

  void known(const std::string& name, const std::vector<std::string>& names,
             const std::vector<std::string>& keys) const {
    if (std::ranges::find(names, name) != names.end()) return;
    fail(keys, "is not known" + did_you_mean(name, names), config::listed_entries(names), name);
  }

  [[noreturn]] void fail(const std::vector<std::string>& keys, const std::string& problem,
                         const std::string& allowed, const std::string& got) const {
    throw ConfigError(recipe_.file.place(dotted(keys)), dotted(keys), problem, allowed, got);
  }

  const RecipeOptions& recipe_;
};

// Throws ConfigError for a sweep and for another configuration of one, with the command to type.
void refuse_other_files(const config::Node& root, const std::filesystem::path& file) {
  const config::Node* other = root.find("recipe");
  const char* what = "a sweep of a recipe";
  if (!other) {
    other = root.find("meta");
    what = "the configuration of a sweep";
  }
  if (!other || root.find("phases")) return;
  throw ConfigError(other->source, "",
                    std::string("'") + printable(file.string()) + "' is " + what +
                        ", not a recipe: `tare sweep plan " + printable(file.string()) +
                        "` plans its runs, and `tare sweep run` with the file starts them");
}

/// A key of a phase that stands at the level of the run is not merely unknown.
void refuse_phase_keys(const config::Node& root) {
  const auto of_run = config::field_names<RecipeOptions>();
  const auto of_phase = config::field_names<PhaseOptions>();
  for (const auto& [key, source, value] : root.entries) {
    if (std::ranges::find(of_run, key) != of_run.end() ||
        std::ranges::find(of_phase, key) == of_phase.end())
      continue;
    const bool searches = key == "lr" && value.text == "auto";
    const std::string text = searches ? "find" : config::flow_text(value);
    throw ConfigError(source, key, "belongs to a phase",
                      value.source.line > 0
                          ? "`phases: [{" + key + ": " + text + "}]`"
                          : "`phases.0." + key + '=' + text + "` for the first one, and so on",
                      {});
  }
}

/// Reads a recipe from its tree.
RecipeOptions recipe_of(config::Node root, const std::vector<std::string>& overrides) {
  for (const auto& assignment : overrides) config::apply_recipe_override(root, assignment);
  config::expand_short_forms(root);
  refuse_phase_keys(root);
  auto recipe = config::read<RecipeOptions>(root);
  const auto* model = root.find("model");
  const bool has_model = model && (model->find("name") || model->find("torchscript"));
  const Source place = model ? model->source : root.source;
  recipe.file = RecipeFile(std::move(root));
  Checker(recipe).check();
  if (!has_model)
    throw ConfigError(place, "model.name", "is missing", config::listed_entries(models::names()),
                      {});
  return recipe;
}

}  // namespace

RecipeOptions read_recipe(const std::filesystem::path& file,
                          const std::vector<std::string>& overrides) {
  config::Node root = config::parse_file(file);
  refuse_other_files(root, file);
  return recipe_of(std::move(root), overrides);
}

RecipeOptions recipe_from_text(const std::string& text, const std::string& name,
                               const std::vector<std::string>& overrides) {
  return recipe_of(config::parse_text(text, name), overrides);
}

void check_recipe(const RecipeOptions& recipe) {
  config::validate(recipe, "recipe");
  Checker(recipe).check();
}

}  // namespace tare

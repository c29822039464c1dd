// Exports bundles from runs, checkpoints and other bundles.
#include "tare/recipe/export.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/autosave.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/inference/bundle.h"
#include "tare/inference/bundle_folder.h"
#include "tare/interchange/export_file.h"
#include "tare/learner/learner.h"
#include "tare/learner/rounded_figures.h"
#include "tare/metric/loss.h"
#include "tare/model/coded_weight.h"
#include "tare/model/stored.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/file_names.h"
#include "tare/recipe/learner_options.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/position.h"
#include "tare/recipe/read_recipe.h"
#include "tare/recipe/recipe_data.h"
#include "tare/recipe/resume.h"
#include "tare/recipe/run_folder.h"
#include "tare/train/bundle_data.h"
#include "tare/train/train_state.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExport = "export";
constexpr const char* kRecipe = "recipe.yaml";
constexpr const char* kTare = "tare";  // the format of bundles

[[noreturn]] void refuse(const fs::path& from, const std::string& problem) {
  throw ConfigError(kExport, "'" + printable(from.string()) + "' " + problem);
}

// The checkpoints that phases and callbacks saved; those of an earlier run that were set aside are
// not its own.
std::vector<std::string> saved_names(const fs::path& folder) {
  const auto automatic = automatic_checkpoints();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const auto extension = entry.path().extension();
    if (std::ranges::find(automatic, name) == automatic.end() && extension != ".partial" &&
        extension != ".old" && checkpoint::exists(entry.path()))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// The phase whose weights a checkpoint holds. Checkpoints of earlier versions do not store it:
// there a phase saves under its name before it counts as done, and automatic checkpoints between
// two phases are written after it.
size_t phase_of(const RecipeOptions& recipe, const std::string& name, const TrainState& state) {
  const auto position = std::make_shared<Position>();
  restore(state.callbacks, {position});
  if (position->phase()) return std::min(*position->phase(), recipe.phases.size() - 1);
  const auto saves = [&](const PhaseOptions& phase) { return phase.save == name; };
  const auto found = std::find_if(recipe.phases.rbegin(), recipe.phases.rend(), saves);
  if (found != recipe.phases.rend()) return static_cast<size_t>(recipe.phases.rend() - found) - 1;
  const size_t done = position->done().size();
  const size_t phase = state.plan || done == 0 ? done : done - 1;
  return std::min(phase, recipe.phases.size() - 1);
}

Model model_of(const RecipeOptions& recipe, const DataFacts& facts,
               const checkpoint::Loaded& loaded, const fs::path& path) {
  // The checkpoint has the weights.
  const ModelOptions options = models::without_weights(model_options(recipe, facts));
  Model model = models::make(recipe.model.name, options);
  const auto match = compare_stored(model, loaded.model, kExport, path);
  if (!match.complete())
    throw FormatError(kExport, path.string(), "model", "is not the recipe's; " + match.str());
  return model;
}

// Gives the model and the checkpoint the weights with which the run would end if a callback had
// restored this checkpoint: those that a callback lent, where it keeps them. Sets
// `state.lent_figures` as the Learner would.
void restore_lent(const RecipeOptions& recipe, size_t phase, checkpoint::Loaded& loaded,
                  TrainState& state, Model& model, const fs::path& path) {
  auto chosen = make_callbacks(recipe);
  for (auto& one : make_callbacks(recipe, phase)) chosen.push_back(std::move(one));
  for (const auto& [callback, place, options] : chosen) {
    const auto saved = std::ranges::find(state.callbacks, callback->name(), &CallbackState::name);
    if (!callback->facts().keeps_lent || saved == state.callbacks.end() || saved->tensors.empty())
      continue;
    loaded.model = dequantised(loaded.model, kExport, path);
    load_stored(model, loaded.model, /*strict=*/true, kExport, path);
    callback->after_restore(model, saved->tensors);
    const auto restored = stored_state(model);
    for (auto& [name, tensor] : loaded.model) {
      const auto found = std::ranges::find(restored, name, &NamedTensor::name);
      if (found != restored.end()) tensor = found->tensor.to(tensor.scalar_type());
    }
    state.lent_figures = false;
  }
}

std::string extension_of(const BundleFormat& format) {
  return format.format == kTare ? ".tare" : interchange::file_format(format.format).extension;
}

/// Returns how the tensors are stored that a format gets: files for other programs get float32.
std::string storage_of(const BundleFormat& format, const std::string& otherwise) {
  return format.format == kTare ? format.weights.value_or(otherwise) : "fp32";
}

BundleExport write(const fs::path& from, const fs::path& to, const BundleFormat& format,
                   const BundleManifest& manifest, const std::vector<NamedTensor>& tensors,
                   std::string phase) {
  if (format.format != kTare) {
    const interchange::ExportedFile file =
        interchange::export_file(to, format.format, manifest, tensors,
                                 {.weights = format.weights.value_or(""),
                                  .fold_norms = format.fold_norms,
                                  .opset = format.opset});
    return {.from = from,
            .bundle = to,
            .bytes = file.bytes,
            .second = file.second,
            .difference = file.difference,
            .phase = std::move(phase)};
  }
  write_bundle(to, manifest, tensors);
  return {.from = from,
          .bundle = to,
          .bytes = open_bundle(to).file().file_bytes(),
          .phase = std::move(phase)};
}

// Names do not show which tensors are buffers; the model does.
std::vector<std::string> parameters_of(const Bundle& bundle) {
  if (bundle.manifest().model.name.empty())
    refuse(bundle.file().path(),
           "holds a model that is not in the registry: export it with such weights by a program");
  return parameter_names(models::make(bundle.manifest().model));
}

/// Measures rounded tensors of the registry's model over the validation split of a phase, if it has
/// one. `trained`: the tensors before.
void measure(const RecipeOptions& recipe, size_t phase, const OpenData& data,
             const BundleFormat& format, const std::string& weights,
             const std::vector<NamedTensor>& trained, const std::vector<NamedTensor>& tensors,
             BundleManifest& manifest) {
  if (!rounds_weights(weights) && format.tolerance)
    throw ConfigError(kExport, "--tolerance is for rounded weights, and these are " + weights +
                                   ": give --weights bf16, fp16, fp8 or int8, or omit it");
  if (!rounds_weights(weights) || manifest.model.name.empty()) return;
  RoundedWeights rounded{.call = "tare export",
                         .storage = weights,
                         .tolerance = format.tolerance,
                         .learner = learner_options(recipe, phase, data.facts),
                         .valid = data.named.splits.valid};
  if (!rounded.valid) {
    if (!format.tolerance) return;
    throw ConfigError(kExport,
                      "--tolerance needs a validation split, and the data of the run have "
                      "none: omit it");
  }
  rounded.learner.device = "cpu";
  rounded.learner.stages.clear();
  rounded.trained = [&] {
    Model model = models::make(manifest.model);
    load_stored(model, trained, /*strict=*/true, kExport, {});
    return Learner(std::move(model), {.train = {}, .valid = rounded.valid, .test = {}},
                   rounded.learner)
        .validate();
  };
  measure_rounded(rounded, tensors, manifest);
}

/// Measures what is made of a run's bundle, where the run's data are there.
void measure_bundle(const RecipeOptions& recipe, const Bundle& bundle, const BundleFormat& format,
                    const std::string& weights, const std::vector<NamedTensor>& tensors,
                    BundleManifest& manifest) {
  if (!rounds_weights(weights) && !format.tolerance) return;
  const size_t phase = recipe.phases.size() - 1;
  RecipeData data;
  try {
    measure(recipe, phase, open_data(recipe, phase, data), format, weights,
            dequantised(bundle.tensors(), kExport, bundle.file().path()), tensors, manifest);
  } catch (const IoError& error) {
    if (format.tolerance) throw;
    log::warning(
        "the rounded weights are not measured, because the data of the run cannot be "
        "read: " +
        std::string(error.what()));
  }
}

/// `recipe`: of the run whose bundle it is; null: nothing is known of it.
BundleExport from_bundle(const fs::path& from, const fs::path& to, const BundleFormat& format,
                         const RecipeOptions* recipe = nullptr) {
  const Bundle bundle = open_bundle(from);
  const std::string weights = storage_of(format, "as_is");
  const auto parameters =
      rounds_weights(weights) ? parameters_of(bundle) : std::vector<std::string>{};
  BundleManifest manifest = bundle.manifest();
  if (weights != "as_is") manifest.weights = rounds_weights(weights) ? weights : "as_is";
  const auto tensors = stored_for(bundle.tensors(), parameters, weights, kExport, from);
  if (recipe) {
    measure_bundle(*recipe, bundle, format, weights, tensors, manifest);
  } else if (format.tolerance) {
    throw ConfigError(kExport,
                      "--tolerance needs the data of a training, and a bundle has none: "
                      "give the folder of its run, or omit it");
  }
  return write(from, to, format, manifest, tensors, "");
}

// The model computes with the dequantised values of what a checkpoint holds as fp8.
std::vector<NamedTensor> tensors_of(const checkpoint::Loaded& loaded, const Model& model,
                                    const std::string& weights, const fs::path& path) {
  if (weights == "as_is") return dequantised(loaded.model, kExport, path);
  return stored_for(loaded.model, parameter_names(model), weights, kExport, path);
}

BundleExport from_checkpoint(const RecipeOptions& recipe, const fs::path& path, const fs::path& to,
                             const BundleFormat& format) {
  auto loaded = checkpoint::load(path, {.with_optimizer = false});
  TrainState state = train_state_from(loaded.state, loaded.extra, path);
  const size_t phase = phase_of(recipe, path.filename().string(), state);
  RecipeData data;
  Model model = model_of(recipe, open_data(recipe, data).facts, loaded, path);
  restore_lent(recipe, phase, loaded, state, model, path);
  const auto figures = row_of_figures(state);
  BundleManifest manifest{
      .model = *model.spec(),
      .transforms = {},
      .metrics = bundle_metrics(figures ? &*figures : nullptr, recipe.learner.metrics),
      .activation = resolve(recipe.learner.loss).activation_name,
      .loss = losses::text_of(recipe.learner.loss)};
  // The checkpoint describes the data of all phases as they were before the size of the phase.
  const OpenData& read =
      recipe.phases[phase].data ? open_data(recipe, phase, data) : open_data(recipe, data);
  const std::string changed = changed_data(state.callbacks, phase, read.named);
  if (!changed.empty()) refuse(path, changed);
  const OpenData& trained_on = open_data(recipe, phase, data);
  const auto& described = trained_on.facts.bundle;
  if (described) describe(manifest, *described, kExport);
  name_numbers(manifest);
  if (manifest.labels.empty() && !manifest.rows)
    manifest.targets = data_of(recipe, recipe.phases[phase]).targets;
  const std::string weights = storage_of(format, recipe.export_weights);
  if (rounds_weights(weights)) manifest.weights = weights;
  const auto tensors = tensors_of(loaded, model, weights, path);
  measure(recipe, phase, trained_on, format, weights, loaded.model, tensors, manifest);
  return write(path, to, format, manifest, tensors, name_of(recipe, phase));
}

/// Throws FormatError for a damaged part of a run's folder, with what else in it can be exported.
[[noreturn]] void refuse_damaged(const fs::path& folder, const RecipeOptions& recipe,
                                 const std::string& part, const FormatError& error) {
  std::string intact;
  const auto add = [&](const fs::path& path, const std::string& more, const auto& verify) {
    try {
      verify(path);
      intact += (intact.empty() ? "`tare export " : ", `tare export ") +
                printable(path.string(), 1000) + more + '`';
    } catch (const FormatError& damaged) {
      log::debug(damaged.what());
    }
  };
  for (const auto& name : result_names(recipe))
    if (checkpoint::exists(folder / name))
      add(folder / name, "", [](const fs::path& path) { (void)checkpoint::load(path); });
  const fs::path bundle = folder / export_name(recipe);
  if (fs::is_regular_file(bundle))
    add(bundle, " --out FILE", [](const fs::path& path) { (void)open_bundle(path); });
  throw FormatError(kExport, folder.string(), part,
                    "does not verify (" + std::string(error.what()) + "); " +
                        (intact.empty() ? "nothing else there verifies: " + run_again_text(folder)
                                        : "these verify: " + intact));
}

/// Throws ConfigError for a folder, and for the name of a file that a run writes in its folder.
void check_target(const fs::path& to) {
  const std::string text = '\'' + printable(to.string(), 1000) + '\'';
  if (fs::is_directory(to) || !to.has_filename())
    throw ConfigError(kExport, text + " names a folder: give the name of a file, such as " +
                                   printable((to / "model.tare").string(), 1000));
  fs::path name = fs::weakly_canonical(to), folder = name.parent_path();
  while (!holds_recipe_of_run(folder) && folder.has_relative_path()) {
    name = folder;
    folder = folder.parent_path();
  }
  if (!holds_recipe_of_run(folder)) return;
  RecipeOptions recipe = read_recipe(folder / kRecipe);
  recipe.export_to = name.filename().string();
  try {
    check_file_names(recipe);
  } catch (const ConfigError& error) {
    throw ConfigError(kExport, text + " cannot be the new bundle, which " + error.problem() +
                                   ": give another name");
  }
}

BundleExport from_run(const fs::path& folder, fs::path to, const BundleFormat& format) {
  const RecipeOptions recipe = read_recipe(folder / kRecipe);
  const std::string name = export_name(recipe);
  const fs::path own = folder / (name.empty() ? recipe.name + ".tare" : name);
  if (to.empty()) to = fs::path(own).replace_extension(extension_of(format));
  std::optional<CheckpointInfo> newest;
  try {
    newest = newest_checkpoint(folder, Autosave::names());
  } catch (const FormatError& error) {
    refuse_damaged(folder, recipe, "its newest automatic checkpoint", error);
  }
  if (!newest && !name.empty() && fs::is_regular_file(own)) try {
      return from_bundle(own, to, format, &recipe);
    } catch (const FormatError& error) {
      refuse_damaged(folder, recipe, "its bundle", error);
    }
  if (!newest) newest = newest_checkpoint(folder, saved_names(folder));
  if (!newest)
    refuse(folder,
           "holds neither a checkpoint nor the bundle of its run: " + run_again_text(folder));
  return from_checkpoint(recipe, folder / newest->name, to, format);
}

}  // namespace

BundleExport export_bundle(const fs::path& from, const fs::path& to, const BundleFormat& format) {
  if (format.fold_norms && format.format == kTare)
    throw ConfigError(kExport,
                      "--fold-norms is for the formats onnx and pt2, and a bundle keeps "
                      "its norms: omit it, or give --format");
  if (format.opset != BundleFormat{}.opset && format.format != "onnx")
    throw ConfigError(kExport, "--opset is for the format onnx: omit it, or give --format onnx");
  check_tolerance(format.tolerance, kExport);
  if (format.tolerance &&
      (format.format != kTare || (format.weights && !rounds_weights(*format.weights))))
    throw ConfigError(kExport,
                      "--tolerance is for bundles of rounded weights: give --weights bf16, "
                      "fp16, fp8 or int8, or omit it");
  if (format.format != kTare) {
    (void)interchange::file_format(format.format);
  } else if (format.weights) {
    check_weight_storage(*format.weights, kExport);
  }
  if (!to.empty()) check_target(to);
  for (const interchange::FileFormat& other : interchange::file_formats())
    if (format.format == kTare && to.extension() == other.extension)
      throw ConfigError(kExport,
                        "'" + printable(to.string(), 1000) +
                            "' would be a bundle with the extension of " + other.name +
                            ": give --format " + other.name + ", or a name such as " +
                            printable(fs::path(to).replace_extension(".tare").string(), 1000));
  // "run/" and "run/saved/" name what they name without the separator at the end.
  const fs::path path = from.has_filename() ? from : from.parent_path();
  if (fs::is_directory(path)) {
    if (fs::is_regular_file(path / kRecipe)) return from_run(path, to, format);
    if (!checkpoint::exists(path)) refuse(path, other_folder_text(path));
  }
  if (checkpoint::exists(path)) {
    const fs::path run = fs::absolute(path).lexically_normal().parent_path();
    if (!fs::is_regular_file(run / kRecipe))
      refuse(path,
             "is a checkpoint outside a run's folder: nothing says how to build its model; "
             "load() it into a Learner and export_to() from there");
    const fs::path beside = run / (path.filename().string() + extension_of(format));
    return from_checkpoint(read_recipe(run / kRecipe), path, to.empty() ? beside : to, format);
  }
  if (!to.empty()) return from_bundle(path, to, format);
  (void)open_bundle(path);  // a file that is not a bundle is reported first
  refuse(path, "is a bundle: say with --out where the new one goes");
}

}  // namespace tare

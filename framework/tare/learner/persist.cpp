// Saves, loads and exports a Learner.
#include <torch/nn/module.h>

#include <algorithm>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/config/scalar.h"
#include "tare/inference/bundle.h"
#include "tare/inference/predictor.h"
#include "tare/interchange/export_file.h"
#include "tare/learner/learner.h"
#include "tare/learner/rounded_figures.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/model/block.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/train/bundle_data.h"
#include "tare/train/fit_loop.h"
#include "tare/train/learner_state.h"
#include "tare/train/rng.h"

namespace tare {
namespace {

using memory::Phase;
using memory::PhaseKind;

// A name below the folder, or a path when it has a separator.
std::filesystem::path place_of(const std::string& name, const std::filesystem::path& folder) {
  if (name.find('/') != std::string::npos) return name;
  return folder / io::checked_name(name, "checkpoint");
}

// A function cannot be written into a bundle: calls that need it report that it is missing.
at::Tensor unknown_loss(const at::Tensor&, const at::Tensor&) {
  throw StateError("learner.loss", "without a loss",
                   "the bundle was trained with a function: give it as LearnerLoadOptions::loss");
}

// A function that names no activation has the bundle's, so that predictions stay what they were.
Loss loss_of(const BundleManifest& manifest, const std::optional<Loss>& given) {
  Loss loss;
  if (given)
    loss = *given;
  else if (manifest.loss.empty())
    loss = LossFunction(unknown_loss);
  else
    loss = losses::from_text(manifest.loss);
  if (loss.activation.empty() && std::holds_alternative<LossFunction>(loss))
    loss.activation = manifest.activation;
  return loss;
}

std::vector<Metric> metrics_of(const BundleManifest& manifest) {
  const auto known = metric_names();
  std::vector<Metric> metrics;
  for (const auto& m : manifest.metrics) {
    Metric metric = m.metric.empty() ? Metric(m.name) : metrics::from_text(m.metric);
    const auto* name = std::get_if<std::string>(&metric);
    if (name && std::ranges::find(known, *name) != known.end())
      metrics.push_back(std::move(metric));
  }
  return metrics;
}

// Omits the state of parameters that have another shape in the file: it starts from zeros.
std::vector<NamedTensor> fitting(std::vector<NamedTensor> state, const checkpoint::Match& match) {
  for (const checkpoint::Difference& one : match.different)
    std::erase_if(state, [end = "/" + one.name](const NamedTensor& entry) {
      return entry.name.ends_with(end);
    });
  return state;
}

checkpoint::Match check_fits(const checkpoint::Loaded& loaded, const TrainState& state,
                             const Model& model, const LoadOptions& options,
                             const std::string& path) {
  const auto match = compare_stored(model, loaded.model, "learner.load", path);
  if (options.strict && !match.complete()) {
    throw FormatError("learner.load", path, "model",
                      match.str() + "; strict = false takes what fits, of the optimizer too");
  }
  // A fit that was interrupted while its rate was searched has none yet.
  const bool has_rates = options.with_opt && state.plan && !state.plan->search;
  if (has_rates && state.plan->rates.size() != model.layer_groups().size()) {
    throw FormatError("learner.load", path, "state.fit.rates",
                      "is for another number of layer groups");
  }
  return match;
}

}  // namespace

void Learner::save(const std::string& name) {
  LearnerState& p = state("learner.save");
  if (p.loop && p.loop->saves_in_background()) return p.loop->save(name, {});
  const Phase phase(PhaseKind::save);
  const auto path = p.options.folder / io::checked_name(name, "checkpoint");
  try {
    const auto whole = p.together([&] { return p.whole_parameters(); });
    const checkpoint::Contents contents = p.together([&] { return p.contents(); });
    if (p.is_first_rank()) checkpoint::save(path, contents);
  } catch (const OutOfMemory& error) {
    throw error.with_advice("the checkpoint '" + printable(name) +
                            "' was not written, because its copies, such as the states of random "
                            "generators, do not fit beside the training: raise the budget");
  }
  ++p.saves;
}

void Learner::try_save(const std::string& name, const SaveDone& done) {
  LearnerState& p = state("learner.save");
  if (!p.loop || !p.loop->saves_in_background()) return LearnerView::try_save(name, done);
  p.loop->finish_saves();  // an error of the save before is not one of this one
  std::exception_ptr error;
  try {
    return p.loop->save(name, done);
  } catch (...) {  // it is handed on
    error = std::current_exception();
  }
  done(error);
}

void Learner::finish_saves() {
  LearnerState& p = state("learner.finish_saves");
  if (p.loop) p.loop->finish_saves();
}

LoadReport Learner::load(const std::string& name, const LoadOptions& options) {
  LearnerState& p = idle("learner.load");
  const Phase phase(PhaseKind::load);
  const auto path = place_of(name, p.options.folder);
  if (p.options.group) p.options.group->meet();  // rank 0 may still write it
  const auto loaded = checkpoint::load(path, {.with_optimizer = options.with_opt});
  const TrainState state = train_state_from(loaded.state, loaded.extra, path);
  const checkpoint::Match match = check_fits(loaded, state, p.model, options, path.string());
  LearnerState::Gradients gradients;
  if (options.with_opt) {
    check_rng_state(p.devices(), p.own_rng(loaded.extra), "learner.load", path);
    gradients = p.loaded_gradients(fitting(loaded.extra, match), path.string());
  }

  // From here on only a callback or the optimizer can refuse, before anything has changed.
  LoadReport report;
  if (options.with_opt) {
    const auto before = states_of(p.options.callbacks);
    try {
      restore(state.callbacks, p.options.callbacks);
      if (loaded.has_optimizer) {
        report.optimizer_fresh = p.ensure_optimizer().load_state(fitting(loaded.optimizer, match));
        report.optimizer_loaded = true;
      }
    } catch (...) {
      restore(before, p.options.callbacks);
      throw;
    }
  }
  if (options.purge) report.purged = purge({.clear_opt = !options.with_opt});
  if (!report.optimizer_loaded && p.optimizer) p.optimizer->clear();
  const auto copied = load_stored(p.model, loaded.model, options.strict, "learner.load", path);
  report.fresh = copied.fresh;
  report.ignored = copied.ignored;
  for (const auto& parameter : p.model.parameters()) parameter.tensor.mutable_grad().reset();
  LearnerState::add_gradients(gradients);
  p.pending.reset();
  p.note_loaded(report.fresh.empty() ? state.data : "");  // a new head has seen no data
  if (!options.with_opt) return report;

  set_rng_state(p.devices(), p.own_rng(loaded.extra));
  p.set_progress(std::move(state));
  report.resumable = p.pending.has_value();
  return report;
}

std::optional<CheckpointInfo> newest_checkpoint(const std::filesystem::path& folder,
                                                const std::vector<std::string>& names) {
  std::optional<CheckpointInfo> newest;
  std::exception_ptr damaged;
  for (const auto& name : names) {
    const auto path = folder / io::checked_name(name, "checkpoint");
    if (!checkpoint::exists(path)) continue;
    try {
      const auto loaded = checkpoint::load(path);
      TrainState state = train_state_from(loaded.state, loaded.extra, path);
      if (newest && newest->saves >= state.saves) continue;
      newest = {name, state.saves, state.plan.has_value(), std::move(state.callbacks)};
    } catch (const FormatError& error) {
      log::warning(error.what() + std::string("; looking for the one before"));
      damaged = std::current_exception();
    }
  }
  if (!newest && damaged) std::rethrow_exception(damaged);
  return newest;
}

void Learner::restore_weights(const std::string& name) {
  LearnerState& p = *state_;
  if (p.loop) p.loop->finish_saves();
  if (p.options.group) p.options.group->meet();
  const auto path = p.options.folder / io::checked_name(name, "checkpoint");
  const auto loaded = checkpoint::load(path, {.with_optimizer = false});
  TrainState state = train_state_from(loaded.state, loaded.extra, path);
  const auto whole = p.together([&] { return p.whole_parameters(); });
  load_stored(p.model, loaded.model, /*strict=*/true, "learner.restore_weights", path);
  p.restored_validation = validation_of_weights(state);
  if (p.restored_validation) {
    p.restored_epoch = p.restored_validation->epoch;
  } else if (const EpochRow* row = row_of_weights(state.history, state.restored_epoch)) {
    p.restored_epoch = row->epoch;
  }
  p.lent_figures = state.lent_figures;
  if (p.loop) p.loop->restored(state.callbacks);
}

namespace {

/// Returns how a file for other programs is written; as_is: the first storage of its format.
interchange::FileOptions file_options(const ExportOptions& options, Model& model) {
  return {.weights = options.weights == "as_is" ? "" : options.weights,
          .module = &model,
          .fold_norms = options.fold_norms,
          .opset = options.opset};
}

/// Has the blocks of a model take inputs of any device until the end of the scope: a graph is
/// traced where it is, and not on the devices of the stages.
class BlocksAnywhere {
 public:
  explicit BlocksAnywhere(const Model& model) {
    for (const auto& module : model.module()->modules()) {
      auto* const block = dynamic_cast<Block*>(module.get());
      if (!block || !block->device()) continue;
      own_.push_back({module, block, *block->device()});
      block->set_device(std::nullopt);
    }
  }
  ~BlocksAnywhere() {
    for (const Own& one : own_) one.block->set_device(one.device);
  }
  BlocksAnywhere(const BlocksAnywhere&) = delete;
  BlocksAnywhere& operator=(const BlocksAnywhere&) = delete;

 private:
  struct Own {
    std::shared_ptr<torch::nn::Module> module{};  // which has the block
    Block* block = nullptr;
    c10::Device device = c10::kCPU;
  };
  std::vector<Own> own_;
};

bool rounds(const ExportOptions& options) {
  return options.format == "tare" && rounds_weights(options.weights);
}

void check_options(const ExportOptions& options, const LearnerState& p, const char* call) {
  if (options.fold_norms && options.format == "tare")
    throw ConfigError(call, "fold_norms", "is for files with a graph, and a bundle has none",
                      "format = onnx or pt2, or fold_norms = false", "true");
  if (options.opset != ExportOptions{}.opset && options.format != "onnx")
    throw ConfigError(call, "opset", "is for files of ONNX", "format = onnx, or no opset",
                      std::to_string(options.opset));
  if (!options.tolerance) return;
  check_tolerance(options.tolerance, call);
  const std::string got = config::number_text(*options.tolerance);
  if (!rounds(options))
    throw ConfigError(call, "tolerance", "is for bundles of rounded weights, and these are not",
                      "weights = bf16, fp16, fp8 or int8, or no tolerance", got);
  if (!p.data.valid || !p.model.spec())
    throw ConfigError(call, "tolerance",
                      p.data.valid ? "needs a model of the registry, which is made anew"
                                   : "needs a validation split",
                      "omit it", got);
}

/// Returns how the rounded weights of a Learner are measured.
RoundedWeights measured(Learner& trained, const LearnerState& p, const ExportOptions& options) {
  RoundedWeights rounded{.storage = options.weights,
                         .tolerance = options.tolerance,
                         .learner = {.loss = p.options.loss,
                                     .metrics = p.options.metrics,
                                     .device = p.stages.empty() ? p.device.str() : "auto",
                                     .batch = p.options.batch,
                                     .precision = p.options.precision,
                                     .task = p.options.task,
                                     .stages = p.options.stages},
                         .valid = p.data.valid};
  rounded.trained = [&trained] { return trained.validate(); };
  return rounded;
}

}  // namespace

void Learner::check_export(const ExportOptions& options) const {
  LearnerState& p = state("learner.check_export");
  check_options(options, p, "learner.check_export");
  if (auto now = bundle_data(p.data)) {
    add_inputs(*now, p.data);
    check_describable(*now, "learner.check_export");
  }
  const BlocksAnywhere anywhere(p.model);
  if (options.format != "tare")
    interchange::check_file(options.format, p.manifest(options.labels, "learner.check_export"),
                            file_options(options, p.model));
}

void Learner::export_to(const std::filesystem::path& path, const ExportOptions& options) {
  LearnerState& p = idle("learner.export_to");
  check_options(options, p, "learner.export_to");
  if (p.is_first_rank()) {
    const Phase phase(PhaseKind::save);
    BundleManifest manifest = p.manifest(options.labels, "learner.export_to");
    if (!options.targets.empty() && manifest.labels.empty() && !manifest.rows)
      manifest.targets = options.targets;
    if (options.format == "tare") {
      const std::vector<NamedTensor> tensors = state_for(p.model, options.weights);
      manifest.weights = rounds(options) ? options.weights : "as_is";
      if (rounds(options) && p.data.valid && p.model.spec())
        measure_rounded(measured(*this, p, options), tensors, manifest);
      write_bundle(path, manifest, tensors);
    } else {
      const BlocksAnywhere anywhere(p.model);
      interchange::export_file(path, options.format, manifest, state_for(p.model, "fp32"),
                               file_options(options, p.model));
    }
  }
  if (options.destroy) destroy();
}

Predictor Learner::predictor(const std::vector<std::string>& labels) const {
  LearnerState& p = state("learner.predictor");
  return {p.manifest(labels, "learner.predictor"), std::shared_ptr<Model>(state_, &p.model),
          p.device, p.options.task.predict};
}

std::unique_ptr<Learner> Learner::from_bundle(const Bundle& bundle, Model model,
                                              const LearnerLoadOptions& options) {
  const BundleManifest& manifest = bundle.manifest();
  auto learner = std::make_unique<Learner>(
      std::move(model),
      Splits{.train = {}, .valid = {}, .test = as_trained(options.test, manifest)},
      LearnerOptions{.loss = loss_of(manifest, options.loss),
                     .metrics = metrics_of(manifest),
                     .device = options.device,
                     .batch = options.batch,
                     .task = options.task});
  learner->state_->origin = manifest;
  return learner;
}

std::unique_ptr<Learner> load_learner(const std::filesystem::path& path,
                                      const LearnerLoadOptions& options) {
  const Bundle bundle = open_bundle(path);
  return Learner::from_bundle(bundle, make_model(bundle), options);
}

std::unique_ptr<Learner> load_learner(const std::filesystem::path& path, Model module,
                                      const LearnerLoadOptions& options) {
  const Bundle bundle = open_bundle(path);
  load_weights(module, bundle);
  return Learner::from_bundle(bundle, std::move(module), options);
}

}  // namespace tare

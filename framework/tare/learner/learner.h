// The Learner: owns model, optimizer, data and callbacks, and has one call for each step in the
// life of a training run: fit, freeze, validate, save, purge, export, destroy.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/terminal.h"
#include "tare/memory/accountable.h"
#include "tare/parallel/stages.h"
#include "tare/plan/plan.h"
#include "tare/train/compute_error.h"
#include "tare/train/options.h"

namespace tare {

class Bundle;
class Predictor;
struct LearnerState;
struct Unfinished;

/// Owns a model and everything its training needs, and frees each part at a known line of code.
///
/// States: *ready*, *running* (inside fit, validate or get_preds), *destroyed*. fit, purge, load
/// and destroy from inside a callback, and any call but destroy() on a destroyed Learner, throw
/// StateError. Having no data or no optimizer is not a state: a call that needs one throws
/// StateError without it.
///
/// A batch that does not fit into memory is worked on in parts, see LearnerOptions::micro_batch.
///
/// After an exception from any call the Learner is ready again and holds no tensor of the failed
/// step; weights, buffers, optimizer state and random generators are those after the last whole
/// step, and resume() continues from there. (Exception: a torch::optim optimizer that runs out of
/// memory inside its own step may have moved some weights.) Not thread-safe. Neither copied nor
/// moved.
class Learner final : public Accountable, private LearnerView {
 public:
  /// Takes the model (a registry model or any torch::nn holder) and moves it to the device. Throws
  /// ConfigError for an option out of range or an unknown loss, metric or device name, DeviceError
  /// for a device that does not exist; all before any device work.
  Learner(Model model, Splits data, LearnerOptions options = {});
  ~Learner() override;

  // ---- train

  /// Trains for `epochs` > 0 passes over the training split and validates after each if there is a
  /// validation split. The optimizer and its state are made before the first step of the first fit
  /// and kept between fits. Throws ConfigError for `epochs` or options out of range, a batch larger
  /// than the training split, and a class label without an output of the model, before it is
  /// trained on; StateError without a training split, a trainable parameter or a forward;
  /// DeviceError for a batch that is not on the model's device; DivergedError for a loss that is
  /// NaN or infinite (LearnerOptions::stop_on_nan); ComputeError for what LibTorch refuses in
  /// model, loss or optimizer; and whatever data, callbacks and code of yours throw.
  FitResult fit(int64_t epochs, FitOptions options = {});
  /// Trains for a number of steps, samples or minutes, see Duration: `fit({.steps = 500})`. Throws
  /// as above, and ConfigError for a duration that says nothing, or more than one thing.
  FitResult fit(const Duration& duration, FitOptions options = {});
  /// Calls fit() with fastai's one-cycle schedule of learning rate and momentum.
  FitResult fit_one_cycle(int64_t epochs, OneCycleOptions options = {});
  /// Trains as fastai's fine_tune() does: the last layer group alone for `frozen_epochs`, then all
  /// of them for `epochs`, with half of the rate, and a hundredth of that half for the first layer
  /// group. Both fits are one-cycle fits; after an interrupt in the first one the second is not
  /// begun. Throws as freeze() and fit().
  FineTuneResult fine_tune(int64_t epochs, FineTuneOptions options = {});
  /// Continues a fit that an interrupt or an exception ended, or one inside which the loaded
  /// checkpoint was saved. The result equals that of the undisturbed fit, bit for bit on the CPU.
  /// Pass the fit's callbacks again: each gets back the state saved under its name. Throws
  /// StateError if there is nothing to resume.
  FitResult resume(std::vector<CallbackPtr> callbacks = {});
  [[nodiscard]] bool can_resume() const;  ///< whether resume() has a fit to continue
  /// Searches for a learning rate: takes short steps of training with a rate that rises from
  /// `options.start` to `options.end`, without callbacks and validation. All layer groups have the
  /// same rate; several optimizers keep their ratio. Afterwards, also after an exception or an
  /// interrupt, weights, buffers, optimizer, random generators, order of the samples, history and
  /// an unfinished fit are as they were, and nothing is on disk. During the search the host holds a
  /// copy of everything that a fit changes. Throws ConfigError for options out of range, and what
  /// fit() throws.
  [[nodiscard]] LrFindResult lr_find(const LrFindOptions& options = {});

  // ---- freeze

  /// Freezes all layer groups but the last: freeze_to(-1). Throws StateError for a model with a
  /// single group.
  FreezeReport freeze(const FreezeOptions& options = {});
  /// Makes the layer groups from `first` on trainable and freezes those before; a negative number
  /// counts from the end. Gradients of frozen parameters become undefined; optimizer state is kept,
  /// by name, for parameters that stay trainable and freed for the others. Throws ConfigError for a
  /// group that does not exist.
  FreezeReport freeze_to(int64_t first, const FreezeOptions& options = {});
  FreezeReport unfreeze();  ///< makes all layer groups trainable: freeze_to(0)

  // ---- evaluate

  /// Returns the loss and metrics over a split, each sample counted once. Changes neither mode,
  /// random generators, gradients nor optimizer. `first_micro_batch`: see PredictOptions. Throws
  /// StateError if the split is missing; ConfigError for a micro-batch that is larger than a batch.
  Evaluation validate(Split split = Split::valid, int64_t first_micro_batch = 0);
  /// Returns the outputs for a split in the order of its samples, collected on the host batch by
  /// batch. Without side effects, as validate().
  Predictions get_preds(Split split = Split::valid, const PredictOptions& options = {});
  /// Computes the results of validate() and get_preds() in one pass over the split. Throws as they
  /// do.
  [[nodiscard]] EvaluatedPredictions evaluate(Split split = Split::valid,
                                              const PredictOptions& options = {});
  /// Returns a Predictor (include tare/inference/predictor.h) with the weights of the model, of
  /// which none is copied: it predicts with them as they are at the time, also inside a callback.
  /// Transforms, labels and sample shape are those of export_to(); `labels` as
  /// ExportOptions::labels. A Task's `predict` is its forward. After destroy() its predictions
  /// throw StateError. Throws as export_to().
  [[nodiscard]] Predictor predictor(const std::vector<std::string>& labels = {}) const;
  /// Predicts what memory fit() will need with these options for any number of epochs, and whether
  /// it fits: traced on meta tensors, so no data is trained on and nothing of the Learner changes.
  /// A model that is not from the registry cannot be predicted, see MemoryPlan::method. Throws
  /// ConfigError for a device name or batch that is not allowed, StateError without a training
  /// split or trainable parameter.
  [[nodiscard]] MemoryPlan plan(const PlanOptions& options = {});
  /// Returns a table of the modules within `width` columns: the shapes of their tensors and of what
  /// they make of one sample, parameters, how many are trainable, bytes. With data it computes one
  /// sample of the training split, on the meta device for a model from the registry, which takes no
  /// memory; nothing of the Learner changes. A Task's `predict`, or else its `step`, is called.
  [[nodiscard]] std::string summary(size_t width = kAnyWidth) const;

  // ---- save

  /// Writes the checkpoint directory `folder/name`: weights, optimizer, progress, random
  /// generators, callback states. At every moment either the old or the new checkpoint is complete.
  /// Waits for the device, and for the disk unless a callback calls it in a fit with
  /// LearnerOptions::save_in_background. Throws IoError; ConfigError for a name that is no single
  /// path component.
  void save(const std::string& name) override;
  /// Loads what save() wrote, by name, or a checkpoint directory by path. Everything is verified
  /// first: on any error the Learner is unchanged. Throws IoError, FormatError.
  LoadReport load(const std::string& name, const LoadOptions& options = {});
  /// Writes a bundle for inference: weights, how to rebuild the model, transforms, labels, metrics;
  /// no optimizer state. Transforms, labels and sample shape are those of the data that the model
  /// was last trained on; without a fit those of its bundle, or of the data that there is. With
  /// ExportOptions::format a file for another program, see interchange::export_file(). Throws
  /// IoError, after which the old file is still there; StateError as check_export(); for another
  /// format what export_file() throws. (`export` is a reserved word of C++.)
  void export_to(const std::filesystem::path& path, const ExportOptions& options = {});
  /// Throws, before a fit on the present data, what export_to() would throw after it for them:
  /// StateError for data that a bundle cannot describe, see map(); ConfigError for names of classes
  /// or inputs that no bundle can hold, and for a model that ExportOptions::format cannot hold.
  /// Reads one sample.
  void check_export(const ExportOptions& options = {}) const;

  // ---- free

  /// Frees gradients, batch, outputs, tensors kept by callbacks, loader buffers, the samples that
  /// its data sets keep to be faster (unless `clear_cache` is false), LibTorch's caches and, unless
  /// `clear_opt` is false, the optimizer's state, in reverse order of creation. Weights stay and
  /// training can continue. Uses no disk. Waits for the device.
  PurgeReport purge(const PurgeOptions& options = {});
  /// Purges with PurgeOptions::clear_opt set to true or false. A template, so that purge({...})
  /// takes options and purge(0) does not compile.
  template <std::same_as<bool> B>
  PurgeReport purge(B clear_opt) {
    return purge(PurgeOptions{.clear_opt = clear_opt});
  }
  /// Frees everything the Learner owns. What the caller still holds (a shared module, a data set)
  /// stays alive; the report lists it as `held`. A second call does nothing.
  PurgeReport destroy();

  // ---- parts

  [[nodiscard]] Model& model() override;  ///< returns the model under training
  /// Returns the optimizer, which is made at first use. `optimizer().clear()` frees only its state.
  [[nodiscard]] Optimizer& optimizer() override;
  /// Returns one of LearnerOptions::optimizers by its name. Throws ConfigError for an unknown name.
  [[nodiscard]] Optimizer& optimizer(const std::string& name);
  /// Returns the device on which the model computes; of a model in several stages that of the first
  /// stage, which takes the inputs.
  [[nodiscard]] c10::Device device() const override;
  /// Returns the stages of the model, see LearnerOptions::stages; empty: there are none.
  [[nodiscard]] const parallel::Stages& stages() const;
  [[nodiscard]] const std::filesystem::path& folder() const override;
  [[nodiscard]] DatasetPtr training_data() const override { return data().train; }
  /// Returns the splits as they were given, also null ones.
  [[nodiscard]] const Splits& data() const;
  /// Changes what `setup` names for the calls that follow: data (larger images, the next fold),
  /// batch, and what saves memory. With other data or another batch, a fit that was interrupted can
  /// no longer be resumed. Checks everything first: after an exception nothing has changed. Throws
  /// ConfigError for a batch below 1; a micro-batch outside of [1, batch], or below the batch with
  /// step_in_backward; a name without a block; `recompute` {"auto"} and a model that is not from
  /// the registry.
  void set_up(FitSetup setup);
  /// Replaces data and batch, as set_up().
  void set_data(Splits data, int64_t batch);
  /// Returns the rows of all epochs of all fits.
  [[nodiscard]] const std::vector<EpochRow>& history() const;
  /// Whether destroy() has been called, or export_to() with ExportOptions::destroy.
  [[nodiscard]] bool destroyed() const;

  // ---- Accountable
  [[nodiscard]] std::string account_name() const override { return "learner"; }  ///< "learner"
  /// Returns the storages that the Learner owns now, by category and name.
  [[nodiscard]] Ledger ledger() const override;
  PurgeReport purge_account(const PurgeOptions& options) override { return purge(options); }

 private:
  friend std::unique_ptr<Learner> load_learner(const std::filesystem::path&,
                                               const LearnerLoadOptions&);
  friend std::unique_ptr<Learner> load_learner(const std::filesystem::path&, Model,
                                               const LearnerLoadOptions&);
  static std::unique_ptr<Learner> from_bundle(const Bundle& bundle, Model model,
                                              const LearnerLoadOptions& options);
  void restore_weights(const std::string& name) override;
  void try_save(const std::string& name, const SaveDone& done) override;
  void finish_saves() override;
  [[nodiscard]] bool is_first_rank() const override;
  [[nodiscard]] bool first_rank_says(bool own) override;

  void apply(FitSetup setup, const char* call);
  [[nodiscard]] LearnerState& state(const char* call) const;  // throws StateError once destroyed
  [[nodiscard]] LearnerState& idle(const char* call) const;  // throws StateError also while running
  /// Holds the sizes at which the search for micro-batches starts; 0: at the whole batch.
  struct FirstMicroBatches {
    int64_t train = 0, valid = 0;
  };
  FitResult fit_for(const FitLength& length, FitOptions options);
  FitResult start_fit(Unfinished work, std::vector<CallbackPtr> callbacks, const char* call,
                      const FirstMicroBatches& first);
  void prepare_fit();
  [[nodiscard]] LrFindResult search(const LrFindOptions& options, const char* call, int64_t first);

  std::shared_ptr<LearnerState> state_;  // its only owner; a Predictor may watch the model in it
};

/// Gives a Learner data for the length of a scope: set_up() on construction, no data at the end.
/// Owned by an Experiment (`stage.emplace<DataScope>("data", learner, splits, 64)`), the data is
/// measured and freed with it.
class DataScope {
 public:
  /// Gives the Learner the data and the batch size; `learner` must outlive this.
  DataScope(Learner& learner, Splits data, int64_t batch);
  /// Gives the Learner data and what else `setup` names; only the data end with the scope.
  DataScope(Learner& learner, FitSetup setup);
  ~DataScope();
  DataScope(const DataScope&) = delete;
  DataScope& operator=(const DataScope&) = delete;

 private:
  Learner& learner_;  // outlives this
};

/// Makes a Learner from a bundle, ready for get_preds and validate on `options.test`, and for
/// further training after set_data(). `module`: for a bundle whose model is not in the registry;
/// its weights are overwritten. Throws IoError; FormatError for a damaged bundle or one that does
/// not fit; ConfigError for a model that the registry does not know.
[[nodiscard]] std::unique_ptr<Learner> load_learner(const std::filesystem::path& bundle,
                                                    const LearnerLoadOptions& options = {});
/// Makes the Learner with a module that the registry does not know; its weights are overwritten.
[[nodiscard]] std::unique_ptr<Learner> load_learner(const std::filesystem::path& bundle,
                                                    Model module,
                                                    const LearnerLoadOptions& options = {});

}  // namespace tare

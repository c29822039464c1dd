// The Learner: model, optimizer, data and callbacks under one owner, and the verbs of a training
// run's whole life.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tare/learner/options.h"
#include "tare/memory/accountable.h"

namespace tare {

class Bundle;
struct Unfinished;

/// Owns a model and everything its training needs, and gives each of it back at a known line of
/// code.
///
/// States: *ready*, *running* (inside fit, validate or get_preds), *destroyed*. fit, purge, load
/// and destroy from inside a callback, and any call but destroy() on a destroyed Learner, throw
/// StateError. A Learner without data or without an optimizer is no state: what needs them says so.
///
/// After an exception from any call the Learner is ready again and holds no tensor of the failed
/// step; weights, buffers, optimizer state and random generators are those after the last whole
/// step, and resume() goes on from there. (A torch::optim optimizer that runs out of memory inside
/// its own step may have moved some weights.) Not thread-safe. The address is its identity: neither
/// copied nor moved.
class Learner final : public Accountable, private Trainee {
 public:
  /// Takes the model (a registry model or any torch::nn holder) and moves it to the device. Throws
  /// ConfigError for options out of range, a loss or metric of no such name, a device that is not
  /// there; all before any device work.
  Learner(Model model, Splits data, LearnerOptions options = {});
  ~Learner() override;

  // ---- train

  /// Trains for `epochs` > 0 passes over the training split, validating after each where there is a
  /// validation split. The optimizer and its state are made at the first fit, before the first
  /// step, and kept between fits. Needs a training split of at least a batch, and at least one
  /// trainable parameter. Throws ConfigError for class labels that the model has no output for,
  /// before the batch that holds them is learned from; DeviceError for a batch that is not where
  /// the model is.
  FitResult fit(int64_t epochs, FitOptions options = {});
  /// fit() along fastai's one-cycle curve of rate and momentum.
  FitResult fit_one_cycle(int64_t epochs, OneCycleOptions options = {});
  /// Goes on with a fit that an interrupt or an exception ended, or from the step at which the
  /// loaded checkpoint was saved inside it; equals the undisturbed run, bit for bit on the CPU.
  /// Callbacks are given again; those of the same name get their state back.
  FitResult resume(std::vector<CallbackPtr> callbacks = {});
  [[nodiscard]] bool can_resume() const;

  // ---- stage

  /// Freezes all layer groups but the last: freeze_to(-1). Needs at least two groups.
  FreezeReport freeze(const FreezeOptions& options = {});
  /// Groups from `first` on learn, those before are frozen; a negative number counts from the end.
  /// Gradients of frozen parameters become undefined; optimizer state is kept by name for what
  /// stays trainable, freed for what does not.
  FreezeReport freeze_to(int64_t first, const FreezeOptions& options = {});
  FreezeReport unfreeze();

  // ---- look

  /// Loss and metrics over a split, sample-weighted; no side effect on mode, RNG, gradients or
  /// optimizer.
  Evaluation validate(Split split = Split::valid);
  /// Outputs for a split in its own order, accumulated on the host batch by batch; no side effect,
  /// as validate().
  Predictions get_preds(Split split = Split::valid, const PredictOptions& options = {});
  /// A table of modules with shapes, parameters, trainable ones and MiB. Touches nothing.
  [[nodiscard]] std::string summary() const;

  // ---- keep

  /// Writes the checkpoint directory `folder/name` (atomically: the old one or the new one is there
  /// at any moment): weights, optimizer, progress, RNG, callback states.
  void save(const std::string& name) override;
  /// Loads what save() wrote, or a checkpoint directory by path. Everything is verified and matched
  /// first: on any error the Learner is unchanged.
  LoadReport load(const std::string& name, const LoadOptions& options = {});
  /// Writes a bundle for inference: weights, how to rebuild the model, transforms, labels, metrics;
  /// no optimizer. Reads nothing but the Learner's own state. `export` is a reserved word.
  void export_to(const std::filesystem::path& path, const ExportOptions& options = {});

  // ---- give back

  /// Frees gradients, batch, outputs, recorder's and callbacks' tensors, loader buffers, caches of
  /// the library and, unless `clear_opt` is false, the optimizer's state, in reverse order of
  /// creation. Weights stay, training can go on. Needs no disk. Waits for the device.
  PurgeReport purge(const PurgeOptions& options = {});
  /// purge(true), purge(false). A template, so that purge({...}) means the options and purge(0)
  /// does not compile.
  template <std::same_as<bool> B>
  PurgeReport purge(B clear_opt) {
    return purge(PurgeOptions{.clear_opt = clear_opt});
  }
  /// Frees everything the Learner owns; what the caller still holds (a shared module, a data set)
  /// stays the caller's and is what tracked_after counts above the figure before construction. A
  /// second call does nothing.
  PurgeReport destroy();

  // ---- parts

  [[nodiscard]] Model& model() override;
  /// Makes it at first use. `optimizer().clear()` frees its state alone.
  [[nodiscard]] Optimizer& optimizer() override;
  [[nodiscard]] c10::Device device() const override;
  [[nodiscard]] const std::filesystem::path& folder() const override;
  [[nodiscard]] const Splits& data() const;
  /// Another data set for the following calls (progressive resizing, the next fold). The old one is
  /// released.
  void set_data(Splits data, int64_t batch);
  /// Rates, losses and rows of the epochs so far.
  [[nodiscard]] const std::vector<EpochRow>& history() const;
  [[nodiscard]] bool destroyed() const;

  // ---- Accountable
  [[nodiscard]] std::string account_name() const override { return "learner"; }
  [[nodiscard]] Ledger ledger() const override;
  PurgeReport purge_account() override { return purge(); }

 private:
  friend std::unique_ptr<Learner> load_learner(const std::filesystem::path&,
                                               const LearnerLoadOptions&);
  friend std::unique_ptr<Learner> load_learner(const std::filesystem::path&, Model,
                                               const LearnerLoadOptions&);
  static std::unique_ptr<Learner> from_bundle(const Bundle& bundle, Model model,
                                              const LearnerLoadOptions& options);
  void restore_weights(const std::string& name) override;

  struct Parts;
  struct Run;
  class RunningScope;

  Parts& parts(const char* call) const;  // throws StateError on a destroyed Learner
  Parts& idle(const char* call) const;   // throws StateError also while running
  FitResult start(Unfinished work, std::vector<CallbackPtr> callbacks, const char* call);
  FitResult run(Run& run);
  void train_epoch(Run& run);
  bool next_batch(Run& run);
  void train_batch(Run& run);
  void forward(Run& run);
  void backward(Run& run);
  void step(Run& run);
  void validate_epoch(Run& run);
  void close_epoch(Run& run);
  void abandon(Run& run);

  std::unique_ptr<Parts> parts_;
};

/// Gives a Learner data for a time: set_data() now, and none at the end. Owned by an Experiment
/// (`stage.emplace<DataScope>("data", learner, splits, 64)`) the data is weighed and given back
/// with the stage.
class DataScope {
 public:
  DataScope(Learner& learner, Splits data, int64_t batch);
  ~DataScope();
  DataScope(const DataScope&) = delete;
  DataScope& operator=(const DataScope&) = delete;

 private:
  Learner& learner_;  // outlives this
  int64_t batch_;
};

/// A Learner around the model of a bundle, ready for get_preds and validate on `options.test`, for
/// predict, or for more training once set_data() gave it some. `module` rebuilds a model that is
/// not in the registry: its weights are filled.
[[nodiscard]] std::unique_ptr<Learner> load_learner(const std::filesystem::path& bundle,
                                                    const LearnerLoadOptions& options = {});
[[nodiscard]] std::unique_ptr<Learner> load_learner(const std::filesystem::path& bundle,
                                                    Model module,
                                                    const LearnerLoadOptions& options = {});

}  // namespace tare

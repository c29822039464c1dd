// Callbacks: the events of a fit, what a callback sees at each, and what it may ask of the loop.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tare/data/dataset.h"
#include "tare/memory/accountable.h"
#include "tare/memory/named_tensor.h"
#include "tare/model/model.h"
#include "tare/optim/lr_find.h"
#include "tare/optim/optimizer.h"
#include "tare/report/run_files.h"

namespace tare {

/// Lists the requests of a callback to the loop, from weak to strong. All callbacks are asked; the
/// strongest answer counts.
enum class Action {
  proceed,
  skip,        ///< skip what comes next; each event of Callback documents what that is
  stop_epoch,  ///< end training in this epoch; validation and after_epoch still run
  stop_fit,    ///< end the fit as soon as this step is whole
};

/// Gets the result of a checkpoint's write: null, or the error for which there is none.
using SaveDone = std::function<void(const std::exception_ptr& error)>;

/// Shows callbacks the part of the Learner that is safe to call while a fit runs.
class LearnerView {
 public:
  virtual ~LearnerView() = default;
  /// Returns the model under training.
  [[nodiscard]] virtual Model& model() = 0;
  /// Returns the optimizer of the fit.
  [[nodiscard]] virtual Optimizer& optimizer() = 0;
  [[nodiscard]] virtual c10::Device device() const = 0;  ///< returns where model and batches are
  /// Returns the folder for the files of this run.
  [[nodiscard]] virtual const std::filesystem::path& folder() const = 0;
  /// Returns the training split of the fit; null: there is none to be seen.
  [[nodiscard]] virtual DatasetPtr training_data() const { return nullptr; }
  /// Writes a checkpoint from which Learner::resume() continues at this step. With
  /// LearnerOptions::save_in_background it returns once the state is copied, after it has waited
  /// for the write before; an error of the write ends the fit before its next step, or at its end.
  virtual void save(const std::string& name) = 0;
  /// Saves likewise, and gives the result to `done` in place of throwing it: on this thread, at
  /// once or, where a thread writes, before the next step, the next save or the end of the fit.
  virtual void try_save(const std::string& name, const SaveDone& done);
  /// Waits until no checkpoint is being written, and hands its result on as try_save() does.
  virtual void finish_saves() {}
  /// Copies the weights of a checkpoint back into the model; optimizer and progress stay as they
  /// are.
  virtual void restore_weights(const std::string& name) = 0;
  /// Whether this process writes the files of the job: it is alone, or the first of several ranks.
  [[nodiscard]] virtual bool is_first_rank() const { return true; }
  /// Returns `own` of the first rank, for what ranks decide together, such as by a clock. All ranks
  /// call it in the same event, and wait for it.
  [[nodiscard]] virtual bool first_rank_says(bool own) { return own; }
};

/// Describes a new size of the micro-batches of a fit.
struct MicroBatchChange {
  std::string phase{};       ///< "train" or "validate"
  int64_t from = 0, to = 0;  ///< samples
  std::string reason{};      ///< of the refusal; empty: memory for more is free again
};

/// Bounds the epochs of a fit, so that its steps can be counted. A fit that the clock alone ends
/// has as many.
inline constexpr int64_t kMostEpochs = 1'000'000'000;

/// Holds a text of an epoch, such as a sample of a language model.
struct EpochText {
  std::string name{};  ///< of the callback that made it
  std::string text{};  ///< in UTF-8
};

/// Describes the state of a fit to a callback. Validation has no events for single batches. Tensors
/// belong to the current training step, are on the Learner's device, and are undefined outside the
/// step; a callback that keeps one keeps its memory (free it in purge(), list it in account()).
///
/// In after_forward and after_loss `data`, `outputs` and `loss` are of one micro-batch. The usual
/// case is one that is the batch. If there are more, `loss` is the mean over the batch and
/// `outputs` empty from after_backward on.
struct FitContext {
  /// The Learner that runs the fit.
  LearnerView& learner;
  int64_t epoch = 0, epochs = 0;   ///< of this fit: 0 <= epoch < epochs
  int64_t step = 0, steps = 0;     ///< of this fit: optimizer steps taken so far, steps in all
  int64_t batch = 0, batches = 0;  ///< of this epoch: 0 <= batch < batches
  Batch data{};                    ///< the current batch, on the device
  int64_t micro_batch = 0, micro_batches = 1;  ///< of the batch: 0 <= micro_batch < micro_batches
  int64_t turn = 0, turns = 1;  ///< of several optimizers on the batch: 0 <= turn < turns
  Outputs outputs{};            ///< of the model, from after_forward on
  at::Tensor loss{};            ///< scalar, from after_loss on; with its graph until backward
  std::optional<MicroBatchChange> micro_batch_change{};  ///< in on_micro_batch
  double lr = 0, momentum = 0;                           ///< of the last parameter group
  /// Multiplies the rates of all following steps, after the schedule; a callback may change it, and
  /// a resumed fit continues with it.
  double rate_factor = 1;
  EpochRow row{};  ///< of this epoch, complete in after_epoch
  /// The figures of the validation in `row` are of one inside the epoch, see
  /// LearnerOptions::valid_every: true in the before_validate and after_validate of such a one, and
  /// in after_epoch where nothing was trained since, so that after_validate has shown them.
  bool inside_epoch = false;
  /// Seconds that validations inside the epoch have taken so far; `row.seconds` counts them too.
  double inside_seconds = 0;
  std::vector<EpochText> texts{};  ///< that callbacks have made in after_epoch, for those that log
  std::exception_ptr error{};      ///< in on_exception and the after_fit that follows it
  bool interrupted = false;  ///< in after_fit: an interrupt ended the fit, resume() continues it
  bool bfloat16_on_host = false;  ///< the host computes products in bfloat16
  /// Points to the result of the search for the rate of this fit; nullptr: the rate was given.
  const LrFindResult* lr_find = nullptr;
  /// Is the name of the first callback that has answered stop_fit; empty: none has.
  std::string stopped_by{};

  /// Returns the first output, which is the only one of most models; undefined: there is none.
  [[nodiscard]] const at::Tensor& output() const { return outputs.front(); }
  /// Whether the fit ends with epochs or batches left to train; asked in after_fit.
  [[nodiscard]] bool ends_early() const {
    return epoch + 1 < epochs || (step < steps && batch + 1 < batches);
  }
  /// Returns the loss as a number; in after_batch still that of this step. Waits for the device.
  [[nodiscard]] double loss_value() const;
  /// Returns what to do where the loss is not finite, as DivergedError takes it.
  [[nodiscard]] std::string_view advice_on_divergence() const;
};

/// Declares what a callback reads, adds and writes, so that a recipe is checked before any work.
struct CallbackFacts {
  std::vector<std::string> watched{};  ///< columns of the epochs table that it reads
  std::vector<std::string> columns{};  ///< columns that it adds to the epochs table
  /// Names in the run's folder: of files and checkpoints that it writes or waits for.
  std::vector<std::string> files{};
  /// Beginnings of the names of checkpoints that it writes, which end in EpochRow::epoch: "epoch-"
  /// for "epoch-1", "epoch-2" ...
  std::vector<std::string> prefixes{};
  /// It shows what others add to the row of an epoch, so it is called behind all that may do so.
  bool logs = false;
  bool saves_epochs = false;     ///< it may save a checkpoint after an epoch, which a plan counts
  bool saves_steps = false;      ///< it may save one after any step, which a plan counts
  bool needs_gradients = false;  ///< of a whole step, which step_in_backward never has
  bool lends_weights = false;  ///< it overrides lend_weights(); a fit has one such callback at most
  bool keeps_lent = false;     ///< a whole fit ends with the weights that it lent, in the model
  bool only_writes = false;    ///< it writes files or prints, which one of several ranks does
  int64_t bytes_on_card = 0;   ///< of a tensor that it keeps on a card in a fit; a plan counts them
};

class Callback;
/// Holds a callback for a Learner; the caller may keep it and read it after the fit.
using CallbackPtr = std::shared_ptr<Callback>;

/// Is the base of all callbacks: every event does nothing and proceeds. Callbacks run in the order
/// of their list, those of the Learner before those of the call, see also move_logs_back(). An
/// exception from a callback ends the fit like any other. Called on the thread that called fit().
///
/// A task with turns of several optimizers has after_forward, after_loss, after_backward and
/// after_step in each turn, see FitContext::turn; `step` rises in the last one.
///
/// When memory is out, the batch is done again in smaller micro-batches: then after_forward,
/// after_loss and after_backward are called again for the same batch, all other events once. An
/// out-of-memory that one of these three throws counts as the step's own; from any other event it
/// ends the fit.
class Callback {
 public:
  Callback() = default;
  virtual ~Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  /// Returns the callback's name in checkpoints and messages.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Called when the fit begins, before its first epoch.
  virtual Action before_fit(FitContext&) { return Action::proceed; }
  /// Called when an epoch begins, before its first batch.
  virtual Action before_epoch(FitContext&) { return Action::proceed; }
  /// Called before the forward of a batch; may replace the batch. Answer skip to skip the batch.
  virtual Action before_batch(FitContext&) { return Action::proceed; }
  /// Called after the forward; may replace the output.
  virtual Action after_forward(FitContext&) { return Action::proceed; }
  /// Called when the loss is computed; may replace the loss. Answer skip or stronger for no
  /// backward and no step of this batch.
  virtual Action after_loss(FitContext&) { return Action::proceed; }
  /// Called after the backward. Answer skip or stronger for no step of this batch; its gradients
  /// stay and the next batch adds to them.
  virtual Action after_backward(FitContext&) { return Action::proceed; }
  /// Called after the optimizer's step, when the gradients are still allocated. Answer skip or
  /// stronger to keep them; the next batch adds to them.
  virtual Action after_step(FitContext&) { return Action::proceed; }
  /// Called when micro-batches have another size from now on, see FitContext::micro_batch_change.
  /// Also called in a validate() or get_preds() outside a fit, where the context has no other
  /// information.
  virtual Action on_micro_batch(FitContext&) { return Action::proceed; }
  /// Called when the batch is finished, with or without a step: the place to save.
  virtual Action after_batch(FitContext&) { return Action::proceed; }
  /// Called before each validation: at the end of an epoch, and inside it, see
  /// FitContext::inside_epoch. Answer skip or stronger to skip it.
  virtual Action before_validate(FitContext&) { return Action::proceed; }
  /// Called when a validation is finished; its figures are in `row`.
  virtual Action after_validate(FitContext&) { return Action::proceed; }
  /// Called when an epoch is finished, validation included; `row` is complete.
  virtual Action after_epoch(FitContext&) { return Action::proceed; }
  /// Called at the end of a fit, and after an exception behind on_exception.
  virtual Action after_fit(FitContext&) { return Action::proceed; }
  /// Called with the error before fit() rethrows it; its answer is ignored.
  virtual Action on_exception(FitContext&) { return Action::proceed; }

  /// Returns what the callback needs and adds; called before the fit.
  [[nodiscard]] virtual CallbackFacts facts() const { return {}; }
  /// Throws ConfigError for data that the callback cannot work on. `sample`: one sample, whose
  /// tensors may be on the meta device. Called when a recipe is checked, before any work.
  virtual void check_data(const Batch& sample) const { (void)sample; }
  /// Puts weights into the model that an epoch is validated with, in place of those that are
  /// trained; the storages of the model's parameters may be exchanged. Returns whether the model
  /// has other weights now. After an exception nothing is changed.
  virtual bool lend_weights(Model&) { return false; }
  /// Puts back the weights that the model had before lend_weights(), also where the validation
  /// throws. Allocates nothing on the device.
  virtual void return_weights(Model&) noexcept {}
  /// Called when LearnerView::restore_weights() has given the model the weights of a checkpoint,
  /// with what tensors() had returned for that checkpoint.
  virtual void after_restore(Model&, const std::vector<NamedTensor>&) {}
  /// Returns a new callback that allocates, in a fit that is planned, what this one allocates in a
  /// fit: it works on tensors without values, and neither saves nor writes files. nullptr: this one
  /// allocates nothing that a plan has to show.
  [[nodiscard]] virtual CallbackPtr planned() const { return nullptr; }
  /// Frees every tensor that the callback keeps; called by Learner::purge.
  virtual void purge() {}
  /// Adds the tensors that the callback keeps to a ledger; called when memory is accounted for.
  virtual void account(Ledger&) const {}
  /// Returns what a checkpoint must hold to resume the callback, as JSON text; empty: nothing.
  [[nodiscard]] virtual std::string state() const { return {}; }
  /// Restores what state() returned. Throws FormatError for any other text.
  virtual void load_state(const std::string&) {}
  /// Returns the tensors that a checkpoint holds beside state(), under names of their own; they may
  /// share storage with those that the callback keeps.
  [[nodiscard]] virtual std::vector<NamedTensor> tensors() const { return {}; }
  /// Takes what tensors() returned, after load_state(). The tensors may be on the host, on the
  /// mapped file of the checkpoint, and others may hold them: the callback copies those that it
  /// writes to.
  virtual void load_tensors(const std::vector<NamedTensor>&) {}
};

/// Lists the events in the order of a fit.
enum class Event {
  before_fit,
  before_epoch,
  before_batch,
  after_forward,
  after_loss,
  after_backward,
  after_step,
  on_micro_batch,
  after_batch,
  before_validate,
  after_validate,
  after_epoch,
  after_fit,
  on_exception
};
/// Returns the name of the event's method, e.g. "before_fit", in static memory.
[[nodiscard]] const char* to_string(Event event);

/// Moves callbacks that log, see CallbackFacts::logs, behind the last one that may add to the row
/// of an epoch. A callback that only saves after an epoch adds nothing to the row; where such a
/// callback stands behind one that logs, it moves with the log, so that a checkpoint has the log's
/// row of its epoch. Callbacks that log keep their order, and so do all others.
void move_logs_back(std::vector<CallbackPtr>& callbacks);

/// Points to the method of Callback that an event calls.
using EventMethod = Action (Callback::*)(FitContext&);
/// Calls `event` of every callback in order; returns the strongest answer. Notes who stops the fit.
inline Action notify(const std::vector<CallbackPtr>& callbacks, EventMethod event,
                     FitContext& context) {
  Action strongest = Action::proceed;
  for (const auto& callback : callbacks) {
    const Action answer = (callback.get()->*event)(context);
    if (answer > strongest) strongest = answer;
    if (answer == Action::stop_fit && context.stopped_by.empty())
      context.stopped_by = callback->name();
  }
  return strongest;
}

}  // namespace tare

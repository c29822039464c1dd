// The progress of training as a checkpoint stores it: values, to and from JSON and tensors.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/adapt/size_cache.h"
#include "tare/callback/callback.h"
#include "tare/memory/named_tensor.h"
#include "tare/optim/fit_schedules.h"
#include "tare/optim/grad_scaler.h"
#include "tare/optim/schedule.h"

namespace tare {

/// Determines which samples each step of a fit sees; a resumed fit must have an equal order.
struct SampleOrder {
  int64_t batch = 0;       ///< samples per optimizer step
  int64_t samples = 0;     ///< of the training split
  bool drop_last = false;  ///< a last batch that is not full is skipped
  bool shuffle = false;    ///< another order in every epoch
  uint64_t seed = 0;       ///< of the order
  /// "each", "balanced", or "weights" with the hash of the weights, as SampleWeights are taken.
  std::string sampling = "each";
  bool group_by_length = false;  ///< batches have samples of similar length
  bool operator==(const SampleOrder&) const = default;
  /// Returns the batches of an epoch, for a batch > 0; at least one, because a fit refuses less
  /// data than a batch.
  [[nodiscard]] int64_t batches() const {
    return std::max<int64_t>(1, samples / batch + (!drop_last && samples % batch > 0));
  }
};

/// Throws ConfigError, naming `call` and both values, for the first thing in which the orders
/// differ.
void check_same_order(const SampleOrder& saved, const SampleOrder& now, const std::string& call);

/// Throws ConfigError, naming `call` and both lists, if the names of the fit to resume are not
/// those of the Learner, in the same order. `what`: what the names are of.
void check_same_names(const std::vector<std::string>& saved, const std::vector<std::string>& now,
                      const std::string& what, const std::string& call);

/// Describes a fit and its position: everything that determines how it continues.
struct FitPlan {
  int64_t epochs = 0;                     ///< of the fit, >= 1; the last one may be partial
  int64_t batches = 0;                    ///< of the fit in all; 0: its epochs are whole
  double most_seconds = 0;                ///< the fit ends after so many; 0: no limit
  std::vector<double> rates{};            ///< of each layer group, before the schedule's factor
  std::optional<LrFindOptions> search{};  ///< the rates are still to be found by it
  std::optional<LrFindResult> found{};    ///< what the search for the rates has found
  Schedule schedule{};                    ///< of the rates' factor
  HyperSchedules schedules{};             ///< of momentum, beta2 and weight decay
  int64_t epoch = 0, batch = 0;           ///< the next ones
  int64_t turn = 0;                       ///< the next one of that batch, see Task::turns
  int64_t step = 0;                       ///< batches whose last turn stepped
  double loss_sum = 0;                    ///< over what was counted in the epoch under way
  double loss_counted = 0;             ///< labels, elements or samples, or the sum of their weights
  int64_t loss_samples = 0;            ///< trained on in the epoch under way
  int64_t overflows = 0;               ///< steps skipped so far, see FitResult
  double seconds = 0;                  ///< spent on the epoch under way
  double inside_seconds = 0;           ///< of them, on validations inside the epoch
  double rate_factor = 1;              ///< of callbacks, see FitContext::rate_factor; > 0
  std::optional<SampleOrder> order{};  ///< unset: a checkpoint of an older Tare does not store it
  /// Names of several optimizers, the first of which has `rates`; unset as `order`.
  std::optional<std::vector<std::string>> optimizers{};
  /// The optimizers of the task's turns, which `turn` counts; unset as `order`.
  std::optional<std::vector<std::string>> turns{};
  std::vector<EpochRow> rows{};              ///< whole epochs of this fit
  std::vector<ValidationRow> validations{};  ///< inside its epochs

  [[nodiscard]] bool finished() const { return epoch >= epochs; }  ///< whether no epoch is left
  /// Returns the batches of the fit, of which an epoch has `in_epoch` > 0.
  [[nodiscard]] int64_t all_batches(int64_t in_epoch) const {
    return batches > 0 ? batches : epochs * in_epoch;
  }
};

/// Holds a callback's state in a checkpoint.
struct CallbackState {
  std::string name{};                  ///< Callback::name()
  std::string state{};                 ///< what Callback::state() returned
  std::vector<NamedTensor> tensors{};  ///< what Callback::tensors() returned
  bool mapped = false;                 ///< the tensors are on the mapped file of a checkpoint
};
/// Returns the states of the callbacks that have one, with their tensors.
[[nodiscard]] std::vector<CallbackState> states_of(const std::vector<CallbackPtr>& callbacks);
/// Throws ConfigError, naming `call`, if one is null, if two lend weights to the validation, or if
/// two that have a state have one name, under which a checkpoint holds one state. Those without a
/// state may share a name.
void check_callbacks(const std::vector<CallbackPtr>& callbacks, const std::string& call);
/// Throws ConfigError, naming `call`, for two states of one name.
void check_names(const std::vector<CallbackState>& states, const std::string& call);
/// Restores the state of each of `callbacks` that has one under its name. Throws what they throw.
void restore(const std::vector<CallbackState>& states, const std::vector<CallbackPtr>& callbacks);

/// Describes an unfinished fit, which resume() continues.
struct Unfinished {
  FitPlan plan{};                          ///< what is left of the fit
  std::vector<CallbackState> callbacks{};  ///< of the callbacks that have one
};

/// Holds the Learner's progress in a checkpoint, without its tensors.
struct TrainState {
  int64_t epochs_done = 0;          ///< over the Learner's life; seeds sample order
  int64_t saves = 0;                ///< checkpoints written so far, including this one
  std::vector<EpochRow> history{};  ///< of all whole epochs
  /// EpochRow::epoch of the weights, where a callback restored those of an earlier epoch; 0: the
  /// weights are those after the last one.
  int64_t restored_epoch = 0;
  /// The validation inside that epoch whose weights these are; unset: they are of the epoch's end.
  std::optional<ValidationRow> restored_validation{};
  /// The last validation saw weights that a callback lent, and the model does not have them.
  bool lent_figures = false;
  std::vector<adapt::FoundSize> micro_batches{};  ///< that memory allowed
  std::optional<GradScaler> scaler{};             ///< of fp16
  std::optional<FitPlan> plan{};                  ///< of an unfinished fit
  std::vector<CallbackState> callbacks{};         ///< of that fit; without one, the Learner's
  /// The data that the weights were trained on, as text_of(BundleData) describes them; empty: they
  /// took no step.
  std::string data{};
};

/// Returns the row of `history` that belongs to the weights; nullptr: there is no whole epoch yet.
/// `restored_epoch`: see TrainState.
[[nodiscard]] const EpochRow* row_of_weights(const std::vector<EpochRow>& history,
                                             int64_t restored_epoch);
/// Returns the validation inside an epoch whose weights a checkpoint holds: it was saved right
/// after that validation, or when these weights had been restored. Unset: there is none.
[[nodiscard]] std::optional<ValidationRow> validation_of_weights(const TrainState& state);
/// Returns the figures of a validation inside an epoch in the form of an epoch's row.
[[nodiscard]] EpochRow row_of(const ValidationRow& validation);
/// Returns the figures of the weights themselves; unset: there is no whole epoch and no such
/// validation, an epoch was under way, or its figures are of weights that a callback lent.
[[nodiscard]] std::optional<EpochRow> row_of_figures(const TrainState& state);

/// Describes a checkpoint, as newest_checkpoint() reads it.
struct CheckpointInfo {
  std::string name{};                      ///< of its folder
  int64_t saves = 0;                       ///< the higher, the newer
  bool unfinished = false;                 ///< saved inside a fit, which resume() continues
  std::vector<CallbackState> callbacks{};  ///< of the callbacks that have one
};
/// Returns the newest of the checkpoints `names` in `folder`, after verifying every byte of it;
/// unset: there are none. A damaged one is skipped with a warning. Throws FormatError if all are
/// damaged, IoError.
[[nodiscard]] std::optional<CheckpointInfo> newest_checkpoint(
    const std::filesystem::path& folder, const std::vector<std::string>& names);

/// Holds a TrainState as a checkpoint does. What grows with the epochs is in tensors, each verified
/// by the manifest's digest, because a manifest is limited in size.
struct StoredState {
  std::string json{};                  ///< an object
  std::vector<NamedTensor> tensors{};  ///< on the host, "state/..."
};

/// Returns the state as a checkpoint holds it.
[[nodiscard]] StoredState stored(const TrainState& state);
/// Returns the inverse of stored(); `tensors` may hold others. Also reads states of older versions,
/// whose JSON holds the rows. Throws FormatError(operation, path) naming the field that is missing,
/// of another type or out of range.
[[nodiscard]] TrainState train_state_from(const std::string& json,
                                          const std::vector<NamedTensor>& tensors,
                                          const std::filesystem::path& path);

}  // namespace tare

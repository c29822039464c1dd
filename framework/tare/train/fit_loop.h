// The fit loop of a Learner, from epochs down to a step. Internal.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/optim/step_in_backward.h"
#include "tare/train/background_save.h"
#include "tare/train/feed.h"
#include "tare/train/learner_state.h"
#include "tare/train/loss_meter.h"
#include "tare/train/micro_batches.h"
#include "tare/train/ranks.h"
#include "tare/train/recorded_steps.h"
#include "tare/train/step_snapshot.h"
#include "tare/train/train_state.h"

namespace tare {

/// Holds the arguments with which a fit begins.
struct FitStart {
  Unfinished work{};                       ///< what is to be done, and where it begins
  std::vector<CallbackPtr> callbacks{};    ///< in the order in which they are called
  MicroBatches::Settings micro_batches{};  ///< of the training
  MicroBatches::Settings validation{};     ///< of the validation after each epoch
  int64_t steps = 0;  ///< after which the schedule ends; 0: with the last epoch
  bool saves = true;  ///< callbacks may save; false in a search, whose steps are taken back
  /// The fit is done to plan another one, to which interrupts and the count of steps belong.
  bool is_planned = false;
};

/// Runs one fit, over the state of a Learner. A step that fails changes nothing: buffers, random
/// generators and gradients are put back, and the position is kept for resume(). The same loop
/// trains for a Learner and, on meta tensors or few samples, for a plan.
class FitLoop {
 public:
  /// Allocates what every step works with. `state`: with its optimizer; `learner`: what callbacks
  /// see of it; `call` names the call in messages. All outlive the loop. Throws ConfigError for a
  /// position that the data do not have, what load_state() of a callback throws, OutOfMemory.
  FitLoop(LearnerState& state, LearnerView& learner, FitStart start, const char* call);
  FitLoop(const FitLoop&) = delete;
  FitLoop& operator=(const FitLoop&) = delete;

  /// Trains to the end, to the answer of a callback or to an interrupt; once. Throws what the
  /// model, the data and the callbacks throw, after the state is that before the failed step.
  [[nodiscard]] FitResult run();

  // ---- What a checkpoint saved by a callback, and a ledger, need of the fit under way.

  /// Adds the position and the states of the callbacks.
  void add_to(TrainState& state) const;
  /// Returns what remains of the fit, including the epoch under way; unset: nothing.
  [[nodiscard]] std::optional<Unfinished> unfinished() const;
  [[nodiscard]] bool is_finished() const { return plan_.finished(); }  ///< no epoch is left
  [[nodiscard]] bool has_stepped() const { return plan_.step > 0; }    ///< the weights have changed
  /// Returns the buffers and random generators from before the batch under way, while it does not
  /// count yet.
  [[nodiscard]] const StepSnapshot& snapshot() const { return snapshot_; }
  /// Returns the gradient of earlier batches without a step, to which that of the batch under way
  /// is added; may be undefined.
  [[nodiscard]] at::Tensor earlier_gradient(const at::Tensor& parameter) const;
  /// Whether LearnerOptions::save_in_background is in force.
  [[nodiscard]] bool saves_in_background() const { return saves_.has_value(); }
  /// Saves in the background, see BackgroundSave::start().
  void save(const std::string& name, const SaveDone& done) { saves_->start(name, done); }
  /// Waits for the write under way, see BackgroundSave::finish().
  void finish_saves() {
    if (saves_) saves_->finish();
  }
  /// Returns what keeps parts of the gradients, and of the parameters; null: each rank has all.
  [[nodiscard]] parallel::ShardedExchange* sharded() const {
    return ranks_ ? ranks_->sharded() : nullptr;
  }
  /// Notifies the callbacks that the model got the weights of a checkpoint with these states.
  void restored(const std::vector<CallbackState>& states) const;
  /// Lists the tensors of the step under way.
  void account(Ledger& ledger) const;

 private:
  void run_epochs();
  void train_epoch();
  bool train_next();
  bool next_batch();
  void train_batch();
  void train_turns();
  /// Validates, unless a callback skips it or there is no split; the row gets the figures. Returns
  /// whether it has validated.
  bool validate();
  void validate_epoch();
  [[nodiscard]] bool is_validation_due() const;
  void validate_inside();
  [[nodiscard]] ValidationRow current_validation() const;
  /// Validates inside the epoch where it is time to.
  void validate_if_due();
  void close_epoch();
  void abandon();

  // A step, in fit_step.cpp.
  bool update();
  /// Returns the recorded step for the batch in these parts, which is recorded first where it is
  /// time to; nullptr: the batch is to be done operator by operator.
  [[nodiscard]] RecordedStep* recorded(const Batch& whole, const std::vector<BatchPart>& parts);
  /// Does a recorded step, and calls the callbacks.
  void replay(RecordedStep& step, const Batch& whole, const std::vector<BatchPart>& parts);
  /// Notifies the callbacks of an event of a recorded step, which they cannot change.
  void show_recorded(EventMethod event);
  /// Whether the batch has samples of this rank, and not one that only another rank counts.
  [[nodiscard]] bool has_own_samples() const;
  bool try_update(const Batch& whole, const std::vector<BatchPart>& parts);
  bool try_parts(const std::vector<BatchPart>& parts);
  bool try_pipelined(const std::vector<BatchPart>& parts);
  bool try_backward(double share, std::optional<double> counted);
  void forward(std::optional<double> counted);
  void check_loss() const;
  void check_mean(const char* figure, double loss) const;
  [[noreturn]] void diverged(const char* figure, double loss) const;
  void backward(double share);
  bool finite_gradients();
  void step();
  /// Clips the gradients and steps the optimizer.
  void step_optimizer();
  /// Counts a step that is taken.
  void count_step();
  void end_step();
  void undo_update(const Batch& whole);
  /// Commits the batch: its effect on weights, buffers, mean loss and position stays. Allocates
  /// nothing.
  void count_batch();
  /// Commits a turn of several, as count_batch() commits a batch; the last turn commits the batch.
  void count_turn();
  void release_step();

  /// Notifies all callbacks; false if one answers `least` or stronger. Answers stronger than skip
  /// are kept in `action_`.
  bool allows(EventMethod event, Action least) {
    if (recording_) return true;
    const Action answer = notify(callbacks_, event, context_);
    if (answer > Action::skip && answer > action_) action_ = answer;
    return answer < least;
  }
  void notify_quietly(EventMethod event);
  /// Notifies callbacks of a change of the micro-batch.
  void report(MicroBatchChange change);
  /// Returns the position, with the mean loss of this rank so far: that over all ranks is in
  /// shared_plan(), for which ranks wait for each other.
  [[nodiscard]] FitPlan current_plan() const;
  [[nodiscard]] FitPlan shared_plan() const;
  /// Returns the sums of the losses of the epoch, over all ranks.
  [[nodiscard]] LossTotals totals() const;
  /// Returns what this rank wants of the fit.
  [[nodiscard]] Wish wish() const;
  void take_interrupt(const Wish& all);
  /// Takes over what all ranks want. Waits for them.
  void settle();
  /// Whether the fit ends here; ranks wait for each other's word.
  [[nodiscard]] bool is_over();
  /// Whether another batch of the epoch follows, and no answer, signal or time ends it. Notes a
  /// signal.
  [[nodiscard]] bool goes_on();
  /// Returns where the epoch under way ends, as the last one of the fit may before its last batch.
  [[nodiscard]] int64_t end_of_epoch() const;
  /// Whether all batches of the fit are trained, where its last epoch may be partial.
  [[nodiscard]] bool at_last_batch() const;
  /// Whether the fit has taken all the time that it is given.
  [[nodiscard]] bool out_of_time() const;

  LearnerState& state_;
  const char* call_;
  const bool is_planned_;
  const int64_t steps_;
  FitPlan plan_;
  std::vector<CallbackPtr> callbacks_;
  FitContext context_;
  MicroBatches::Settings validation_;
  std::optional<BackgroundSave> saves_;  // of LearnerOptions::save_in_background
  std::unique_ptr<Feed> feed_;
  LossMeter meter_;
  LossMean loss_mean_;
  StepSnapshot snapshot_;
  std::optional<Ranks> ranks_;  // unset: the process is alone
  std::optional<MicroBatches> micro_batches_;
  GeneratorSnapshot before_update_;  // after before_batch, which is not called again
  /// Gradients that a callback left to add up, by parameter, from the beginning of an update until
  /// its batch is counted.
  LearnerState::Gradients earlier_gradients_;
  bool updating_ = false;                  // the parameters' gradients are those of this batch
  double counted_ = 0;                     // what the mean loss of this batch is over
  bool finite_ = true;                     // the gradients of this step
  std::optional<StepInBackward> stepper_;  // for LearnerOptions::step_in_backward
  std::optional<RecordedSteps> records_;   // for LearnerOptions::graph
  RecordedStep* recording_ = nullptr;      // the one under way, of which callbacks hear nothing
  Optimizer* optimizer_;                   // that steps: the Learner's or, in a turn, one of them
  OptimizerSet* optimizers_;               // of a Learner with several
  FitSchedules schedules_;
  GroupBases bases_;                 // restored at the end
  const Turn* turn_ = nullptr;       // the one under way; nullptr: the task has none
  bool last_turn_ = true;            // the batch counts with the step of this turn
  Action action_ = Action::proceed;  // the strongest answer since train_epoch() reset it
  bool interrupted_ = false;
  /// Holds the figures of the last validation inside the epoch under way.
  struct Inside {
    int64_t batch = 0;  // FitPlan::batch after which it was
    double valid_loss = 0;
    std::vector<MetricValue> metrics{};
  };
  std::optional<Inside> inside_;
  bool validation_counts_ = false;  // the last validation has a mean loss
  bool closing_ = false;            // in after_epoch: the epoch counts, its row may still change
  /// The time at which this process began to train in the epoch under way; unset while it does not
  /// train.
  std::optional<std::chrono::steady_clock::time_point> training_since_;
  std::chrono::steady_clock::time_point began_{};  ///< when run() was called
  double seconds_before_ = 0;  ///< of training and validation before the fit was resumed
};

}  // namespace tare

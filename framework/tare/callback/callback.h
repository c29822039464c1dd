// What may happen around a fit: the closed set of events, the context they see, and what they may
// ask for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tare/data/dataset.h"
#include "tare/memory/accountable.h"
#include "tare/model/model.h"
#include "tare/optim/optimizer.h"

namespace tare {

/// What an event asks of the loop. The strongest answer of all callbacks counts; those behind it
/// are still asked.
enum class Action {
  proceed,
  skip,        ///< leave out what comes next: see each event
  stop_epoch,  ///< end this epoch's training now; validation and after_epoch still run
  stop_fit,    ///< end the fit as soon as this step is whole
};

struct MetricValue {
  std::string name;
  double value = 0;
};

/// One line of the epochs table.
struct EpochRow {
  int64_t epoch = 0;      ///< from 0, counted over the Learner's whole life
  double train_loss = 0;  ///< mean over the epoch's samples, while the weights were moving
  double valid_loss = 0;  ///< NaN where there was no validation
  std::vector<MetricValue> metrics{};
  double seconds = 0;   ///< training and validation
  int64_t samples = 0;  ///< trained on
};

/// The Learner as callbacks see it. What would change what is being iterated over (fit, purge,
/// load, destroy) throws StateError while a fit runs.
class Trainee {
 public:
  virtual ~Trainee() = default;
  [[nodiscard]] virtual Model& model() = 0;
  [[nodiscard]] virtual Optimizer& optimizer() = 0;
  [[nodiscard]] virtual c10::Device device() const = 0;
  /// Folder for files of this run.
  [[nodiscard]] virtual const std::filesystem::path& folder() const = 0;
  /// Writes a checkpoint that a later run resumes from at this very step.
  virtual void save(const std::string& name) = 0;
  /// Copies the weights of a checkpoint back into the model; optimizer and progress stay as they
  /// are.
  virtual void restore_weights(const std::string& name) = 0;
};

/// What a callback sees. Events between before_batch and after_batch are those of training;
/// validation has only its two own. Tensors are those of the current step on the Learner's device;
/// they are undefined outside it, and a callback that keeps one keeps its memory (give it back in
/// purge()).
struct FitContext {
  Trainee& learner;
  int64_t epoch = 0, epochs = 0;   ///< of this fit: 0 <= epoch < epochs
  int64_t step = 0, steps = 0;     ///< of this fit: steps taken so far, steps in all
  int64_t batch = 0, batches = 0;  ///< of this epoch
  Batch data{};                    ///< the current batch, on the device
  at::Tensor output{};             ///< after_forward on: the model's output
  at::Tensor loss{};            ///< after_loss on: scalar; carries its graph until after_backward
  double lr = 0, momentum = 0;  ///< of the last parameter group
  EpochRow row{};               ///< filled while the epoch goes on, whole in after_epoch
  std::exception_ptr error{};   ///< in on_exception, and in the after_fit behind it

  /// The loss as a number; in after_batch still that of this step. Waits for the device.
  [[nodiscard]] double loss_value() const;
};

/// Base of all callbacks: every event does nothing and proceeds. Callbacks run in the order of
/// their list, those of one call after those of the Learner. An exception from a callback ends the
/// fit like any other.
class Callback {
 public:
  Callback() = default;
  virtual ~Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  /// Name in checkpoints and messages.
  [[nodiscard]] virtual std::string name() const = 0;

  virtual Action before_fit(FitContext&) { return Action::proceed; }
  virtual Action before_epoch(FitContext&) { return Action::proceed; }
  virtual Action before_batch(FitContext&) {
    return Action::proceed;
  }  ///< may replace data; skip: the batch
  virtual Action after_forward(FitContext&) { return Action::proceed; }  ///< may replace output
  virtual Action after_loss(FitContext&) {
    return Action::proceed;
  }  ///< may replace loss; skip and stronger: no backward, no step
  virtual Action after_backward(FitContext&) {
    return Action::proceed;
  }  ///< skip: the step (gradients accumulate)
  virtual Action after_step(FitContext&) { return Action::proceed; }  ///< gradients are still there
  virtual Action after_batch(FitContext&) {
    return Action::proceed;
  }  ///< the step is whole: the place to save
  virtual Action before_validate(FitContext&) { return Action::proceed; }  ///< skip: the validation
  virtual Action after_validate(FitContext&) { return Action::proceed; }
  virtual Action after_epoch(FitContext&) { return Action::proceed; }
  virtual Action after_fit(FitContext&) { return Action::proceed; }  ///< also after an exception
  virtual Action on_exception(FitContext&) {
    return Action::proceed;
  }  ///< before unwinding ends; cannot swallow it

  /// Frees every tensor it keeps; called by Learner::purge.
  virtual void purge() {}
  /// Lists the tensors it keeps.
  virtual void account(Ledger&) const {}
  /// What a checkpoint must hold to resume it, as JSON text; empty for nothing.
  [[nodiscard]] virtual std::string state() const { return {}; }
  /// Takes back what state() gave. Throws FormatError when it is not that.
  virtual void load_state(const std::string&) {}
};

using CallbackPtr = std::shared_ptr<Callback>;

/// The events, for documentation and for tests that record an order.
enum class Event {
  before_fit,
  before_epoch,
  before_batch,
  after_forward,
  after_loss,
  after_backward,
  after_step,
  after_batch,
  before_validate,
  after_validate,
  after_epoch,
  after_fit,
  on_exception
};
[[nodiscard]] const char* to_string(Event event);

/// Asks every callback in order; returns the strongest answer.
using EventMethod = Action (Callback::*)(FitContext&);
inline Action notify(const std::vector<CallbackPtr>& callbacks, EventMethod event,
                     FitContext& context) {
  Action strongest = Action::proceed;
  for (const auto& callback : callbacks) {
    const Action answer = (callback.get()->*event)(context);
    if (answer > strongest) strongest = answer;
  }
  return strongest;
}

}  // namespace tare

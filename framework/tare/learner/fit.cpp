// The fit loop of a Learner, from epochs down to a step.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "tare/base/error.h"
#include "tare/learner/interrupt.h"
#include "tare/learner/parts.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"

namespace tare {
namespace {

using Clock = std::chrono::steady_clock;
using memory::Phase;
using memory::PhaseKind;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sets the rates and momenta of this step: a pure function of the plan, with no state to save.
void apply_schedule(const FitPlan& plan, int64_t steps, Optimizer& optimizer, FitContext& context) {
  const double factor = plan.schedule.factor(plan.step, steps);
  const auto momentum = plan.schedule.momentum(plan.step, steps);
  for (auto& group : optimizer.groups()) {
    group.lr = plan.rates[static_cast<size_t>(group.layer_group)] * factor;
    // An optimizer made without momentum stays so.
    if (momentum && group.momentum > 0) group.momentum = *momentum;
    context.lr = group.lr;
    context.momentum = group.momentum;
  }
}

LoaderOptions training_loader(const LearnerOptions& options, bool drop_last) {
  return {.batch = options.batch,
          .shuffle = options.shuffle,
          .drop_last = drop_last,
          .workers = options.workers,
          .seed = options.seed,
          .training = true};
}

}  // namespace

FitResult Learner::fit(int64_t epochs, FitOptions options) {
  Parts& p = idle("learner.fit");
  FitPlan plan;
  plan.epochs = epochs;
  const auto groups = p.model.layer_groups().size();
  plan.rates = options.lr ? options.lr->per_group(static_cast<int64_t>(groups))
                          : std::vector<double>(groups, p.base_rate());
  plan.schedule = options.schedule;
  return start_fit({.plan = std::move(plan)}, std::move(options.callbacks), "learner.fit",
                   {options.first_micro_batch, options.first_validation_micro_batch});
}

FitResult Learner::fit_one_cycle(int64_t epochs, OneCycleOptions options) {
  Parts& p = idle("learner.fit_one_cycle");
  FitPlan plan;
  plan.epochs = epochs;
  plan.rates = options.max_lr.per_group(static_cast<int64_t>(p.model.layer_groups().size()));
  plan.schedule = {.kind = "one_cycle", .one_cycle = options.shape};
  return start_fit({.plan = std::move(plan)}, std::move(options.callbacks), "learner.fit_one_cycle",
                   {});
}

bool Learner::can_resume() const { return parts("learner.can_resume").pending.has_value(); }

FitResult Learner::resume(std::vector<CallbackPtr> callbacks) {
  Parts& p = idle("learner.resume");
  if (!p.pending) {
    throw StateError("learner.resume", "without an unfinished fit",
                     "load a checkpoint that was saved inside a fit");
  }
  return start_fit(*p.pending, std::move(callbacks), "learner.resume", {});
}

void Learner::Parts::check_fit(const FitPlan& plan, const std::string& call) {
  if (plan.epochs <= 0)
    throw ConfigError(call, "epochs must be > 0, got " + std::to_string(plan.epochs));
  plan.schedule.check();
  const int64_t samples = split(Split::train, call.c_str())->size();
  if (plan.order) check_same_order(*plan.order, sample_order(), call);
  if (options.batch > samples) {
    throw ConfigError(call, "batch " + std::to_string(options.batch) +
                                " is larger than the training split of " + std::to_string(samples) +
                                " samples; lower it");
  }
  if (options.micro_batch) check_micro_batch(*options.micro_batch, options.batch, call);
  check_step_in_backward(options, call);
  if (!model.has_forward() && !options.task) {
    throw StateError(call, "without a forward of tensors or of a Batch",
                     "give LearnerOptions::task for such a model");
  }
  check_single_samples(call);
}

FitResult Learner::start_fit(Unfinished work, std::vector<CallbackPtr> callbacks, const char* call,
                             const FirstMicroBatches& first) {
  Parts& p = *parts_;
  p.check_fit(work.plan, call);
  for (const int64_t samples : {first.train, first.valid})
    if (samples != 0) check_micro_batch(samples, p.options.batch, call);
  check_callbacks(callbacks, call);
  const memory::OutOfMemoryWatch watch({.batch = p.options.batch});
  if (p.model.device() != p.device) p.model.to(p.device);  // a compaction may leave it on the host
  p.hold_frozen();  // of what may have been frozen or not since
  p.ensure_optimizer();
  p.check_turns(work.plan, call);
  p.choose_recompute();
  auto micro_batches = p.training_micro_batches(first.train);
  Run run{.plan = std::move(work.plan),
          .callbacks = p.options.callbacks,
          .context = {.learner = *this}};
  run.optimizer = p.optimizer.get();
  run.optimizers = dynamic_cast<OptimizerSet*>(run.optimizer);
  {
    const memory::Phase phase(memory::PhaseKind::step);  // what every step works with
    p.optimizer->prepare();
    run.snapshot.prepare(p.model, p.device);
    run.meter.prepare(p.device);
  }
  run.callbacks.insert(run.callbacks.end(), callbacks.begin(), callbacks.end());
  if (p.progress) run.callbacks.push_back(p.progress);
  run.loader = std::make_unique<Loader>(p.data.train, training_loader(p.options, p.drops_last()));
  restore(work.callbacks, run.callbacks);
  if (p.options.step_in_backward) run.stepper.emplace(*p.optimizer);
  run.micro_batches.emplace(std::move(micro_batches), p.sizes);
  run.validation = p.validation_micro_batches(first.valid);
  run.meter.restore(run.plan.loss_sum, run.plan.loss_samples, run.plan.loss_counted);
  if (run.plan.batch > run.loader->batches())  // an older checkpoint, which names no batch size
    throw ConfigError(call, "the fit to resume is at batch " + std::to_string(run.plan.batch) +
                                " of an epoch, this Learner's epoch has " +
                                std::to_string(run.loader->batches()) +
                                "; set the batch that the fit had");
  run.plan.order = p.sample_order();
  return run_fit(run, call);
}

FitResult Learner::run_fit(Run& run, const char* call) {
  Parts& p = *parts_;
  const RunningScope running(p, call);
  p.run = &run;
  FitContext& c = run.context;
  c.epochs = run.plan.epochs;
  c.batches = run.loader->batches();
  c.steps = c.batches * c.epochs;
  c.epoch = run.plan.epoch;  // a resumed fit begins where it stopped
  c.step = run.plan.step;
  const auto started = Clock::now();
  const int64_t first_step = run.plan.step;
  try {
    run_epochs(run);
  } catch (...) {
    abandon(run);
    if (run.plan.step > first_step) p.note_trained();
    throw;
  }
  if (run.plan.step > first_step) p.note_trained();
  run.release_step();
  p.pending.reset();
  if (run.interrupted) {
    p.keep_position(run);
    clear_interrupt();
  }
  run.result.epochs = run.plan.rows;
  run.result.steps = run.plan.step - first_step;
  run.result.restored_epoch = p.restored_epoch;
  run.result.seconds = seconds_since(started);
  run.result.reason = run.interrupted       ? StopReason::interrupted
                      : run.plan.finished() ? StopReason::finished
                                            : StopReason::callback;
  return run.result;
}

void Learner::run_epochs(Run& run) {
  run.allows(&Callback::before_fit, Action::stop_fit);
  while (!run.plan.finished() && run.action < Action::stop_fit) {
    train_epoch(run);
    if (run.interrupted) break;  // inside the epoch, where resume() continues: it gets no row
    validate_epoch(run);
    close_epoch(run);
  }
  run.context.interrupted = run.interrupted;
  notify(run.callbacks, &Callback::after_fit, run.context);
}

void Learner::train_epoch(Run& run) {
  Parts& p = *parts_;
  FitContext& c = run.context;
  run.training_since = Clock::now();
  if (run.action == Action::stop_epoch) run.action = Action::proceed;
  if (run.plan.batch == 0) run.meter.reset();
  c.row =
      EpochRow{.epoch = p.epochs_done + 1, .seconds = run.plan.batch > 0 ? run.plan.seconds : 0};
  c.epoch = run.plan.epoch;
  p.model.train(true);
  run.allows(&Callback::before_epoch, Action::stop_epoch);
  run.loader->start(p.epochs_done, run.plan.batch);
  while (run.action < Action::stop_epoch && train_next(run)) {
    if (!p.stand_in && interrupt_requested()) {
      run.interrupted = true;
      run.action = Action::stop_fit;
    }
  }
  run.loader->stop();
  c.row.train_loss = run.meter.mean();
  c.row.samples = run.meter.samples();
  c.row.seconds += seconds_since(*std::exchange(run.training_since, std::nullopt));
}

bool Learner::train_next(Run& run) {
  std::optional<memory::Step> step;
  if (!parts_->stand_in) step.emplace();
  if (!next_batch(run)) return false;
  train_batch(run);
  return true;
}

bool Learner::next_batch(Run& run) {
  const Phase phase(PhaseKind::data);
  if (!run.loader->next(run.context.data)) return false;
  parts_->to_device(run.context.data);
  run.context.batch = run.plan.batch;
  run.context.step = run.plan.step;
  return true;
}

void Learner::train_batch(Run& run) {
  if (run.optimizers) return train_turns(run);
  Parts& p = *parts_;
  FitContext& c = run.context;
  apply_schedule(run.plan, c.steps, *p.optimizer, c);
  run.snapshot.take();
  if (run.allows(&Callback::before_batch, Action::skip) && update(run)) end_step(run);
  run.updating = false;
  if (run.snapshot.taken()) run.count_batch();  // without a step
  run.micro_batches->take_changes([&](MicroBatchChange change) { run.tell(std::move(change)); });
  run.allows(&Callback::after_batch, Action::stop_epoch);
  run.release_step();
}

// A batch of several optimizers: each turn is an update of its own, which stays when a later one
// fails; then resume() begins with that one.
void Learner::train_turns(Run& run) {
  FitContext& c = run.context;
  const auto& turns = parts_->options.task.turns;
  run.optimizers->set_rates(run.plan.rates, run.plan.schedule, run.plan.step, c.steps);
  c.lr = run.optimizers->groups().back().lr;
  c.momentum = run.optimizers->groups().back().momentum;
  run.snapshot.take();
  c.turn = run.plan.turn;
  c.turns = std::max<int64_t>(1, std::ssize(turns));
  const bool wanted = run.allows(&Callback::before_batch, Action::skip);
  const Batch whole = c.data;
  for (run.last_turn = false; wanted && !run.last_turn;) {
    c.turn = run.plan.turn;
    run.turn = turns.empty() ? nullptr : &turns[static_cast<size_t>(c.turn)];
    run.last_turn = c.turn + 1 == c.turns;
    if (run.turn) run.optimizer = &run.optimizers->part(run.turn->optimizer);
    const TrainOnly own(*run.optimizers, run.turn ? run.turn->optimizer : "");
    run.release_step();  // of the turn before
    c.data = whole;
    if (!run.snapshot.taken()) run.snapshot.take();
    if (update(run)) end_step(run);
    run.updating = false;
    if (!run.last_turn && run.snapshot.taken()) run.count_turn();  // without a step
  }
  run.last_turn = true;
  if (run.snapshot.taken()) run.count_turn();  // without a step of the last turn
  run.micro_batches->take_changes([&](MicroBatchChange change) { run.tell(std::move(change)); });
  run.allows(&Callback::after_batch, Action::stop_epoch);
  run.release_step();
}

// The batch in parts, and again in smaller ones while memory is out. False: no step is wanted.
bool Learner::update(Run& run) {
  Parts& p = *parts_;
  FitContext& c = run.context;
  Batch whole;  // kept where its parts, or a callback, may take its place
  if (!run.callbacks.empty()) whole = c.data;
  const Action before = run.action;
  run.finite = true;
  run.updating = true;
  run.counted = 0;
  if (!run.stepper) run.earlier_gradients = p.take_gradients();
  if (!run.callbacks.empty()) run.before_update.take(p.device);  // else nothing was drawn yet
  const bool stepped = run.micro_batches->attempt(
      c.data,
      [&](int64_t size) {
        if (size >= c.data.size()) return try_update(run, whole, {});
        if (whole.inputs.empty()) whole = c.data;
        auto parts = p.parts_of(whole, size, p.slicers.train);
        if (parts.size() == 1) return try_update(run, whole, {});
        std::erase_if(parts, [](const BatchPart& part) { return part.share == 0; });
        return try_update(run, whole, parts);
      },
      [&] {
        if (whole.inputs.empty()) whole = c.data;
        undo_update(run, whole);
        run.action = before;
        run.finite = true;
      });
  if (p.scaler && (stepped || !run.finite)) p.scaler->update(run.finite);
  if (!run.finite) ++run.result.overflows;
  return stepped;
}

// Without parts: the batch as it is. `whole`: empty where nothing took its place.
bool Learner::try_update(Run& run, const Batch& whole, const std::vector<BatchPart>& parts) {
  Parts& p = *parts_;
  FitContext& c = run.context;
  const bool wanted =
      (parts.empty() ? try_backward(run, 1, {}) : try_parts(run, parts)) && finite_gradients(run);
  if (!whole.inputs.empty()) c.data = whole;
  if (!wanted) p.optimizer->zero_grad();  // nor of the parts before
  p.add_gradients(run.earlier_gradients);
  if (!wanted) return false;
  if (run.stepper) step(run);  // it is done already: no answer undoes it
  const bool allowed = run.allows(&Callback::after_backward, Action::skip) || run.stepper;
  if (allowed && !run.stepper && run.optimizer->steps_atomically()) step(run);
  return allowed;
}

bool Learner::try_parts(Run& run, const std::vector<BatchPart>& parts) {
  FitContext& c = run.context;
  const memory::OutOfMemoryWatch watch({.batch = parts.front().batch.size()});
  bool wanted = true;
  run.loss_mean = {};
  c.micro_batches = static_cast<int64_t>(parts.size());
  for (c.micro_batch = 0; wanted && c.micro_batch < c.micro_batches; ++c.micro_batch) {
    const auto& [batch, share, counted] = parts[static_cast<size_t>(c.micro_batch)];
    c.data = batch;
    wanted = try_backward(run, share, counted);
    run.loss_mean.add(c, share);
  }
  c.micro_batch = 0;
  c.micro_batches = 1;
  c.loss = run.loss_mean.take();
  return wanted;
}

// False: a callback wants neither backward nor step.
bool Learner::try_backward(Run& run, double share, std::optional<double> counted) {
  forward(run, counted);
  if (!run.allows(&Callback::after_loss, Action::skip)) return false;
  check_loss(run);
  backward(run, share);
  return true;
}

// What the failed attempt changed, while its batch is kept.
void Learner::undo_update(Run& run, const Batch& whole) {
  run.release_step();
  run.counted = 0;
  run.context.data = whole;
  run.snapshot.restore();
  run.snapshot.take();
  if (!run.callbacks.empty()) run.before_update.restore();
  parts_->optimizer->zero_grad();
}

// `counted`: see BatchPart.
void Learner::forward(Run& run, std::optional<double> counted) {
  Parts& p = *parts_;
  FitContext& c = run.context;
  const Phase phase(PhaseKind::forward);
  p.check_devices(c.data);
  if (p.options.task) {
    StepResult result = p.explained(ComputeError::Stage::forward, &c.data,
                                    [&] { return p.compute_task(c.data, run.turn); });
    c.outputs = std::move(result.outputs);
    c.loss = std::move(result.loss);
    run.counted += counted ? *counted : p.counted(c.data);
    run.allows(&Callback::after_forward, Action::stop_epoch);
  } else {
    c.outputs =
        p.explained(ComputeError::Stage::forward, &c.data, [&] { return p.compute(c.data); });
    run.allows(&Callback::after_forward, Action::stop_epoch);
    const Parts::Labels labels = p.check_outputs(c.outputs, c.data);
    const double counts = counted ? *counted : p.counted(c.data, labels);
    c.loss = p.explained(ComputeError::Stage::loss, nullptr,
                         [&] { return p.mean_loss(c.outputs, c.data, counts); });
    run.counted += counts;
  }
}

void Learner::backward(Run& run, double share) {
  const Phase phase(PhaseKind::backward);
  Parts& p = *parts_;
  const at::Tensor& loss = run.context.loss;
  if (!p.checked_graph) p.check_graph(loss, run.context.data);
  p.explained(ComputeError::Stage::backward, nullptr, [&] {
    if (run.stepper) return run.stepper->backward(loss);
    const double factor = p.scaler ? share * p.scaler->scale() : share;
    if (factor == 1) {
      loss.backward();
    } else {
      loss.mul(factor).backward();
    }
  });
}

// False: the step is left out, and its gradients are no use.
bool Learner::finite_gradients(Run& run) {
  Parts& p = *parts_;
  if (!p.scaler) return true;
  const Phase phase(PhaseKind::step);
  run.finite = p.scaler->unscale(p.optimizer->groups());
  return run.finite;
}

// From the optimizer's last write on nothing can fail before the step counts.
void Learner::step(Run& run) {
  const Phase phase(PhaseKind::step);
  if (!run.stepper)
    parts_->explained(ComputeError::Stage::step, nullptr, [&] {
      clip_gradients(run.optimizer->groups(), parts_->options.clip);
      run.optimizer->step();
    });
  if (run.optimizers) {
    run.count_turn();
  } else {
    run.count_batch();
  }
  if (run.last_turn) ++run.plan.step;
  run.context.step = run.plan.step;
}

void Learner::end_step(Run& run) {
  if (!run.stepper && !run.optimizer->steps_atomically()) step(run);
  const Phase phase(PhaseKind::step);
  if (run.allows(&Callback::after_step, Action::skip)) run.optimizer->zero_grad();
}

void Learner::validate_epoch(Run& run) {
  Parts& p = *parts_;
  FitContext& c = run.context;
  c.row.valid_loss = std::numeric_limits<double>::quiet_NaN();
  if (!p.data.valid || !run.allows(&Callback::before_validate, Action::skip)) return;
  const auto started = Clock::now();
  const Evaluation result = p.evaluate(
      p.data.valid, run.validation, [&](MicroBatchChange change) { run.tell(std::move(change)); });
  c.row.valid_loss = result.loss;
  c.row.metrics = result.metrics;
  c.row.seconds += seconds_since(started);
  run.allows(&Callback::after_validate, Action::stop_epoch);
  if (result.counted > 0) check_mean(run, "valid_loss", c.row.valid_loss);
}

// Counts the epoch before after_epoch, so that a checkpoint saved there begins with the next one.
void Learner::close_epoch(Run& run) {
  Parts& p = *parts_;
  ++p.epochs_done;
  ++run.plan.epoch;
  run.plan.batch = 0;
  run.plan.rows.push_back(run.context.row);
  p.history.push_back(run.context.row);
  p.restored_epoch = 0;
  run.closing = true;
  run.allows(&Callback::after_epoch, Action::stop_fit);
  run.closing = false;
  run.plan.rows.back() = p.history.back() = run.context.row;  // with columns that callbacks added
  if (run.meter.counted() > 0) check_mean(run, "train_loss", run.context.row.train_loss);
}

// Restores the Learner to its state before the failed step, which resume() repeats. Called inside
// the handler; the caller rethrows.
void Learner::abandon(Run& run) {
  Parts& p = *parts_;
  FitContext& c = run.context;
  c.error = std::current_exception();
  run.loader->stop();
  run.snapshot.restore();
  for (const EventMethod event : {&Callback::on_exception, &Callback::after_fit})
    run.notify_quietly(event);
  run.release_step();
  if (run.updating) {  // else the gradients are of batches before, and wait for a step
    p.optimizer->zero_grad();
    p.add_gradients(run.earlier_gradients);
    run.earlier_gradients.clear();
  }
  p.keep_position(run);
  memory::flush_ready_queue();
}

}  // namespace tare

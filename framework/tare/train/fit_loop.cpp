// Goes through the epochs and batches of a fit.
#include "tare/train/fit_loop.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/train/interrupt.h"
#include "tare/train/lent_weights.h"
#include "tare/train/padding.h"
#include "tare/train/rank_options.h"

namespace tare {
namespace {

using Clock = std::chrono::steady_clock;
using memory::Phase;
using memory::PhaseKind;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sets the rates and momenta of this step: a pure function of the plan, with no state to save.
void apply_schedule(const FitPlan& plan, const FitSchedules& schedules,
                    const std::vector<GroupBase>& bases, Optimizer& optimizer,
                    FitContext& context) {
  const FitSchedules::Step now = schedules.at(plan.step, context.steps);
  size_t index = 0;
  for (auto& group : optimizer.groups()) {
    set_values(group, plan.rates[static_cast<size_t>(group.layer_group)], now, bases[index++]);
    context.lr = group.lr;
    context.momentum = group.momentum;
  }
}

// Applies what callbacks made of the rates of a step.
void scale_rates(std::vector<ParameterGroup>& groups, const FitContext& context) {
  if (context.rate_factor == 1) return;
  for (auto& group : groups) group.lr *= context.rate_factor;
}

/// Whether an error of a card, or of a library that works on it, is the error or caused it.
bool is_error_of_card(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const c10::AcceleratorError&) {
    return true;
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    return text.starts_with("CUDA error") || text.starts_with("cuDNN error");
  } catch (const std::exception& e) {
    const auto* const nested = dynamic_cast<const std::nested_exception*>(&e);
    return nested && is_error_of_card(nested->nested_ptr());
  } catch (...) {  // only its type is asked for
    return false;
  }
}

/// The fit throws the first error. Of a card's error the first line says what it is.
void log_second(const Callback& callback, const std::exception& error) {
  const std::string text = error.what();
  log::error("callback '" + callback.name() +
             "' failed while the fit was ending: " + text.substr(0, text.find('\n')));
}

}  // namespace

FitLoop::FitLoop(LearnerState& state, LearnerView& learner, FitStart start, const char* call)
    : state_(state),
      call_(call),
      is_planned_(start.is_planned),
      steps_(start.steps),
      plan_(std::move(start.work.plan)),
      callbacks_(std::move(start.callbacks)),
      context_{.learner = learner},
      validation_(std::move(start.validation)),
      optimizer_(state.optimizer.get()),
      optimizers_(dynamic_cast<OptimizerSet*>(optimizer_)),
      schedules_(plan_.schedule, plan_.schedules),
      bases_(*optimizer_, schedules_) {
  if (state_.shards_gradients()) check_shared_callbacks(callbacks_, state_.options, call);
  if (state_.group()) ranks_.emplace(state_);
  {
    const Phase phase(PhaseKind::step);  // what every step works with
    optimizer_->prepare();
    snapshot_.prepare(state_.model, state_.devices());
    meter_.prepare(state_.output_device(), state_.for_card);
  }
  context_.bfloat16_on_host =
      state_.device.is_cpu() && product_type(state_.precision) == c10::kBFloat16;
  feed_ = std::make_unique<Feed>(
      state_, state_.data.train,
      state_.shared(training_loader(state_.options, state_.drops_last(),
                                    sample_weights(state_.options, state_.data.train, call))));
  restore(start.work.callbacks, callbacks_);
  context_.rate_factor = plan_.rate_factor;
  if (state_.options.save_in_background && start.saves) saves_.emplace(state_);
  if (state_.options.step_in_backward) stepper_.emplace(*optimizer_);
  if (state_.options.graph) records_.emplace(state_, schedules_);
  micro_batches_.emplace(std::move(start.micro_batches), state_.sizes);
  if (state_.is_first_rank())  // the sums are those over all ranks
    meter_.restore({plan_.loss_sum, plan_.loss_samples, plan_.loss_counted});
  if (plan_.batch > feed_->batches())  // an older checkpoint, which names no batch size
    throw ConfigError(call, "the fit to resume is at batch " + std::to_string(plan_.batch) +
                                " of an epoch, this Learner's epoch has " +
                                std::to_string(feed_->batches()) +
                                "; set the batch that the fit had");
  plan_.order = state_.sample_order();
  plan_.optimizers = state_.optimizer_names();
  plan_.turns = state_.turn_names();
}

FitResult FitLoop::run() {
  const RunningScope running(state_, call_);
  state_.loop = this;
  if (state_.pending)  // the callbacks have the tensors now
    for (CallbackState& saved : state_.pending->callbacks) saved.tensors.clear();
  FitContext& c = context_;
  c.epochs = plan_.epochs;
  c.batches = feed_->batches();
  c.steps = steps_ > 0 ? steps_ : plan_.all_batches(c.batches);
  if (plan_.found) c.lr_find = &*plan_.found;
  c.epoch = plan_.epoch;  // a resumed fit begins where it stopped
  c.step = plan_.step;
  began_ = Clock::now();
  for (const EpochRow& row : plan_.rows) seconds_before_ += row.seconds;
  if (plan_.batch > 0) seconds_before_ += plan_.seconds;
  const int64_t first_step = plan_.step;
  try {
    run_epochs();
    if (ranks_) ranks_->end();
  } catch (...) {
    if (ranks_) ranks_->fail(std::current_exception());
    abandon();
    if (plan_.step > first_step) state_.note_trained();
    throw;
  }
  if (plan_.step > first_step) state_.note_trained();
  release_step();
  if (records_ && !is_planned_)
    log::info(format_count(records_->replays()) + " of " + format_count(plan_.step - first_step) +
              " steps were queued as a whole, after " + format_count(records_->recorded()) +
              (records_->recorded() == 1 ? " was recorded" : " were recorded"));
  state_.pending.reset();
  if (interrupted_) {
    state_.pending = Unfinished{shared_plan(), states_of(callbacks_)};
    clear_interrupt();
  }
  return {.epochs = plan_.rows,
          .validations = plan_.validations,
          .reason = interrupted_                        ? StopReason::interrupted
                    : plan_.finished() || out_of_time() ? StopReason::finished
                                                        : StopReason::callback,
          .steps = plan_.step - first_step,
          .restored_epoch = state_.restored_epoch,
          .restored_step = state_.restored_validation ? state_.restored_validation->step : 0,
          .overflows = plan_.overflows,
          .seconds = seconds_since(began_),
          .lr_find = plan_.found};
}

void FitLoop::run_epochs() {
  allows(&Callback::before_fit, Action::stop_fit);
  if (saves_) saves_->prepare(callbacks_);
  while (!plan_.finished() && !is_over()) {
    train_epoch();
    if (interrupted_) break;  // inside the epoch, where resume() continues: it gets no row
    validate_epoch();
    close_epoch();
  }
  context_.interrupted = interrupted_;
  finish_saves();
  notify(callbacks_, &Callback::after_fit, context_);
  finish_saves();
  for (const auto& callback : callbacks_)
    if (!interrupted_ && callback->facts().keeps_lent) state_.lent_figures = false;
}

void FitLoop::train_epoch() {
  LearnerState& p = state_;
  FitContext& c = context_;
  training_since_ = Clock::now();
  if (action_ == Action::stop_epoch) action_ = Action::proceed;
  if (plan_.batch == 0) meter_.reset();
  c.texts.clear();
  c.row = EpochRow{.epoch = p.epochs_done + 1, .seconds = plan_.batch > 0 ? plan_.seconds : 0};
  c.inside_seconds = plan_.batch > 0 ? plan_.inside_seconds : 0;
  c.epoch = plan_.epoch;
  p.model.train(true);
  inside_.reset();
  allows(&Callback::before_epoch, Action::stop_epoch);
  feed_->start(p.epochs_done, plan_.batch, end_of_epoch());
  if (ranks_) settle();
  validate_if_due();  // after the batch of a checkpoint saved before it
  bool more = action_ < Action::stop_epoch && !at_last_batch();
  while (more && train_next()) {
    if (goes_on()) validate_if_due();
    more = goes_on();
  }
  if (ranks_) settle();
  feed_->stop();
  const LossTotals trained = totals();
  c.row.train_loss = trained.mean();
  c.row.samples = trained.samples;
  c.row.seconds += seconds_since(*std::exchange(training_since_, std::nullopt));
}

bool FitLoop::train_next() {
  std::optional<memory::Step> step;
  if (!is_planned_) step.emplace();
  if (!next_batch()) return false;
  if (saves_) saves_->poll();
  train_batch();
  return true;
}

bool FitLoop::next_batch() {
  const Phase phase(PhaseKind::data);
  if (!feed_->next(context_.data)) return false;
  context_.batch = plan_.batch;
  context_.step = plan_.step;
  return true;
}

void FitLoop::train_batch() {
  if (optimizers_) return train_turns();
  LearnerState& p = state_;
  FitContext& c = context_;
  apply_schedule(plan_, schedules_, bases_.values(), *p.optimizer, c);
  scale_rates(p.optimizer->groups(), c);
  c.lr *= c.rate_factor;
  if (records_) records_->round_rates();
  snapshot_.take(/*with_buffers=*/!records_);
  if (allows(&Callback::before_batch, Action::skip) && update()) end_step();
  updating_ = false;
  if (snapshot_.taken()) count_batch();  // without a step
  micro_batches_->take_changes([&](MicroBatchChange change) { report(std::move(change)); });
  allows(&Callback::after_batch, Action::stop_epoch);
  release_step();
}

void FitLoop::train_turns() {
  FitContext& c = context_;
  const auto& turns = state_.options.task.turns;
  optimizers_->set_rates(plan_.rates, schedules_, bases_.values(), plan_.step, c.steps);
  for (const std::string& name : state_.optimizer_names())
    scale_rates(optimizers_->part(name).groups(), c);
  scale_rates(optimizers_->groups(), c);  // which list the rates
  c.lr = optimizers_->groups().back().lr;
  c.momentum = optimizers_->groups().back().momentum;
  snapshot_.take();
  c.turn = plan_.turn;
  c.turns = std::max<int64_t>(1, std::ssize(turns));
  const bool wanted = allows(&Callback::before_batch, Action::skip);
  const Batch whole = c.data;
  for (last_turn_ = false; wanted && !last_turn_;) {
    c.turn = plan_.turn;
    turn_ = turns.empty() ? nullptr : &turns[static_cast<size_t>(c.turn)];
    last_turn_ = c.turn + 1 == c.turns;
    if (turn_) optimizer_ = &optimizers_->part(turn_->optimizer);
    const TrainOnly own(*optimizers_, turn_ ? turn_->optimizer : "");
    release_step();  // of the turn before
    c.data = whole;
    if (!snapshot_.taken()) snapshot_.take();
    if (update()) end_step();
    updating_ = false;
    if (!last_turn_ && snapshot_.taken()) count_turn();  // without a step
  }
  last_turn_ = true;
  if (snapshot_.taken()) count_turn();  // without a step of the last turn
  micro_batches_->take_changes([&](MicroBatchChange change) { report(std::move(change)); });
  allows(&Callback::after_batch, Action::stop_epoch);
  release_step();
}

int64_t FitLoop::end_of_epoch() const {
  if (plan_.batches == 0) return context_.batches;
  return std::clamp(plan_.batches - plan_.epoch * context_.batches, plan_.batch, context_.batches);
}

bool FitLoop::at_last_batch() const {
  return plan_.batches > 0 && plan_.epoch * context_.batches + plan_.batch >= plan_.batches;
}

bool FitLoop::out_of_time() const {
  const bool any = plan_.epoch > 0 || plan_.batch > 0;  // the first batch is always worked on
  return any && plan_.most_seconds > 0 &&
         seconds_before_ + seconds_since(began_) >= plan_.most_seconds;
}

Wish FitLoop::wish() const {
  return {.action = action_,
          .interrupted = interrupted_ || (!is_planned_ && interrupt_requested()),
          .out_of_time = out_of_time()};
}

void FitLoop::take_interrupt(const Wish& all) {
  if (!all.interrupted) return;
  interrupted_ = true;
  action_ = Action::stop_fit;
}

void FitLoop::settle() {
  const Wish all = ranks_->settle(wish());
  action_ = all.action;
  take_interrupt(all);
}

bool FitLoop::is_over() {
  if (!ranks_) return out_of_time() || action_ >= Action::stop_fit;
  settle();
  return ranks_->known().out_of_time || action_ >= Action::stop_fit;
}

// Ranks act on what all of them know, which is what they wanted when the step began.
bool FitLoop::goes_on() {
  const Wish all = ranks_ ? ranks_->known() : wish();
  take_interrupt(all);
  return all.action < Action::stop_epoch && !all.interrupted && !all.out_of_time &&
         !at_last_batch();
}

LossTotals FitLoop::totals() const {
  return ranks_ ? sum_over(*state_.group(), meter_.totals()) : meter_.totals();
}

bool FitLoop::validate() {
  LearnerState& p = state_;
  FitContext& c = context_;
  c.row.valid_loss = std::numeric_limits<double>::quiet_NaN();
  p.lent_figures = false;
  if (!p.data.valid || !allows(&Callback::before_validate, Action::skip)) return false;
  const auto started = Clock::now();
  const Evaluation result = [&] {
    LentWeights weights(callbacks_, p.model);
    p.lent_figures = weights.lend();
    const parallel::ShardedExchange::Whole whole(sharded());  // ranks cut batches differently
    return p.evaluate(p.data.valid, validation_,
                      [&](MicroBatchChange change) { report(std::move(change)); });
  }();
  c.row.valid_loss = result.loss;
  c.row.metrics = result.metrics;
  const double seconds = seconds_since(started);
  c.row.seconds += seconds;
  if (c.inside_epoch) c.inside_seconds += seconds;
  validation_counts_ = result.counted > 0;
  return true;
}

void FitLoop::validate_epoch() {
  FitContext& c = context_;
  c.inside_epoch = inside_ && inside_->batch == plan_.batch;
  if (c.inside_epoch) {  // its figures are those of the epoch
    c.row.valid_loss = inside_->valid_loss;
    c.row.metrics = inside_->metrics;
    return;
  }
  if (!validate()) return;
  allows(&Callback::after_validate, Action::stop_epoch);
  if (validation_counts_) check_mean("valid_loss", c.row.valid_loss);
}

// That of the epoch follows the last batch.
bool FitLoop::is_validation_due() const {
  const int64_t every = state_.options.valid_every;
  if (every == 0 || !state_.data.valid || action_ >= Action::stop_epoch) return false;
  if (plan_.batch == 0 || plan_.batch >= context_.batches || at_last_batch()) return false;
  const int64_t last = plan_.validations.empty() ? 0 : plan_.validations.back().step;
  return plan_.step % every == 0 && plan_.step > last;
}

void FitLoop::validate_if_due() {
  if (is_validation_due()) validate_inside();
}

ValidationRow FitLoop::current_validation() const {
  const EpochRow& row = context_.row;
  return {.step = plan_.step,
          .epoch = row.epoch,
          .train_loss = row.train_loss,
          .valid_loss = row.valid_loss,
          .metrics = row.metrics};
}

// The generators are put back for metrics and tasks that draw numbers.
void FitLoop::validate_inside() {
  FitContext& c = context_;
  const EpochRow before = c.row;
  const bool lent_before = state_.lent_figures;
  c.inside_epoch = true;
  const LossTotals trained = totals();
  c.row.train_loss = trained.mean();
  c.row.samples = trained.samples;
  c.row.seconds += seconds_since(*training_since_);
  const bool done = [&] {
    const GeneratorScope generators(state_.devices());
    return validate();
  }();
  if (done) {
    plan_.validations.push_back(current_validation());  // it counts in what callbacks save now
    allows(&Callback::after_validate, Action::stop_epoch);
    plan_.validations.back() = current_validation();  // with what callbacks changed
    inside_ = {.batch = plan_.batch, .valid_loss = c.row.valid_loss, .metrics = c.row.metrics};
    if (validation_counts_) check_mean("valid_loss", c.row.valid_loss);
  } else {
    state_.lent_figures = lent_before;
  }
  c.row = before;
  c.inside_epoch = false;
}

void FitLoop::check_mean(const char* figure, double loss) const {
  if (!state_.options.stop_on_nan || std::isfinite(loss)) return;
  if (action_ < Action::stop_fit) diverged(figure, loss);
}

void FitLoop::close_epoch() {
  LearnerState& p = state_;
  ++p.epochs_done;
  ++plan_.epoch;
  plan_.batch = 0;
  plan_.rows.push_back(context_.row);
  p.history.push_back(context_.row);
  p.restored_epoch = 0;
  p.restored_validation.reset();
  closing_ = true;
  {
    const parallel::ShardedExchange::Whole whole(sharded());  // callbacks read the weights
    allows(&Callback::after_epoch, Action::stop_fit);
  }
  closing_ = false;
  context_.inside_epoch = false;
  plan_.rows.back() = p.history.back() = context_.row;  // with columns that callbacks added
  if (meter_.counted() > 0) check_mean("train_loss", context_.row.train_loss);
}

void FitLoop::abandon() {
  LearnerState& p = state_;
  FitContext& c = context_;
  c.error = std::current_exception();
  feed_->stop();
  snapshot_.restore();
  try {
    finish_saves();
  } catch (const std::exception& second) {
    const std::string text = second.what();
    log::error("a checkpoint was not written: " + text.substr(0, text.find('\n')));
  }
  for (const EventMethod event : {&Callback::on_exception, &Callback::after_fit})
    notify_quietly(event);
  release_step();
  if (updating_) {  // else the gradients are of batches before, and wait for a step
    p.optimizer->zero_grad();
    p.add_gradients(earlier_gradients_);
    earlier_gradients_.clear();
  }
  p.pending = unfinished();
  memory::flush_ready_queue();
}

void FitLoop::add_to(TrainState& state) const {
  if (closing_) state.history.back() = context_.row;
  if (!plan_.finished()) state.plan = shared_plan();
  state.callbacks = states_of(callbacks_);
  check_names(state.callbacks, "learner.save");  // of a state that came during the fit
}

std::optional<Unfinished> FitLoop::unfinished() const {
  if (plan_.finished()) return std::nullopt;
  return Unfinished{current_plan(), states_of(callbacks_)};
}

at::Tensor FitLoop::earlier_gradient(const at::Tensor& parameter) const {
  if (!updating_) return parameter.grad();
  const auto found = std::ranges::find_if(
      earlier_gradients_, [&](const auto& entry) { return entry.first.is_same(parameter); });
  return found == earlier_gradients_.end() ? at::Tensor() : found->second;
}

void FitLoop::restored(const std::vector<CallbackState>& states) const {
  for (const CallbackState& saved : states)
    for (const auto& callback : callbacks_)
      if (callback->name() == saved.name) callback->after_restore(state_.model, saved.tensors);
}

void FitLoop::account(Ledger& ledger) const {
  for (const auto* list : {&context_.data.inputs, &context_.data.targets})
    for (const auto& [name, tensor] : *list) ledger.add(Category::batch, name, tensor);
  for (const at::Tensor& output : context_.outputs)
    ledger.add(Category::activations, "output", output);
  ledger.add(Category::activations, "loss", context_.loss);
  ledger.add(Category::activations, "loss", loss_mean_.sum());
  for (const auto& copy : snapshot_.copies()) ledger.add(Category::workspace, "snapshot", copy);
  for (const auto& [parameter, gradient] : earlier_gradients_)
    ledger.add(Category::gradients, "earlier", gradient);
  if (records_) records_->account(ledger);
  feed_->account(ledger);
  if (saves_) saves_->account(ledger);
  ledger.add(Category::workspace, "loss_sum", meter_.device_sum());
  for (const auto& callback : callbacks_) callback->account(ledger);
}

void FitLoop::diverged(const char* figure, double loss) const {
  const bool of_step = updating_;  // whose loss it is; else of all steps so far
  throw DivergedError(call_, figure, loss, context_.epoch + 1, context_.step + (of_step ? 1 : 0),
                      context_.advice_on_divergence());
}

FitPlan FitLoop::current_plan() const {
  FitPlan now = plan_;
  now.loss_sum = meter_.sum();
  now.loss_counted = meter_.counted();
  now.loss_samples = meter_.samples();
  now.seconds = context_.row.seconds;
  now.inside_seconds = context_.inside_seconds;
  now.rate_factor = context_.rate_factor;
  if (training_since_ && !context_.inside_epoch)  // then the row has this time
    now.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - *training_since_).count();
  if (closing_) now.rows.back() = context_.row;
  if (context_.inside_epoch && !closing_ && !now.validations.empty() &&
      now.validations.back().step == plan_.step)
    now.validations.back() = current_validation();  // with what callbacks changed so far
  return now;
}

FitPlan FitLoop::shared_plan() const {
  FitPlan now = current_plan();
  if (!ranks_) return now;
  const LossTotals all = totals();
  now.loss_sum = all.sum;
  now.loss_samples = all.samples;
  now.loss_counted = all.counted;
  return now;
}

void FitLoop::notify_quietly(EventMethod event) {
  for (const auto& callback : callbacks_) {
    try {
      (callback.get()->*event)(context_);
    } catch (const c10::AcceleratorError& second) {
      // Every call to a card that is lost fails like the first, whose error the fit throws.
      if (!is_error_of_card(context_.error)) log_second(*callback, second);
    } catch (const std::exception& second) {
      log_second(*callback, second);
    }
  }
}

void FitLoop::report(MicroBatchChange change) {
  context_.micro_batch_change = std::move(change);
  allows(&Callback::on_micro_batch, Action::stop_epoch);
  context_.micro_batch_change.reset();
}

}  // namespace tare

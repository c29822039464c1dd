// Begins and resumes the fits of a Learner.
#include "tare/base/error.h"
#include "tare/learner/learner.h"
#include "tare/memory/oom_report.h"
#include "tare/plan/next_fit.h"
#include "tare/train/fit_loop.h"
#include "tare/train/lr_search.h"

namespace tare {
namespace {

void set_rates(FitPlan& plan, const LearningRate& lr, size_t groups, const char* call) {
  if (const LrFindOptions* search = lr.search()) {
    search->check(call);
    plan.search = *search;
  } else {
    plan.rates = lr.per_group(static_cast<int64_t>(groups));
  }
}

MicroBatches::Settings micro_batches(const LearnerState& state, int64_t first) {
  auto settings = state.training_micro_batches(first);
  if (!settings.fixed) settings.search.suggest = suggestion_by_plan(state);
  return settings;
}

}  // namespace

FitResult Learner::fit(int64_t epochs, FitOptions options) {
  (void)idle("learner.fit");
  return fit_for({.epochs = epochs}, std::move(options));
}

FitResult Learner::fit(const Duration& duration, FitOptions options) {
  LearnerState& p = idle("learner.fit");
  check(duration, options.schedule, options.schedules, "learner.fit");
  (void)p.split(Split::train, "learner.fit");
  return fit_for(length_of(duration, p.sample_order()), std::move(options));
}

FitResult Learner::fit_for(const FitLength& length, FitOptions options) {
  LearnerState& p = *state_;
  FitPlan plan{.epochs = length.epochs, .batches = length.batches, .most_seconds = length.seconds};
  const auto groups = p.model.layer_groups().size();
  if (options.lr)
    set_rates(plan, *options.lr, groups, "learner.fit");
  else
    plan.rates.assign(groups, p.base_rate());
  plan.schedule = options.schedule;
  plan.schedules = options.schedules;
  return start_fit({.plan = std::move(plan)}, std::move(options.callbacks), "learner.fit",
                   {options.first_micro_batch, options.first_validation_micro_batch});
}

FitResult Learner::fit_one_cycle(int64_t epochs, OneCycleOptions options) {
  LearnerState& p = idle("learner.fit_one_cycle");
  FitPlan plan;
  plan.epochs = epochs;
  set_rates(plan, options.max_lr, p.model.layer_groups().size(), "learner.fit_one_cycle");
  plan.schedule = {.kind = "one_cycle", .one_cycle = options.shape};
  return start_fit({.plan = std::move(plan)}, std::move(options.callbacks), "learner.fit_one_cycle",
                   {});
}

FineTuneResult Learner::fine_tune(int64_t epochs, FineTuneOptions options) {
  check_epochs(epochs, "learner.fine_tune");
  check_epochs(options.frozen_epochs, "learner.fine_tune");
  // The constants are those of fine_tune() in fastai 2.
  const double rate = options.lr / 2;
  FineTuneResult result;
  freeze();
  result.frozen = fit_one_cycle(
      options.frozen_epochs,
      {.max_lr = options.lr, .shape = {.pct_start = 0.99}, .callbacks = options.callbacks});
  if (result.frozen.reason != StopReason::finished) return result;
  unfreeze();
  result.all = fit_one_cycle(epochs, {.max_lr = lr_range(rate / 100, rate),
                                      .shape = {.div = 5},
                                      .callbacks = std::move(options.callbacks)});
  return result;
}

bool Learner::can_resume() const { return state("learner.can_resume").pending.has_value(); }

FitResult Learner::resume(std::vector<CallbackPtr> callbacks) {
  LearnerState& p = idle("learner.resume");
  if (!p.pending) {
    throw StateError("learner.resume", "without an unfinished fit",
                     "load a checkpoint that was saved inside a fit");
  }
  return start_fit(*p.pending, std::move(callbacks), "learner.resume", {});
}

FitResult Learner::start_fit(Unfinished work, std::vector<CallbackPtr> callbacks, const char* call,
                             const FirstMicroBatches& first) {
  LearnerState& p = *state_;
  p.check_fit(work.plan, call);
  p.check_valid_every(call);
  check_first_micro_batch(first.train, p.options.batch, call, "first_micro_batch");
  check_first_micro_batch(first.valid, p.options.batch, call, "first_validation_micro_batch");
  callbacks.insert(callbacks.begin(), p.options.callbacks.begin(), p.options.callbacks.end());
  if (!p.is_first_rank())
    std::erase_if(callbacks, [](const CallbackPtr& one) { return one->facts().only_writes; });
  check_callbacks(callbacks, call);
  move_logs_back(callbacks);
  const memory::OutOfMemoryWatch watch({.batch = p.options.batch});
  prepare_fit();
  p.ensure_optimizer();
  p.check_turns(work.plan, call);
  check_effect(work.plan.schedules, *p.optimizer, call);
  for (const ParameterGroup& group : p.optimizer->groups())
    check_bounds(work.plan.schedules, group.momentum, group.beta2);
  choose_recompute(p);
  if (work.plan.search) {
    const LrFindResult found = search(*work.plan.search, call, first.train);
    if (found.interrupted) {
      work.plan.order = p.sample_order();
      p.pending = {std::move(work.plan), states_of(callbacks)};
      return {.reason = StopReason::interrupted, .seconds = found.seconds, .lr_find = found};
    }
    work.plan.rates.assign(p.model.layer_groups().size(), found.lr());
    work.plan.search.reset();
    work.plan.found = found;
  }
  if (p.progress) callbacks.push_back(p.progress);
  FitLoop loop(p, *this,
               {.work = std::move(work),
                .callbacks = std::move(callbacks),
                .micro_batches = micro_batches(p, first.train),
                .validation = p.validation_micro_batches(first.valid)},
               call);
  return loop.run();
}

void Learner::prepare_fit() {
  LearnerState& p = *state_;
  p.return_to_device();
  p.hold_frozen();  // of what may have been frozen or not since
  p.expect_metrics();
  if (!p.varying) p.varying = varying_dimensions(p.data);
}

LrFindResult Learner::search(const LrFindOptions& options, const char* call, int64_t first) {
  return search_rate(*state_, *this,
                     {.options = options,
                      .micro_batches =
                          [this, first] {
                            choose_recompute(*state_);
                            return micro_batches(*state_, first);
                          }},
                     call);
}

LrFindResult Learner::lr_find(const LrFindOptions& options) {
  constexpr const char* kCall = "learner.lr_find";
  LearnerState& p = idle(kCall);
  options.check(kCall);
  p.check_fit({.epochs = 1}, kCall);
  const memory::OutOfMemoryWatch watch({.batch = p.options.batch});
  prepare_fit();
  return search(options, kCall, 0);
}

}  // namespace tare

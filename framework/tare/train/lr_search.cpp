// Runs the fit loop for a search for a learning rate.
#include "tare/train/lr_search.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <memory>

#include "tare/train/fit_loop.h"
#include "tare/train/set_aside.h"

namespace tare {
namespace {

/// Notes the loss of each step, and ends the fit where the curve ends. Without values, for a plan,
/// it only skips the validation.
class LrRecorder final : public Callback {
 public:
  /// `group`: whose mean loss counts; null: this process is alone.
  LrRecorder(const LrFindOptions& options, bool has_values, parallel::Group* group)
      : options_(options), curve_(options), has_values_(has_values), group_(group) {}
  [[nodiscard]] std::string name() const override { return "lr_find"; }
  Action after_loss(FitContext& context) override {
    // The ranks know their mean behind the step only.
    if (!has_values_ || group_ || std::isfinite(context.loss_value())) return Action::proceed;
    curve_.add(rate(), context.loss_value());
    return Action::stop_fit;
  }
  Action after_batch(FitContext& context) override {
    // A batch whose step was skipped for an overflow is done again with the next one's samples.
    // Ranks end a step later than a process that is alone.
    const bool counts = has_values_ && context.step > steps_ && !curve_.finished();
    if (counts) curve_.add(rate(), loss_of(context));
    steps_ = context.step;
    return curve_.finished() ? Action::stop_fit : Action::proceed;
  }
  Action before_validate(FitContext&) override { return Action::skip; }
  [[nodiscard]] const LrFindCurve& curve() const { return curve_; }

 private:
  [[nodiscard]] double loss_of(const FitContext& context) const {
    const double own = context.loss_value();
    if (!group_) return own;
    const auto samples = static_cast<double>(context.data.size());
    double sum = 0, all = 0;
    for (const auto& of_rank : group_->exchange({own * samples, samples})) {
      sum += of_rank[0];
      all += of_rank[1];
    }
    return sum / all;
  }
  // The context has the rate of the last group, which may be that of another optimizer.
  [[nodiscard]] double rate() const {
    const double progress = static_cast<double>(steps_) / static_cast<double>(options_.steps);
    return options_.start * std::pow(options_.end / options_.start, progress);
  }

  LrFindOptions options_;
  LrFindCurve curve_;
  bool has_values_;
  parallel::Group* group_;
  int64_t steps_ = 0;
};

FitStart start_of(LearnerState& state, LrSearch search, const CallbackPtr& recorder) {
  const LrFindOptions& options = search.options;
  FitStart start{.callbacks = std::move(search.callbacks),
                 .micro_batches = search.micro_batches(),
                 .validation = state.validation_micro_batches(0),
                 .saves = false,
                 .is_planned = search.planned_epochs > 0};
  start.callbacks.push_back(recorder);
  FitPlan& plan = start.work.plan;
  plan.rates.assign(state.model.layer_groups().size(), options.start);
  plan.schedule = {.kind = "exponential", .final_factor = options.end / options.start};
  start.steps = options.steps;
  // Each epoch has a batch at least. With fp16 the first steps may be skipped.
  plan.epochs = start.is_planned ? search.planned_epochs : (state.scaler ? 2 : 1) * options.steps;
  return start;
}

}  // namespace

LrFindResult search_rate(LearnerState& state, LearnerView& learner, LrSearch search,
                         const char* call) {
  SetAside before(state);
  const bool planned = search.planned_epochs > 0;
  const auto recorder = std::make_shared<LrRecorder>(search.options, !planned, state.group());
  LrFindResult result{.steps = search.options.steps, .suggestion = search.options.suggestion};
  try {
    state.ensure_optimizer();
    FitStart start = start_of(state, std::move(search), recorder);
    state.check_turns(start.work.plan, call);
    FitLoop loop(state, learner, std::move(start), call);
    const FitResult fit = loop.run();
    result.interrupted = fit.reason == StopReason::interrupted;
    result.seconds = fit.seconds;
  } catch (const c10::AcceleratorError&) {
    before.restore_host();
    throw;
  } catch (...) {
    before.restore();
    throw;
  }
  before.restore();
  result.points = recorder->curve().points();
  result.stopped_early = recorder->curve().stopped_early();
  if (!result.interrupted) suggest(result);
  return result;
}

}  // namespace tare

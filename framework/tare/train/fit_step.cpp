// Does a step of a fit: forward and backward in parts, again in smaller ones while memory is out.
#include <cmath>
#include <utility>

#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"
#include "tare/train/fit_loop.h"

namespace tare {

using memory::Phase;
using memory::PhaseKind;

namespace {

/// Throws the last refusal of memory, which has left parts of one sample to a model with batch
/// norm.
[[noreturn]] void refuse_single_samples(const at::Device& device) {
  const auto last = memory::last_out_of_memory();
  throw OutOfMemory(device, last ? last->asked_bytes : 0, last ? last->snapshot.allocated_bytes : 0,
                    last ? last->budget_bytes : std::optional<int64_t>(),
                    "parts of two samples do not fit, and the model's batch norm trains on no "
                    "single sample: raise the budget, or take a smaller model");
}

/// Returns the same values, without a graph.
Outputs detached(const Outputs& outputs) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& output : outputs) all.push_back(output.detach());
  return all;
}

}  // namespace

bool FitLoop::update() {
  LearnerState& p = state_;
  FitContext& c = context_;
  Batch whole;  // kept where its parts, or a callback, may take its place
  if (!callbacks_.empty()) whole = c.data;
  const Action before = action_;
  finite_ = true;
  updating_ = true;
  counted_ = 0;
  if (!stepper_) earlier_gradients_ = p.take_gradients();
  if (ranks_) ranks_->begin_step(*optimizer_, has_own_samples() ? p.counted(c.data) : 0, wish());
  if (!callbacks_.empty()) before_update_.take(p.devices());  // else nothing was drawn yet
  bool cut = false;                                           // in parts, by what memory allows
  RecordedStep* record = nullptr;
  std::vector<BatchPart> parts;
  const auto work = [&](int64_t size) {
    cut = !p.options.micro_batch && size < c.data.size();
    parts.clear();
    if (size >= c.data.size() && !sharded()) {
      record = recorded(c.data, parts);
      return record || try_update(whole, {});
    }
    if (whole.inputs.empty()) whole = c.data;
    parts = p.parts_of(whole, size, p.slicers.train);
    if (parts.size() > 1)
      std::erase_if(parts, [](const BatchPart& part) { return part.share == 0; });
    if (ranks_) ranks_->agree_on_parts(parts);
    if (parts.size() == 1) parts.clear();
    record = recorded(whole, parts);
    return record || try_update(whole, parts);
  };
  const auto undo = [&] {
    if (whole.inputs.empty()) whole = c.data;
    undo_update(whole);
    action_ = before;
    finite_ = true;
  };
  bool stepped = false;
  try {
    stepped = micro_batches_->attempt(c.data, work, undo);
  } catch (const ComputeError& error) {
    if (cut && error.is_of_single_sample()) refuse_single_samples(p.device);
    throw;
  }
  if (record) {
    replay(*record, Batch(c.data), parts);
    return true;
  }
  if (p.scaler && (stepped || !finite_)) p.scaler->update(finite_);
  if (!finite_) ++plan_.overflows;
  return stepped;
}

RecordedStep* FitLoop::recorded(const Batch& whole, const std::vector<BatchPart>& parts) {
  if (!records_) return nullptr;
  bool fresh = false;
  RecordedStep* step = nullptr;
  if (earlier_gradients_.empty()) step = records_->find(whole, parts, fresh);
  if (step && step->with_optimizer) return step;
  snapshot_.take_buffers();  // the batch may yet end without a step
  if (step || !fresh) return step;
  const double counted = state_.counted(whole);
  struct AtEnd {
    FitLoop& loop;
    const Batch batch;
    ~AtEnd() {
      loop.recording_ = nullptr;
      loop.release_step();
      loop.context_.data = batch;
    }
  } const at_end{*this, whole};
  return &records_->record(at_end.batch, parts, [&](RecordedStep& record, const auto& own) {
    recording_ = &record;
    context_.data = record.batch;
    static_cast<void>(own.empty() ? try_backward(1, counted) : try_parts(own));
    if (record.with_optimizer) step_optimizer();
    record.loss = context_.loss.detach();
    record.gradients = state_.take_gradients();
    context_.outputs.reset();
    context_.loss.reset();
  });
}

// When the callbacks hear of the step it is queued to its end. Where that includes the optimizer's
// step, the batch counts before they hear of it, so that what one of them saves is complete.
void FitLoop::replay(RecordedStep& step, const Batch& whole, const std::vector<BatchPart>& parts) {
  LearnerState& p = state_;
  FitContext& c = context_;
  for (size_t i = 0; i < step.parts.size() && !p.options.task; ++i)
    static_cast<void>(
        p.check_outputs(step.parts[i].outputs, parts.empty() ? whole : parts[i].batch));
  counted_ = p.counted(whole);
  {
    const Phase phase(PhaseKind::step);
    records_->replay(step, whole);
    c.loss = step.loss.clone();
  }
  const int64_t before = c.step;
  if (step.with_optimizer) count_step();
  c.step = before;
  const at::Tensor loss = c.loss;
  c.micro_batches = std::max<int64_t>(1, std::ssize(parts));
  for (c.micro_batch = 0; c.micro_batch < c.micro_batches; ++c.micro_batch) {
    const auto index = static_cast<size_t>(c.micro_batch);
    if (!parts.empty()) c.data = parts[index].batch;
    c.outputs = detached(step.parts[index].outputs);
    if (!parts.empty()) c.loss = step.parts[index].loss.clone();
    show_recorded(&Callback::after_forward);
    show_recorded(&Callback::after_loss);
    check_loss();
    if (!parts.empty()) c.outputs.reset();
  }
  c.micro_batch = 0;
  c.micro_batches = 1;
  c.data = whole;
  c.loss = loss;
  for (const auto& [parameter, gradient] : step.gradients) parameter.mutable_grad() = gradient;
  show_recorded(&Callback::after_backward);
  if (step.with_optimizer)
    c.step = plan_.step;
  else if (optimizer_->steps_atomically())
    this->step();
}

void FitLoop::show_recorded(EventMethod event) {
  FitContext& c = context_;
  const at::Tensor loss = c.loss;
  const Outputs outputs = c.outputs;
  const bool allowed =
      allows(event, event == &Callback::after_forward ? Action::stop_epoch : Action::skip);
  bool changed = !c.loss.is_same(loss) || c.outputs.size() != outputs.size();
  for (size_t i = 0; !changed && i < outputs.size(); ++i)
    changed = !c.outputs[i].is_same(outputs[i]);
  if (allowed && !changed) return;
  throw StateError("learner.fit", "with a callback that changes a step which is recorded",
                   "set graph: false, or omit the callback");
}

bool FitLoop::has_own_samples() const { return feed_->own_samples(plan_.batch) > 0; }

bool FitLoop::try_update(const Batch& whole, const std::vector<BatchPart>& parts) {
  LearnerState& p = state_;
  FitContext& c = context_;
  const bool wanted =
      (parts.empty() ? try_backward(1, {}) : try_parts(parts)) && finite_gradients();
  if (!whole.inputs.empty()) c.data = whole;
  if (ranks_) ranks_->end_backward(wanted);
  if (!wanted) p.optimizer->zero_grad();  // nor of the parts before
  p.add_gradients(earlier_gradients_);
  if (!wanted) return false;
  if (stepper_) step();  // it is done already: no answer undoes it
  const bool allowed = allows(&Callback::after_backward, Action::skip) || stepper_;
  if (allowed && !stepper_ && optimizer_->steps_atomically()) step();
  return allowed;
}

bool FitLoop::try_parts(const std::vector<BatchPart>& parts) {
  FitContext& c = context_;
  const memory::OutOfMemoryWatch watch(
      {.batch = parts.front().batch.size(), .in_parts = parts.size() > 1});
  bool wanted = true;
  loss_mean_ = {};
  c.micro_batches = static_cast<int64_t>(parts.size());
  if (state_.stages.size() > 1) {
    wanted = try_pipelined(parts);
  } else {
    for (c.micro_batch = 0; wanted && c.micro_batch < c.micro_batches; ++c.micro_batch) {
      const auto& [batch, share, counted] = parts[static_cast<size_t>(c.micro_batch)];
      c.data = batch;
      wanted = try_backward(share, counted);
      loss_mean_.add(c, share);
    }
  }
  c.micro_batch = 0;
  c.micro_batches = 1;
  c.loss = loss_mean_.take();
  return wanted;
}

// The devices of the stages work at the same time: nothing here waits for them, so each is given
// its share of a forward while the next one still does its share of the forward before. The
// backwards add up the gradients in the order of the micro-batches, as without stages. (Huang et
// al. 2019, "GPipe".)
bool FitLoop::try_pipelined(const std::vector<BatchPart>& parts) {
  FitContext& c = context_;
  std::vector<at::Tensor> losses;
  bool wanted = true;
  for (c.micro_batch = 0; wanted && c.micro_batch < c.micro_batches; ++c.micro_batch) {
    const BatchPart& part = parts[static_cast<size_t>(c.micro_batch)];
    c.data = part.batch;
    forward(part.counted);
    wanted = allows(&Callback::after_loss, Action::skip);
    losses.push_back(c.loss);
    loss_mean_.add(c, part.share);
  }
  for (c.micro_batch = 0; wanted && c.micro_batch < c.micro_batches; ++c.micro_batch) {
    const BatchPart& part = parts[static_cast<size_t>(c.micro_batch)];
    c.data = part.batch;
    c.loss = std::exchange(losses[static_cast<size_t>(c.micro_batch)], {});
    check_loss();
    backward(part.share);
    c.loss.reset();
  }
  return wanted;
}

bool FitLoop::try_backward(double share, std::optional<double> counted) {
  const auto norms = ranks_ ? ranks_->norms(has_own_samples()) : nullptr;
  if (ranks_) ranks_->open();
  forward(counted);
  if (!allows(&Callback::after_loss, Action::skip)) return false;
  check_loss();
  if (recording_) {
    recording_->parts.push_back(
        {.outputs = detached(context_.outputs), .loss = context_.loss.detach()});
  }
  backward(share);
  return true;
}

void FitLoop::undo_update(const Batch& whole) {
  release_step();
  if (records_) records_->clear();  // for the memory of smaller parts
  counted_ = 0;
  context_.data = whole;
  snapshot_.restore();
  snapshot_.take();
  if (!callbacks_.empty()) before_update_.restore();
  state_.optimizer->zero_grad();
  if (ranks_) ranks_->start_over();
}

void FitLoop::forward(std::optional<double> counted) {
  LearnerState& p = state_;
  FitContext& c = context_;
  const Phase phase(PhaseKind::forward);
  p.check_devices(c.data);
  if (p.options.task) {
    StepResult result = p.explained(ComputeError::Stage::forward, &c.data,
                                    [&] { return p.compute_task(c.data, turn_); });
    c.outputs = std::move(result.outputs);
    c.loss = std::move(result.loss);
    counted_ += counted ? *counted : p.counted(c.data);
    allows(&Callback::after_forward, Action::stop_epoch);
  } else {
    c.outputs =
        p.explained(ComputeError::Stage::forward, &c.data, [&] { return p.compute(c.data); });
    allows(&Callback::after_forward, Action::stop_epoch);
    LearnerState::Labels labels;
    if (!recording_) labels = p.check_outputs(c.outputs, c.data);
    const double counts = counted ? *counted : p.counted(c.data, labels);
    c.loss = p.explained_loss(c.outputs, c.data, counts);
    counted_ += counts;
  }
  p.check_scalar(c.loss);
  if (p.metrics_to_check && !turn_) p.check_metrics(c.outputs, c.data);
}

void FitLoop::check_loss() const {
  constexpr int64_t kLossEvery = 16;
  if (!state_.options.stop_on_nan || recording_) return;
  const FitContext& c = context_;
  if (!c.loss.device().is_cpu() && c.step % kLossEvery != 0) return;
  const double loss = c.loss_value();
  if (!std::isfinite(loss)) diverged("loss", loss);
}

void FitLoop::backward(double share) {
  const Phase phase(PhaseKind::backward);
  LearnerState& p = state_;
  const at::Tensor& loss = context_.loss;
  if (!p.checked_graph) p.check_graph(loss, context_.data);
  p.explained(ComputeError::Stage::backward, nullptr, [&] {
    if (stepper_) return stepper_->backward(loss);
    double factor = p.scaler ? share * p.scaler->scale() : share;
    if (ranks_) {
      factor *= ranks_->factor();
      ranks_->average_next(loss, context_.micro_batch + 1 == context_.micro_batches);
    }
    const auto differentiate = [&] {
      (factor == 1 && !ranks_ ? loss : loss.mul(factor)).backward();  // each rank as a plan
    };
    if (!ranks_) return differentiate();
    ranks_->exchanging(differentiate);
  });
}

bool FitLoop::finite_gradients() {
  LearnerState& p = state_;
  if (!p.scaler) return true;
  const Phase phase(PhaseKind::step);
  finite_ = p.scaler->unscale(p.optimizer->groups());
  if (ranks_) finite_ = ranks_->all_finite(finite_);
  return finite_;
}

void FitLoop::step() {
  const Phase phase(PhaseKind::step);
  if (!stepper_) step_optimizer();
  count_step();
}

void FitLoop::step_optimizer() {
  state_.explained(ComputeError::Stage::step, nullptr, [&] {
    if (ranks_)
      ranks_->clip(optimizer_->groups(), state_.options.clip);
    else
      clip_gradients(optimizer_->groups(), state_.options.clip);
    optimizer_->step();
  });
}

void FitLoop::count_step() {
  if (optimizers_) {
    count_turn();
  } else {
    count_batch();
  }
  if (last_turn_) ++plan_.step;
  context_.step = plan_.step;
}

void FitLoop::end_step() {
  if (!stepper_ && !optimizer_->steps_atomically()) step();
  const Phase phase(PhaseKind::step);
  if (allows(&Callback::after_step, Action::skip)) optimizer_->zero_grad();
}

void FitLoop::count_batch() {
  if (context_.loss.defined() && has_own_samples())
    meter_.add(context_.loss, context_.data.size(), counted_);
  ++plan_.batch;
  snapshot_.drop();
  earlier_gradients_.clear();
}

void FitLoop::count_turn() {
  if (last_turn_) {
    plan_.turn = 0;
    return count_batch();
  }
  ++plan_.turn;
  snapshot_.drop();
  earlier_gradients_.clear();
}

void FitLoop::release_step() {
  loss_mean_ = {};
  context_.micro_batch = 0;
  context_.micro_batches = 1;
  context_.data.reset();
  context_.outputs.reset();
  context_.loss.reset();
}

}  // namespace tare

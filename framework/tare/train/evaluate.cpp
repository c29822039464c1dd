// Evaluates a split: losses, metrics and predictions of a Learner.
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include "tare/base/error.h"
#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"
#include "tare/model/devices.h"
#include "tare/model/generators.h"
#include "tare/train/feed.h"
#include "tare/train/learner_state.h"
#include "tare/train/loss_meter.h"
#include "tare/train/ranks.h"

namespace tare {
namespace {

using memory::Phase;
using memory::PhaseKind;

LoaderOptions in_order(const DatasetPtr& set, const LearnerOptions& options) {
  return {.batch = std::min(options.batch, set->size()),
          .workers = options.workers,
          .seed = options.seed};
}

at::Tensor on_host(const at::Tensor& t, c10::ScalarType dtype) {
  return t.detach().to(c10::kCPU, dtype);
}

at::Tensor joined(const std::vector<at::Tensor>& parts) {
  if (parts.empty()) return {};
  for (const at::Tensor& part : parts)
    if (part.sizes().slice(1) != parts.front().sizes().slice(1))
      throw ShapeError("learner.get_preds",
                       "samples of one shape in all batches, " +
                           c10::str(parts.front().sizes().slice(1)) +
                           "; pad them to one length (PadOptions::multiple)",
                       c10::str(part.sizes().slice(1)));
  return at::cat(parts);
}

}  // namespace

void Collected::append(const Collected& batch) {
  const auto append = [](auto& lists, const auto& more) {
    lists.resize(std::max(lists.size(), more.size()));
    for (size_t i = 0; i < more.size(); ++i)
      lists[i].insert(lists[i].end(), more[i].begin(), more[i].end());
  };
  append(outputs, batch.outputs);
  append(targets, batch.targets);
  losses.insert(losses.end(), batch.losses.begin(), batch.losses.end());
}

Predictions Collected::all() const {
  Predictions result;
  for (size_t i = 0; i < outputs.size(); ++i)
    (i == 0 ? result.outputs : result.more_outputs.emplace_back()) = joined(outputs[i]);
  for (size_t i = 0; i < targets.size(); ++i)
    (i == 0 ? result.targets : result.more_targets.emplace_back()) = joined(targets[i]);
  result.losses = joined(losses);
  return result;
}

void LearnerState::check_predict(const PredictOptions& wanted, const char* call) const {
  if (wanted.losses && !loss.per_sample)
    throw StateError(call, "without a loss per sample", "a named loss has one; a function has not");
}

// The loss of a sample is the mean over its targets.
void LearnerState::collect(const Batch& part, const Outputs& outputs, const PredictOptions& wanted,
                           Collected& into) {
  if (wanted.losses) {
    check_outputs(outputs, part);
    at::Tensor each = loss.per_sample(outputs.front(), part.target());
    for (size_t i = 1; i < part.targets.size(); ++i)
      each = each.add(loss.per_sample(outputs[i], part.targets[i].tensor));
    if (part.targets.size() > 1) each = each.div(static_cast<double>(part.targets.size()));
    into.losses.push_back(on_host(each, c10::kFloat));
  }
  if (!wanted.outputs) return;
  Collected own;
  for (const at::Tensor& output : outputs)
    own.outputs.push_back(
        {on_host(wanted.activation ? loss.activation(output) : output, c10::kFloat)});
  for (const NamedTensor& target : part.targets)
    own.targets.push_back({on_host(target.tensor, target.tensor.scalar_type())});
  into.append(own);
}

LearnerState::Seen LearnerState::evaluate(const Batch& whole, int64_t size,
                                          const std::vector<MetricState>& fresh,
                                          const PredictOptions* wanted) {
  const memory::OutOfMemoryWatch watch(
      {.batch = std::min(size, whole.size()), .in_parts = size < whole.size()});
  Seen seen{.metrics = fresh};
  for (MetricState& metric : seen.metrics) metric.expect(whole.size());
  for (const BatchPart& part : parts_of(whole, size, slicers.valid)) {
    const Batch& batch = part.batch;
    Outputs outputs;
    at::Tensor loss_value;
    double counts = 0;
    if (options.task) {
      StepResult result =
          explained(ComputeError::Stage::forward, &batch, [&] { return compute_task(batch); });
      outputs = std::move(result.outputs);
      loss_value = std::move(result.loss);
      counts = part.counted ? *part.counted : counted(batch);
    } else {
      outputs = explained(ComputeError::Stage::forward, &batch, [&] { return compute(batch); });
      const Labels labels = check_outputs(outputs, batch);
      counts = part.counted ? *part.counted : counted(batch, labels);
      loss_value = explained_loss(outputs, batch, counts);
    }
    check_scalar(loss_value);
    seen.counted += counts;
    if (part.share != 1) loss_value = loss_value.mul(part.share);
    if (part.share > 0) seen.loss = seen.loss.defined() ? seen.loss.add(loss_value) : loss_value;
    const size_t targets = std::max<size_t>(1, batch.targets.size());
    for (size_t i = 0; i < seen.metrics.size(); ++i) {
      const size_t of = i % targets;
      if (of >= outputs.size())
        throw ShapeError("learner.metrics",
                         "an output of the model for each target, " + std::to_string(targets),
                         std::to_string(outputs.size()));
      update_metric(seen.metrics[i], outputs[of],
                    batch.targets.empty() ? at::Tensor() : batch.targets[of].tensor);
    }
    if (!wanted) continue;
    if (options.task.predict)  // a forward of its own
      outputs = explained(ComputeError::Stage::forward, &batch, [&] { return predict(batch); });
    collect(batch, outputs, *wanted, seen.predictions);
  }
  return seen;
}

Evaluation LearnerState::evaluate(const DatasetPtr& set, const MicroBatches::Settings& settings,
                                  const std::function<void(MicroBatchChange)>& on_change,
                                  const PredictOptions& wanted, Predictions* predictions) {
  const EvaluationScope evaluating(model);
  const c10::AutoGradMode no_grad(false);
  const Phase phase(PhaseKind::validate);
  LossMeter meter;
  meter.prepare(output_device(), for_card);
  for (auto& metric : metrics) metric.reset();
  std::vector<MetricState> fresh = metrics;
  MicroBatches micro_batches(settings, sizes);
  GeneratorSnapshot generators;
  Collected collected;
  // Predictions are of every sample, on each rank.
  const bool shares = group() && !predictions;
  // All ranks validate one model, whose buffers are those of rank 0.
  if (shares) group()->broadcast(tensors_of(model.buffers()));
  Feed feed(*this, set, shares ? shared(in_order(set, options)) : in_order(set, options));
  feed.start(0);
  int64_t index = 0;
  const int64_t samples =
      planned_valid_samples.value_or(shares ? most_samples(set->size()) : set->size());
  for (Batch batch; feed.next(batch);) {
    check_devices(batch);
    prepare_metrics(batch, samples);
    if (fresh.size() != metrics.size()) fresh = metrics;
    if (feed.own_samples(index++) == 0) continue;  // of another rank
    generators.take(devices());
    const Seen seen = micro_batches.attempt(
        batch,
        [&](int64_t size) { return evaluate(batch, size, fresh, predictions ? &wanted : nullptr); },
        [&] { generators.restore(); });
    collected.append(seen.predictions);
    meter.add(seen.loss, batch.size(), seen.counted);
    for (size_t i = 0; i < metrics.size(); ++i) metrics[i].merge(seen.metrics[i]);
    micro_batches.take_changes(on_change);
  }
  LossTotals all = meter.totals();
  if (shares) {
    all = sum_over(*group(), all);
    merge_over_ranks(metrics, samples);
  }
  Evaluation result{.loss = all.mean(), .samples = all.samples, .counted = all.counted};
  for (auto& metric : metrics) {
    result.metrics.push_back({metric.name(), metric.value(), metric.lower_is_better()});
    metric.reset();
  }
  if (predictions) *predictions = collected.all();
  return result;
}

void LearnerState::report(LearnerView& learner, MicroBatchChange change) const {
  FitContext context{.learner = learner};
  context.micro_batch_change = std::move(change);
  notify(options.callbacks, &Callback::on_micro_batch, context);
}

Predictions LearnerState::get_preds(const DatasetPtr& set, const PredictOptions& wanted,
                                    const std::function<void(MicroBatchChange)>& on_change) {
  const EvaluationScope evaluating(model);
  const c10::AutoGradMode no_grad(false);
  const Phase phase(PhaseKind::predict);
  MicroBatches::Settings settings = this->micro_batches("predict");
  settings.search.start = wanted.first_micro_batch;
  MicroBatches micro_batches(std::move(settings), sizes);
  GeneratorSnapshot generators;
  Collected all;
  Feed feed(*this, set, in_order(set, options));
  feed.start(0);
  for (Batch batch; feed.next(batch);) {
    check_devices(batch);
    generators.take(devices());
    const auto predict_in_parts = [&](int64_t size) {
      Collected seen;
      for (const Batch& part : slices_of(batch, size)) {
        const Outputs outputs =
            explained(ComputeError::Stage::forward, &part, [&] { return predict(part); });
        collect(part, outputs, wanted, seen);
      }
      return seen;
    };
    all.append(micro_batches.attempt(batch, predict_in_parts, [&] { generators.restore(); }));
    micro_batches.take_changes(on_change);
  }
  return all.all();
}

Outputs LearnerState::predict(const Batch& batch) {
  if (!options.task) return compute(batch);
  if (!options.task.predict) return compute_task(batch).outputs;
  const AutocastScope in_precision(autocast);
  Outputs outputs = options.task.predict(model, batch);
  to_full_precision(outputs);
  gather(outputs);
  return outputs;
}

Outputs LearnerState::compute(const Batch& batch) const {
  if (before_forward) before_forward();
  const AutocastScope in_precision(autocast);
  Outputs outputs = model.forward(batch);
  to_full_precision(outputs);
  gather(outputs);
  return outputs;
}

StepResult LearnerState::compute_task(const Batch& batch, const Turn* turn) {
  if (before_forward) before_forward();
  const AutocastScope in_precision(autocast);
  StepResult result;
  try {
    result = (turn ? turn->step : options.task.step)(model, batch);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    explain_devices("learner.task", model, batch, error);
    throw;
  }
  result.loss = full_precision(result.loss);
  to_full_precision(result.outputs);
  if (stages.size() > 1 && result.loss.defined()) result.loss = result.loss.to(output_device());
  gather(result.outputs);
  return result;
}

}  // namespace tare

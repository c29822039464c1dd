// Evaluates a split: losses, metrics and predictions of a Learner.
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include "tare/base/error.h"
#include "tare/learner/parts.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/model/devices.h"

namespace tare {
namespace {

using memory::Phase;
using memory::PhaseKind;

Loader ordered(const DatasetPtr& set, const LearnerOptions& options) {
  return {set, LoaderOptions{.batch = std::min(options.batch, set->size()),
                             .workers = options.workers,
                             .seed = options.seed}};
}

at::Tensor on_host(const at::Tensor& t, c10::ScalarType dtype) {
  return t.detach().to(c10::kCPU, dtype);
}

at::Tensor joined(const std::vector<at::Tensor>& parts) {
  return parts.empty() ? at::Tensor() : at::cat(parts);
}

}  // namespace

void Collected::append(const Collected& batch) {
  outputs.insert(outputs.end(), batch.outputs.begin(), batch.outputs.end());
  targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
  losses.insert(losses.end(), batch.losses.begin(), batch.losses.end());
}

Predictions Collected::all() const { return {joined(outputs), joined(targets), joined(losses)}; }

void Learner::Parts::check_predict(const PredictOptions& wanted, const char* call) const {
  if (wanted.losses && !loss.per_sample)
    throw StateError(call, "without a loss per sample", "a named loss has one; a function has not");
}

void Learner::Parts::collect(const Batch& part, const at::Tensor& output,
                             const PredictOptions& wanted, Collected& into) {
  if (wanted.losses) {
    check_output(output, part);
    into.losses.push_back(on_host(loss.per_sample(output, part.target), c10::kFloat));
  }
  into.outputs.push_back(
      on_host(wanted.activation ? loss.activation(output) : output, c10::kFloat));
  if (part.target.defined())
    into.targets.push_back(on_host(part.target, part.target.scalar_type()));
}

Learner::Parts::Seen Learner::Parts::evaluate(const Batch& whole, int64_t size,
                                              const std::vector<MetricState>& fresh,
                                              const PredictOptions* wanted) {
  Seen seen{.metrics = fresh};
  for (const BatchPart& part : parts_of(whole, size, slicers.valid)) {
    const Batch& batch = part.batch;
    at::Tensor output, loss_value;
    int64_t counts = 0;
    if (options.task) {
      StepResult result =
          explained(ComputeError::Stage::forward, &batch, [&] { return compute_task(batch); });
      output = std::move(result.output);
      loss_value = std::move(result.loss);
      counts = part.counted ? *part.counted : counted(batch);
    } else {
      output =
          explained(ComputeError::Stage::forward, &batch, [&] { return compute(batch.input); });
      const auto labels = check_output(output, batch);
      counts = part.counted ? *part.counted : counted(batch, labels);
      loss_value = explained(ComputeError::Stage::loss, nullptr,
                             [&] { return mean_loss(output, batch, counts); });
    }
    seen.counted += counts;
    if (part.share != 1) loss_value = loss_value.mul(part.share);
    if (part.share > 0) seen.loss = seen.loss.defined() ? seen.loss.add(loss_value) : loss_value;
    for (auto& metric : seen.metrics) metric.update(output, batch.target);
    if (!wanted) continue;
    if (options.task.predict)  // a forward of its own
      output = explained(ComputeError::Stage::forward, &batch, [&] { return predict(batch); });
    collect(batch, output, *wanted, seen.predictions);
  }
  return seen;
}

Evaluation Learner::Parts::evaluate(const DatasetPtr& set, const MicroBatches::Settings& settings,
                                    const std::function<void(MicroBatchChange)>& on_change,
                                    const PredictOptions& wanted, Predictions* predictions) {
  const EvaluationScope evaluating(model);
  const c10::AutoGradMode no_grad(false);
  const Phase phase(PhaseKind::validate);
  LossMeter meter;
  meter.prepare(device);
  for (auto& metric : metrics) metric.reset();
  const std::vector<MetricState> fresh = metrics;
  MicroBatches micro_batches(settings, sizes);
  GeneratorSnapshot generators;
  Collected collected;
  Loader loader = ordered(set, options);
  loader.start(0);
  for (Batch batch; loader.next(batch);) {
    batch = to_device(batch);
    check_devices(batch);
    generators.take(device);
    const Seen seen = micro_batches.attempt(
        batch,
        [&](int64_t size) { return evaluate(batch, size, fresh, predictions ? &wanted : nullptr); },
        [&] { generators.restore(); });
    collected.append(seen.predictions);
    meter.add(seen.loss, batch.size(), seen.counted);
    for (size_t i = 0; i < metrics.size(); ++i) metrics[i].merge(seen.metrics[i]);
    micro_batches.take_changes(on_change);
  }
  Evaluation result{.loss = meter.mean(), .samples = meter.samples(), .counted = meter.counted()};
  for (auto& metric : metrics) {
    result.metrics.push_back({metric.name(), metric.value()});
    metric.reset();
  }
  if (predictions) *predictions = collected.all();
  return result;
}

EvaluatedPredictions Learner::evaluate(Split split, const PredictOptions& options) {
  Parts& p = idle("learner.evaluate");
  const DatasetPtr& set = p.split(split, "learner.evaluate");
  p.check_predict(options, "learner.evaluate");
  const RunningScope running(p, "learner.evaluate");
  EvaluatedPredictions result;
  result.figures = p.evaluate(
      set, p.validation_micro_batches(0),
      [&](MicroBatchChange change) { p.tell(*this, std::move(change)); }, options,
      &result.predictions);
  return result;
}

Evaluation Learner::validate(Split split) {
  Parts& p = idle("learner.validate");
  const DatasetPtr& set = p.split(split, "learner.validate");
  const RunningScope running(p, "learner.validate");
  return p.evaluate(set, p.validation_micro_batches(0),
                    [&](MicroBatchChange change) { p.tell(*this, std::move(change)); });
}

void Learner::Parts::tell(Learner& learner, MicroBatchChange change) const {
  FitContext context{.learner = learner};
  context.micro_batch_change = std::move(change);
  notify(options.callbacks, &Callback::on_micro_batch, context);
}

Predictions Learner::get_preds(Split split, const PredictOptions& options) {
  Parts& p = idle("learner.get_preds");
  const DatasetPtr& set = p.split(split, "learner.get_preds");
  p.check_predict(options, "learner.get_preds");
  const RunningScope running(p, "learner.get_preds");
  const EvaluationScope evaluating(p.model);
  const c10::AutoGradMode no_grad(false);
  const Phase phase(PhaseKind::predict);
  MicroBatches micro_batches(p.micro_batches("predict"), p.sizes);
  GeneratorSnapshot generators;
  Collected all;
  Loader loader = ordered(set, p.options);
  loader.start(0);
  for (Batch batch; loader.next(batch);) {
    batch = p.to_device(batch);
    p.check_devices(batch);
    generators.take(p.device);
    const auto predict = [&](int64_t size) {
      Collected seen;
      for (const Batch& part : slices_of(batch, size)) {
        const at::Tensor output =
            p.explained(ComputeError::Stage::forward, &part, [&] { return p.predict(part); });
        p.collect(part, output, options, seen);
      }
      return seen;
    };
    all.append(micro_batches.attempt(batch, predict, [&] { generators.restore(); }));
    micro_batches.take_changes([&](MicroBatchChange change) { p.tell(*this, std::move(change)); });
  }
  return all.all();
}

at::Tensor Learner::Parts::predict(const Batch& batch) {
  if (!options.task) return compute(batch.input);
  if (!options.task.predict) return compute_task(batch).output;
  const AutocastScope in_precision(autocast);
  return full_precision(options.task.predict(model, batch.input));
}

at::Tensor Learner::Parts::compute(const at::Tensor& input) const {
  const AutocastScope in_precision(autocast);
  return full_precision(model.forward(input));
}

StepResult Learner::Parts::compute_task(const Batch& batch) {
  const AutocastScope in_precision(autocast);
  StepResult result;
  try {
    result = options.task.step(model, batch);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    explain_devices("learner.task", model, batch.input, error);
    throw;
  }
  return {.loss = full_precision(result.loss), .output = full_precision(result.output)};
}

}  // namespace tare

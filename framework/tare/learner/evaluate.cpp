#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include "tare/base/error.h"
#include "tare/learner/parts.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"

namespace tare {
namespace {

using memory::Phase;
using memory::PhaseKind;

Loader ordered(const DatasetPtr& set, const LearnerOptions& options) {
  return {set, LoaderOptions{.batch = std::min(options.batch, set->size()),
                             .workers = options.workers,
                             .seed = options.seed}};
}

struct Collector {
  std::vector<at::Tensor> parts;
  void add(const at::Tensor& t, c10::ScalarType dtype) {
    if (t.defined()) parts.push_back(t.detach().to(c10::kCPU, dtype));
  }
  [[nodiscard]] at::Tensor all() { return parts.empty() ? at::Tensor() : at::cat(parts); }
};

}  // namespace

Evaluation Learner::Parts::evaluate(const DatasetPtr& set) {
  const EvaluationScope evaluating(model);
  const c10::AutoGradMode no_grad(false);
  const Phase phase(PhaseKind::validate);
  LossMeter meter;
  for (auto& metric : metrics) metric.reset();
  Loader loader = ordered(set, options);
  loader.start(0);
  for (Batch batch; loader.next(batch);) {
    batch = to_device(batch);
    check_devices(batch);
    at::Tensor output, loss_value;
    if (options.task) {
      StepResult result = options.task.step(model, batch);
      output = std::move(result.output);
      loss_value = std::move(result.loss);
    } else {
      output = model.forward(batch.input);
      check_output(output, batch);
      loss_value = loss.mean(output, batch.target);
    }
    meter.add(loss_value, batch.size());
    for (auto& metric : metrics) metric.update(output, batch.target);
  }
  Evaluation result{.loss = meter.mean(), .samples = meter.samples()};
  for (auto& metric : metrics) {
    result.metrics.push_back({metric.name(), metric.value()});
    metric.reset();
  }
  return result;
}

Evaluation Learner::validate(Split split) {
  Parts& p = idle("learner.validate");
  const DatasetPtr& set = p.split(split, "learner.validate");
  const RunningScope running(p);
  return p.evaluate(set);
}

Predictions Learner::get_preds(Split split, const PredictOptions& options) {
  Parts& p = idle("learner.get_preds");
  const DatasetPtr& set = p.split(split, "learner.get_preds");
  if (options.losses && !p.loss.per_sample) {
    throw StateError("learner.get_preds", "without a loss per sample",
                     "a named loss has one; a function has not");
  }
  const RunningScope running(p);
  const EvaluationScope evaluating(p.model);
  const c10::AutoGradMode no_grad(false);
  const Phase phase(PhaseKind::predict);
  Collector outputs, targets, losses;
  Loader loader = ordered(set, p.options);
  loader.start(0);
  for (Batch batch; loader.next(batch);) {
    batch = p.to_device(batch);
    p.check_devices(batch);
    const at::Tensor output = p.predict(batch);
    if (options.losses) {
      p.check_output(output, batch);
      losses.add(p.loss.per_sample(output, batch.target), c10::kFloat);
    }
    outputs.add(options.activation ? p.loss.activation(output) : output, c10::kFloat);
    if (batch.target.defined()) targets.add(batch.target, batch.target.scalar_type());
  }
  return {outputs.all(), targets.all(), losses.all()};
}

at::Tensor Learner::Parts::predict(const Batch& batch) {
  if (!options.task) return model.forward(batch.input);
  return options.task.predict ? options.task.predict(model, batch.input)
                              : options.task.step(model, batch).output;
}

}  // namespace tare

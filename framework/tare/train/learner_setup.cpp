// Checks and changes what a Learner trains, and lists its tensors.
#include <algorithm>

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/train/fit_loop.h"
#include "tare/train/learner_state.h"
#include "tare/train/padding.h"
#include "tare/train/recorded_steps.h"
#include "tare/train/set_aside.h"

namespace tare {

namespace {

std::string clip_text(const ClipOptions& clip) {
  return (clip.norm > 0 ? "norm " : "value ") +
         config::to_node(clip.norm > 0 ? clip.norm : clip.value).text;
}

}  // namespace

void check_epochs(int64_t epochs, const std::string& call) {
  if (epochs <= 0) throw ConfigError(call, "epochs", "must be > 0", "", std::to_string(epochs));
  if (epochs > kMostEpochs)
    throw ConfigError(call, "epochs", "must be at most 1,000,000,000", "", std::to_string(epochs));
}

void check_step_in_backward(const LearnerOptions& options, const std::string& where) {
  if (!options.step_in_backward) return;
  if (options.micro_batch && *options.micro_batch < options.batch)
    throw ConfigError(where,
                      "step_in_backward steps at the first backward: omit micro_batch, "
                      "or lower batch")
        .about("micro_batch", "the batch, or unset", std::to_string(*options.micro_batch));
  if (options.precision == "fp16")
    throw ConfigError(where,
                      "step_in_backward leaves nothing to unscale: fp16 needs all gradients "
                      "before the step; use bf16")
        .about("precision", "fp32, bf16 or bf16-true", options.precision);
  if (!options.optimizers.empty())
    throw ConfigError(where, "step_in_backward is for one optimizer, and optimizers has " +
                                 std::to_string(options.optimizers.size()) + ": omit one of them")
        .about("optimizers", "none", std::to_string(options.optimizers.size()));
  if (options.clip)
    throw ConfigError(where, "step_in_backward never has all gradients, which clip needs: omit one")
        .about("clip", "none", clip_text(options.clip));
}

void LearnerState::check_group_by_length(const std::string& call) const {
  if (!options.group_by_length) return;
  if (!options.shuffle)
    throw ConfigError(
        call, "group_by_length",
        "chooses the order of the samples, and shuffle = false keeps that of the data",
        "one of them", "true");
  (void)sample_lengths(*data.train, call);
}

void LearnerState::check_fit(const FitPlan& plan, const std::string& call) {
  check_epochs(plan.epochs, call);
  plan.schedule.check();
  try {
    plan.schedules.check(plan.schedule);
  } catch (const ConfigError& error) {
    throw error.within("schedules", error.source());
  }
  const int64_t samples = split(Split::train, call.c_str())->size();
  if (plan.order) check_same_order(*plan.order, sample_order(), call);
  if (options.batch > samples) {
    throw ConfigError(call, "batch " + std::to_string(options.batch) +
                                " is larger than the training split of " + std::to_string(samples) +
                                " samples; lower it")
        .about("batch", "1 to " + std::to_string(samples), std::to_string(options.batch));
  }
  if (options.micro_batch) check_micro_batch(*options.micro_batch, options.batch, call);
  check_step_in_backward(options, call);
  check_graph_option(options, call);
  if (!model.has_forward() && !options.task) {
    throw StateError(call, "without a forward of tensors or of a Batch",
                     "give LearnerOptions::task for such a model");
  }
  check_single_samples(call);
  (void)sample_weights(options, data.train, call);
  check_group_by_length(call);
}

void LearnerState::check_valid_every(const char* call) const {
  if (options.valid_every == 0 || data.valid) return;
  throw ConfigError(call, "valid_every", "needs a validation split, and the data have none",
                    "0, or data with a validation split", std::to_string(options.valid_every));
}

void LearnerState::check(const FitSetup& setup, const std::string& call) const {
  if (setup.batch && *setup.batch < 1)
    throw ConfigError(call, "batch", "must be >= 1", "", std::to_string(*setup.batch));
  if (setup.micro_batch) {
    LearnerOptions wanted = options;
    wanted.batch = setup.batch.value_or(options.batch);
    wanted.micro_batch = setup.micro_batch->samples;
    if (wanted.micro_batch) check_micro_batch(*wanted.micro_batch, wanted.batch, call);
    check_step_in_backward(wanted, call);
  }
  if (setup.recompute || setup.offload) {
    LearnerOptions wanted = options;
    wanted.recompute = setup.recompute.value_or(options.recompute);
    wanted.offload = setup.offload.value_or(options.offload);
    check_graph_option(wanted, call);
  }
  if (setup.recompute) check_recompute(*setup.recompute);
  if (setup.offload) model.check_blocks(*setup.offload, "offload");
}

FreezeReport LearnerState::freeze_to(int64_t first, const FreezeOptions& freezing) {
  const auto count = static_cast<int64_t>(model.layer_groups().size());
  const int64_t from = first < 0 ? count + first : first;
  if (from < 0 || from >= count) {
    throw ConfigError("learner.freeze_to", "the model has " + std::to_string(count) +
                                               " layer groups: from " + std::to_string(-count) +
                                               " to " + std::to_string(count - 1) + ", got " +
                                               std::to_string(first));
  }
  const auto trains = [&](const Parameter& parameter) {
    return parameter.group >= from || (freezing.norms && parameter.kind == ParameterKind::norm);
  };
  if (!options.optimizers.empty()) {
    std::vector<Parameter> trained = model.parameters();
    std::erase_if(trained, [&](const Parameter& parameter) { return !trains(parameter); });
    check_owners(options.optimizers, trained, "learner.freeze_to");
  }
  sizes.clear();  // less or more is kept for the backward
  FreezeReport report;
  for (const auto& parameter : model.parameters()) {
    at::Tensor tensor = parameter.tensor;
    const bool trainable = trains(parameter);
    (trainable ? report.trainable : report.frozen) += tensor.numel();
    tensor.set_requires_grad(trainable);
    if (trainable || !tensor.grad().defined()) continue;
    report.gradient_bytes += static_cast<int64_t>(tensor.grad().nbytes());
    tensor.mutable_grad().reset();  // a frozen parameter with a gradient would still be stepped
  }
  if (optimizer) {
    const StateChange change = optimizer->set_groups(groups());
    report.state_kept = change.kept;
    report.state_fresh = change.fresh;
    report.state_bytes = change.freed_bytes;
  }
  hold_frozen();  // last, so that what has been freed leaves no gaps
  count_frozen(report);
  return report;
}

Ledger LearnerState::ledger() const {
  Ledger all;
  model.account(all, Category::parameters, Category::buffers);
  if (optimizer) optimizer->account(all);
  for (const auto& parameter : model.parameters()) {
    all.add(Category::gradients, parameter.name, parameter.tensor.grad());
  }
  for (const auto& metric : metrics) metric.account(all);
  if (options.loss.account) options.loss.account(all);
  for (const auto& metric : options.metrics)
    if (metric.account) metric.account(all);
  if (options.task.account) options.task.account(all);
  for (const auto& callback : options.callbacks) callback->account(all);
  for (const auto* set : {&data.train, &data.valid, &data.test})
    if (*set) (*set)->account(all);
  if (loop) loop->account(all);
  if (set_aside) set_aside->account(all);
  if (pending)
    for (const CallbackState& saved : pending->callbacks)
      for (const auto& [name, tensor] : saved.tensors)
        all.add(saved.mapped ? Category::mapped : Category::other, saved.name + '/' + name, tensor);
  return all;
}

}  // namespace tare

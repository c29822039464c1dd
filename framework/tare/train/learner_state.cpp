// Works for the Learner's calls: losses, gradients, devices and micro-batches.
#include "tare/train/learner_state.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/phase.h"
#include "tare/memory/side_work.h"
#include "tare/metric/check.h"
#include "tare/model/coded_weight.h"
#include "tare/model/held_weights.h"
#include "tare/parallel/rank_share.h"
#include "tare/parallel/sharded_optimizer.h"

namespace tare {

void LearnerState::set_up(c10::Device to, parallel::Stages over) {
  precision = parse_precision(options.precision, "learner");
  set_recompute(options.recompute);
  loss = resolve(options.loss);
  for (const auto& metric : options.metrics) metrics.emplace_back(metric);
  check_metric_names();
  device = to;
  stages = std::move(over);
  devices_ = stages.empty() ? std::vector{device} : stages.devices();
  pins = memory::has_streams(to) && memory::backend(to).traits().pins;
  check_autocast();
  set_offload(options.offload);
  autocast = autocast_for(precision, device.type());
  warn_of_precision();
  if (precision == Precision::fp16) scaler.emplace();
  if (precision == Precision::bf16_true) model.to_half(c10::kBFloat16);
  if (options.kernels.channels_last) model.to_channels_last();
  hold_frozen();
  if (device.is_meta()) return;
  place();
  if (options.group) {
    options.group->exchange_on(device);
    options.group->broadcast(tensors_of(model.state()));
  }
  for (const c10::Device one : devices()) born_after.push_back(memory::backend(one).sequence());
}

void LearnerState::place() {
  stages.empty() ? parallel::place(model, device) : stages.place(model);
}

void LearnerState::gather(Outputs& outputs) const {
  if (stages.size() < 2) return;
  for (at::Tensor& output : outputs)
    if (output.defined() && output.device() != output_device()) output = output.to(output_device());
}

void LearnerState::warn_of_precision() const {
  if (device.is_meta()) return;  // a plan warns of the device that it is for
  const memory::DeviceTraits traits = memory::backend(device).traits();
  if (traits.is_host) return warn_of_slow_precision(precision);
  if (traits.planner && !traits.planner->computes_bfloat16)
    warn_of_bfloat16_on_card(precision, device.str());
}

void LearnerState::check_metric_names() const {
  for (auto metric = metrics.begin(); metric != metrics.end(); ++metric) {
    const auto named = [&](const MetricState& other) { return other.name() == metric->name(); };
    if (std::find_if(metrics.begin(), metric, named) == metric) continue;
    throw ConfigError("learner",
                      "two metrics are named '" + printable(metric->name()) +
                          "', as their columns of the epochs table would be; omit one, or "
                          "give a function another name: Metric(name, function)")
        .about("metrics", "each name once", metric->name());
  }
}

// A plan computes on meta tensors, which have no backend.
void LearnerState::check_autocast() const {
  if (device.is_meta() || !autocast_for(precision, device.type())) return;
  if (memory::backend(device).traits().autocasts) return;
  throw ConfigError("learner", "precision",
                    "needs autocast, which LibTorch does not have for " + device.str(),
                    "fp32 or bf16-true", options.precision);
}

void LearnerState::check_recompute(const std::vector<std::string>& modules) const {
  if (!is_auto(modules)) return model.check_blocks(modules, "recompute");
  if (!model.spec())
    throw ConfigError("recompute",
                      "auto needs a model from the registry, which can be planned; "
                      "name the blocks");
  model.check_blocks({"all"}, "recompute");
}

void LearnerState::set_recompute(const std::vector<std::string>& modules) {
  check_recompute(modules);
  recomputing = is_auto(modules) ? std::vector<std::string>() : modules;
  model.set_recompute(recomputing);
  options.recompute = modules;
}

void LearnerState::set_offload(const std::vector<std::string>& modules) {
  model.set_offload(modules);
  options.offload = modules;
  if (!device.is_cpu() || modules.empty()) return;
  model.set_offload({});
  log::info("offload: on the CPU activations are in the host's memory as they are");
}

void LearnerState::hold_frozen() {
  const bool on = options.frozen_weights == "fp8";
  const auto hold = [&] { model.hold_frozen(on); };
  if (holds_frozen(model, on)) return;
  if (planned_compaction) return planned_compaction(hold);
  if (device.is_cpu() || device.is_meta() || model.device().is_cpu()) return hold();
  compact(hold);
}

void LearnerState::count_frozen(FreezeReport& report) const {
  if (options.frozen_weights != "fp8") return;
  int64_t values = 0, held = 0;
  for (const auto& weights : model.held()) {
    for (const HeldWeight& weight : weights->all()) {
      values += static_cast<int64_t>(weight.coded().values.nbytes());
      held += static_cast<int64_t>(weight.scale.nbytes());
    }
  }
  for (const auto& parameter : model.parameters())
    if (!parameter.tensor.requires_grad())
      report.other_bytes += static_cast<int64_t>(parameter.tensor.nbytes());
  report.other_bytes -= values;
  report.held_bytes = values + held;
}

const DatasetPtr& LearnerState::split(Split which, const char* call) const {
  const DatasetPtr& set = which == Split::train   ? data.train
                          : which == Split::valid ? data.valid
                                                  : data.test;
  if (set) return set;
  throw StateError(call, std::string("without data in its ") + to_string(which) + " split",
                   "give it some with set_data()");
}

void LearnerState::return_to_device() {
  if (stages.empty() ? model.device() != device : !stages.holds(model)) place();
  for (auto& [tensor, from] : state_on_host)
    if (tensor.device() != from) tensor.set_data(tensor.to(from));
  state_on_host.clear();
}

Optimizer& LearnerState::ensure_optimizer() {
  if (optimizer) return *optimizer;
  auto groups = this->groups();
  if (model.parameters().empty()) {
    throw StateError("learner.optimizer", "without a parameter of the model",
                     "register_module() each submodule in the model's constructor: a plain member "
                     "is not found");
  }
  if (groups.empty()) {
    throw StateError("learner.optimizer", "without a trainable parameter",
                     "unfreeze() some layer groups first");
  }
  if (!options.optimizers.empty()) {
    auto set = std::make_unique<OptimizerSet>(options.optimizers, std::move(groups),
                                              /*with_tensors=*/for_card);
    made_with_rate = set->rate();
    optimizer = std::move(set);
    return *optimizer;
  }
  const OptimizerFactory make = [this](std::vector<ParameterGroup> of) {
    return options.optimizer_factory
               ? options.optimizer_factory(std::move(of))
               : make_optimizer(options.optimizer, std::move(of), /*with_tensors=*/for_card);
  };
  if (auto own = shard()) {
    if (shards_parameters()) own->group = nullptr;  // ShardedExchange gives them to the others
    optimizer = std::make_unique<parallel::ShardedOptimizer>(*own, std::move(groups), make);
  } else {
    optimizer = make(std::move(groups));
  }
  made_with_rate = optimizer->groups().front().lr;
  return *optimizer;
}

std::optional<parallel::Shard> LearnerState::shard() const {
  if (options.data_parallel.shard == "none" || !group() || group()->size() == 1)
    return std::nullopt;
  return parallel::Shard{.owners = parallel::owners_of(model.parameters(), group()->size()),
                         .rank = group()->rank(),
                         .group = group()};
}

bool LearnerState::shards_gradients() const {
  return parallel::shards_gradients(options.data_parallel) && group() && group()->size() > 1;
}

bool LearnerState::shards_parameters() const {
  return options.data_parallel.shard == "parameters" && shards_gradients();
}

std::vector<ParameterGroup> LearnerState::groups() const {
  return options.optimizers.empty() ? make_groups(model, options.optimizer)
                                    : make_groups_by_optimizer(model, options.optimizers);
}

std::vector<std::string> LearnerState::optimizer_names() const {
  std::vector<std::string> names;
  for (const NamedOptimizer& one : options.optimizers) names.push_back(one.name);
  return names;
}

std::vector<std::string> LearnerState::turn_names() const {
  std::vector<std::string> names;
  for (const Turn& turn : options.task.turns) names.push_back(turn.optimizer);
  return names;
}

void LearnerState::check_turns(const FitPlan& plan, const char* call) {
  const auto& turns = options.task.turns;
  if (plan.optimizers) check_same_names(*plan.optimizers, optimizer_names(), "optimizers", call);
  if (plan.turns) check_same_names(*plan.turns, turn_names(), "turns", call);
  const auto count = std::max<size_t>(1, turns.size());
  if (std::cmp_greater_equal(plan.turn, count))
    throw ConfigError(call, "the fit to resume is at turn " + std::to_string(plan.turn) +
                                " of a batch, this Learner's task has " + std::to_string(count) +
                                "; give the task that the fit had");
  if (options.optimizers.empty()) return;
  auto& set = dynamic_cast<OptimizerSet&>(*optimizer);
  for (const Turn& turn : turns)
    if (set.part(turn.optimizer).groups().empty())
      throw StateError(call,
                       "with a turn of the optimizer '" + printable(turn.optimizer) +
                           "', which has no trainable parameter",
                       "unfreeze() some of its layer groups, or omit the turn");
}

double LearnerState::base_rate() {
  ensure_optimizer();
  return made_with_rate;
}

void LearnerState::check_devices(const Batch& batch) const {
  const auto check_list = [](const auto& list, c10::Device wanted) {
    for (const auto& [name, tensor] : list) {
      if (!tensor.defined() || tensor.device() == wanted) continue;
      throw DeviceError("learner.batch", printable(name) + " on " + tensor.device().str(),
                        "model on " + wanted.str());
    }
  };
  check_list(batch.inputs, device);
  check_list(batch.targets, output_device());
}

std::optional<LabelRange> LearnerState::labels_of(const at::Tensor& target) const {
  if (device.is_cpu()) return label_range(loss, target);
  if (!target.defined()) return std::nullopt;
  const auto found =
      std::ranges::find(sent, target.storage().unsafeGetStorageImpl(), &SentLabels::target);
  if (found == sent.end() || found->version != target._version()) return std::nullopt;
  if (!found->range || found->elements == target.numel()) return found->range;
  const int64_t from = target.storage_offset() - found->first, count = target.numel();
  const auto labels = std::span(found->labels);
  if (!target.is_contiguous() || from < 0 || from + count > std::ssize(labels))
    return LabelRange{found->range->low, found->range->high, -1};
  const auto part = labels.subspan(static_cast<size_t>(from), static_cast<size_t>(count));
  return label_range(loss, at::from_blob(const_cast<int64_t*>(part.data()), {count}, at::kLong));
}

LearnerState::Labels LearnerState::check_outputs(const Outputs& outputs, const Batch& batch) {
  Labels labels;
  if (outputs.size() > 0 && outputs.front().defined() && outputs.front().dim() > 1)
    seen_outputs = outputs.front().size(1);
  if (loss.batch_mean) return labels;
  const size_t targets = std::max<size_t>(1, batch.targets.size());
  if (outputs.size() != targets)
    throw ShapeError("learner.loss",
                     "as many outputs of the model as targets of the data, " +
                         std::to_string(targets) + ", or a loss of the whole batch",
                     std::to_string(outputs.size()));
  for (size_t i = 0; i < targets; ++i) {
    const at::Tensor& target = batch.targets.empty() ? batch.target() : batch.targets[i].tensor;
    labels.push_back(labels_of(target));
    if (!checked_batch || !target.defined()) {
      check_batch(loss, outputs[i], target);
    } else if (labels.back() && outputs[i].dim() > 1) {
      check_labels(loss, *labels.back(), outputs[i].size(1));
    }
  }
  checked_batch = true;
  return labels;
}

double LearnerState::counted(const at::Tensor& target,
                             const std::optional<LabelRange>& labels) const {
  const auto known = labels || device.is_cpu() ? labels : labels_of(target);
  if (known && known->counted >= 0) return known->counted;
  return *tare::counted(loss, target);
}

double LearnerState::counted(const Batch& batch, const Labels& labels) const {
  if (options.task && options.task.counted) return options.task.counted(batch);
  if (!options.task && loss.batch_counted) return loss.batch_counted(batch);
  if (options.task || loss.batch_mean || batch.targets.empty())
    return static_cast<double>(batch.size());
  double all = 0;
  for (size_t i = 0; i < batch.targets.size(); ++i)
    all += counted(batch.targets[i].tensor, i < labels.size() ? labels[i] : std::nullopt);
  return all;
}

at::Tensor LearnerState::mean_loss(const Outputs& outputs, const Batch& batch,
                                   double counted) const {
  if (loss.batch_mean) return loss.batch_mean(outputs, batch);
  const LossFunction& mean = counted == 0 && loss.sum ? loss.sum : loss.mean;
  if (batch.targets.empty()) return mean(outputs[0], {});
  if (batch.targets.size() == 1) return mean(outputs[0], batch.targets.front().tensor);
  at::Tensor sum;
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    const at::Tensor& target = batch.targets[i].tensor;
    const double own = this->counted(target, labels_of(target));
    if (own == 0 && counted > 0) continue;  // it has no mean
    const double share = counted > 0 ? own / counted : 1;
    const at::Tensor part = mean(outputs[i], target).mul(share);
    sum = sum.defined() ? sum.add(part) : part;
  }
  return sum;
}

void LearnerState::check_scalar(const at::Tensor& value) const {
  if (!value.defined() || value.numel() == 1) return;
  throw ShapeError("learner.loss",
                   std::string("a scalar from ") +
                       (options.task ? "the task's step" : "the loss function") +
                       ", such as the mean over the batch",
                   tare::describe(value));
}

void LearnerState::expect_metrics() {
  metrics_to_check.reset();
  if (checked_metrics || options.metrics.empty() || !data.valid) return;
  metrics_to_check.emplace();
  const memory::Phase phase(memory::PhaseKind::data);
  for (const NamedTensor& target : data.valid->first_sample().targets)
    metrics_to_check->push_back({target.tensor.scalar_type(), target.tensor.dim()});
}

namespace {

ComputeError::Operation metric_operation(const std::string& name, const at::Tensor& output,
                                         const at::Tensor& target) {
  ComputeError::Operation operation{.name = name};
  add_operand(operation, "output", output);
  add_operand(operation, "target", target);
  return operation;
}

}  // namespace

void LearnerState::check_metric(const MetricState& metric, const at::Tensor& output,
                                const at::Tensor& target) {
  explained_score(
      ComputeError::Stage::metric, [&] { return metric_operation(metric.name(), output, target); },
      [&] { metric.check(output, target, /*try_update=*/!options.task); });
}

void LearnerState::update_metric(MetricState& metric, const at::Tensor& output,
                                 const at::Tensor& target) {
  explained_score(
      ComputeError::Stage::metric, [&] { return metric_operation(metric.name(), output, target); },
      [&] { metric.update(output, target); });
}

void LearnerState::check_metrics(const Outputs& outputs, const Batch& batch) {
  const auto expected = std::exchange(metrics_to_check, std::nullopt);
  checked_metrics = true;
  if (!expected || expected->size() != batch.targets.size()) return;
  const size_t targets = std::max<size_t>(1, batch.targets.size());
  for (size_t i = 0; i < std::min(targets, outputs.size()); ++i) {
    const at::Tensor target = batch.targets.empty() ? at::Tensor() : batch.targets[i].tensor;
    const bool same_kind =
        !target.defined() || expected->at(i) == TargetKind{target.scalar_type(), target.dim()};
    for (const Metric& metric : options.metrics)
      if (same_kind) check_metric(MetricState(metric), outputs[i], target);
  }
}

void LearnerState::prepare_metrics(const Batch& batch, int64_t samples) {
  const size_t targets = std::max<size_t>(1, batch.targets.size());
  if (metrics.size() != targets * options.metrics.size()) {
    metrics.clear();
    for (const Metric& metric : options.metrics) {
      if (targets == 1) metrics.emplace_back(metric);
      for (size_t i = 0; targets > 1 && i < targets; ++i)
        metrics.emplace_back(metric).add_to_name("." + batch.targets[i].name);
    }
  }
  for (MetricState& metric : metrics) metric.expect(samples);
}

std::vector<BatchPart> LearnerState::parts_of(const Batch& whole, int64_t size,
                                              const Slicer& slicer) const {
  return tare::parts_of(slicer(whole, size), [this](const Batch& batch) { return counted(batch); });
}

at::Tensor full_precision(const at::Tensor& tensor) {
  return tensor.defined() ? in_float32(tensor) : tensor;
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& one : named) tensors.push_back(one.tensor);
  return tensors;
}

void to_full_precision(Outputs& outputs) {
  for (at::Tensor& output : outputs)
    if (output.defined() && output.scalar_type() != c10::kFloat) output = in_float32(output);
}

// Gradients that ranks have averaged are views of memory that the next backward writes to.
LearnerState::Gradients LearnerState::take_gradients() const {
  Gradients taken;
  for (const auto& group : optimizer->groups()) {
    for (const auto& parameter : group.parameters) {
      at::Tensor& gradient = parameter.tensor.mutable_grad();
      if (!gradient.defined()) continue;
      at::Tensor earlier = std::exchange(gradient, {});
      taken.emplace_back(parameter.tensor, this->group() ? earlier.clone() : std::move(earlier));
    }
  }
  return taken;
}

void LearnerState::add_gradients(const Gradients& gradients) {
  const c10::AutoGradMode no_grad(false);
  for (const auto& [parameter, earlier] : gradients) {
    at::Tensor& gradient = parameter.mutable_grad();
    gradient = gradient.defined() ? earlier.add(gradient) : earlier;
  }
}

int64_t LearnerState::gradient_bytes() const {
  int64_t bytes = 0;
  const auto own = shards_gradients() ? shard() : std::nullopt;
  for (const auto& group : optimizer->groups())
    for (const auto& parameter : group.parameters)
      if (!own || own->owns(parameter.name))
        bytes += static_cast<int64_t>(parameter.tensor.nbytes());
  return bytes;
}

int64_t LearnerState::own_batch() const {
  const int64_t ranks = options.group ? options.group->size() : 1;
  return (options.batch - 1) / ranks + 1;
}

LoaderOptions LearnerState::shared(LoaderOptions loader) const {
  if (!options.group) return loader;
  loader.ranks = options.group->size();
  loader.rank = options.group->rank();
  return loader;
}

int64_t LearnerState::most_samples(int64_t samples) const {
  if (!group()) return samples;
  const int64_t batch = std::min(options.batch, samples);
  return batch == 0 ? 0 : parallel::most_samples_of_a_rank(samples, batch, group()->size());
}

void LearnerState::merge_over_ranks(std::vector<MetricState>& seen, int64_t most) const {
  for (MetricState& metric : seen) {
    const auto states = group()->tensors(metric.state());
    MetricState all = metric;
    all.reset();
    all.expect(most * group()->size());
    for (const auto& state : states) all.merge(metric.with_state(state));
    metric = std::move(all);
  }
}

MicroBatches::Settings LearnerState::micro_batches(const char* phase) const {
  return {.phase = phase, .fixed = options.micro_batch, .batch = own_batch(), .device = device};
}

MicroBatches::Settings LearnerState::validation_micro_batches(int64_t first) const {
  auto settings = micro_batches("validate");
  settings.search.start = first;
  return settings;
}

MicroBatches::Settings LearnerState::training_micro_batches(int64_t first) const {
  auto settings = micro_batches("train");
  const bool whole =
      group() && (options.data_parallel.sync_batch_norm || options.data_parallel.static_graph);
  if (options.step_in_backward || whole) settings.fixed = own_batch();
  if (settings.fixed) return settings;
  settings.search.start = first;
  settings.search.fixed_bytes = gradient_bytes();
  return settings;
}

}  // namespace tare

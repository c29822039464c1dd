// Builds a Learner, checks its options, and answers what it holds.
#include "tare/learner/learner.h"

#include <algorithm>
#include <iostream>

#include "tare/base/error.h"
#include "tare/callback/progress.h"
#include "tare/learner/learner_devices.h"
#include "tare/memory/backend.h"
#include "tare/train/learner_state.h"
#include "tare/train/rank_options.h"
#include "tare/train/recorded_steps.h"

namespace tare {

namespace {

void check_several_optimizers(const Model& model, const LearnerOptions& options) {
  const auto& turns = options.task.turns;
  if (options.optimizers.empty()) {
    if (!turns.empty())
      throw ConfigError("learner",
                        "the task has turns, and optimizers is empty; name the optimizers");
    return;
  }
  if (options.optimizer_factory)
    throw ConfigError("learner",
                      "optimizer_factory is without effect beside optimizers; give it as "
                      "NamedOptimizer::factory");
  if (options.optimizer != OptimizerOptions{})
    throw ConfigError("learner",
                      "optimizer is without effect beside optimizers; give its options as "
                      "NamedOptimizer::options");
  check_optimizers(options.optimizers, model, "learner");
  if (!turns.empty() && !options.task.step)
    throw ConfigError("learner", "the task has turns and no step; give a step for validation");
  std::vector<std::string> known;
  for (const auto& one : options.optimizers) known.push_back(one.name);
  for (const Turn& turn : turns) {
    if (std::ranges::find(known, turn.optimizer) == known.end())
      throw ConfigError("learner", "a turn is of the optimizer '" + printable(turn.optimizer) +
                                       "', which is not among the optimizers" +
                                       did_you_mean(turn.optimizer, known));
    if (!turn.step)
      throw ConfigError("learner", "the turn of the optimizer '" + printable(turn.optimizer) +
                                       "' has no step; give it a function");
  }
}

// Both would make the optimizer: one of them would have no effect.
void check_factory(const LearnerOptions& options) {
  if (!options.optimizer_factory || options.optimizer == OptimizerOptions{}) return;
  throw ConfigError("learner",
                    "optimizer is without effect beside optimizer_factory; give its options to the "
                    "factory, and the rate there or to fit()")
      .about("optimizer", "unset beside optimizer_factory", options.optimizer.kind);
}

void check(const Model& model, const LearnerOptions& options) {
  if (model.empty())
    throw StateError("learner", "without a model", "the model was moved away before");
  if (options.batch < 1)
    throw ConfigError("learner", "batch", "must be >= 1", "", std::to_string(options.batch));
  if (options.micro_batch) check_micro_batch(*options.micro_batch, options.batch, "learner");
  if (options.valid_every < 0)
    throw ConfigError("learner", "valid_every", "must be >= 0", "",
                      std::to_string(options.valid_every));
  check_callbacks(options.callbacks, "learner");
  check_clip(options.clip);
  check_step_in_backward(options, "learner");
  check_graph_option(options, "learner");
  check_stages(options, "learner");
  if (options.group)
    if (const auto refused = refused_by_ranks(options))
      throw ConfigError("learner", refused->field, refused->problem, refused->allowed,
                        refused->got);
  check_several_optimizers(model, options);
  check_factory(options);
  if (options.frozen_weights != "as_is" && options.frozen_weights != "fp8")
    throw ConfigError("learner", "frozen_weights must be as_is or fp8, got '" +
                                     printable(options.frozen_weights) + "'")
        .about("frozen_weights", "as_is, fp8", options.frozen_weights);
}

/// Returns what the tensors of each device may take in all.
std::vector<int64_t> capacities_of(const std::vector<c10::Device>& devices) {
  std::vector<int64_t> capacities;
  for (const c10::Device device : devices) {
    const auto& backend = memory::backend(device);
    capacities.push_back(backend.budget().value_or(backend.memory_info().total_bytes));
  }
  return capacities;
}

}  // namespace

Learner::Learner(Model model, Splits data, LearnerOptions options) {
  check(model, options);
  const std::vector<c10::Device> devices = open_devices(options);
  parallel::Stages stages;
  if (!options.stages.empty()) {
    stages = parallel::Stages(model, options.stages, devices, capacities_of(devices), "learner");
    options.stages = stages.names(model);
  }
  auto state =
      std::make_unique<LearnerState>(std::move(model), std::move(data), std::move(options));
  if (state->options.graph && !memory::backend(devices.front()).make_graph(nullptr))
    throw no_graphs(devices.front(), "learner");
  state->set_up(devices.front(), std::move(stages));
  if (state->options.progress && state->is_first_rank())
    state->progress = std::make_shared<Progress>(std::cout);
  state_ = std::move(state);
}

Learner::~Learner() = default;

LearnerState& Learner::state(const char* call) const {
  if (!state_)
    throw StateError(call, "destroyed", "make a new Learner, or load_learner() what was exported");
  return *state_;
}

LearnerState& Learner::idle(const char* call) const {
  LearnerState& p = state(call);
  if (p.running)
    throw StateError(call, "running", "call it when the fit has returned; a callback may save()");
  return p;
}

Model& Learner::model() { return state("learner.model").model; }
c10::Device Learner::device() const { return state("learner.device").device; }
const parallel::Stages& Learner::stages() const { return state("learner.stages").stages; }
const std::filesystem::path& Learner::folder() const {
  return state("learner.folder").options.folder;
}
const Splits& Learner::data() const { return state("learner.data").data; }
const std::vector<EpochRow>& Learner::history() const { return state("learner.history").history; }
bool Learner::destroyed() const { return state_ == nullptr; }

Optimizer& Learner::optimizer() { return state("learner.optimizer").ensure_optimizer(); }

Optimizer& Learner::optimizer(const std::string& name) {
  auto* set = dynamic_cast<OptimizerSet*>(&optimizer());
  if (!set)
    throw ConfigError("learner.optimizer", "there is one optimizer, without a name, got '" +
                                               printable(name) + "'; name several in " +
                                               "LearnerOptions::optimizers");
  return set->part(name);
}

void Learner::set_up(FitSetup setup) { apply(std::move(setup), "learner.set_up"); }

void Learner::set_data(Splits data, int64_t batch) {
  apply({.data = std::move(data), .batch = batch}, "learner.set_data");
}

void Learner::apply(FitSetup setup, const char* call) {
  LearnerState& p = idle(call);
  p.check(setup, call);
  const bool other_batches = setup.data || setup.batch;
  if (setup.data) {
    p.data = std::move(*setup.data);
    p.seen_input.reset();
    p.seen_name.clear();
    p.seen_more.clear();
    p.varying.reset();
    p.new_data = true;
  }
  if (setup.batch) p.options.batch = *setup.batch;
  if (other_batches) {
    p.checked_batch = p.checked_metrics = false;
    p.pending.reset();
  }
  if (setup.micro_batch) p.options.micro_batch = setup.micro_batch->samples;
  if (setup.recompute) p.set_recompute(*setup.recompute);
  if (setup.offload && *setup.offload != p.options.offload) p.set_offload(*setup.offload);
  // More or less is kept for the backward.
  if (other_batches || setup.recompute || setup.offload) p.sizes.clear();
}

FreezeReport Learner::freeze(const FreezeOptions& options) {
  LearnerState& p = idle("learner.freeze");
  if (p.model.layer_groups().size() < 2) {
    throw StateError("learner.freeze", "with a single layer group",
                     "give the Model groups, or use freeze_to()");
  }
  return freeze_to(-1, options);
}

FreezeReport Learner::unfreeze() { return freeze_to(0); }

FreezeReport Learner::freeze_to(int64_t first, const FreezeOptions& options) {
  LearnerState& p = idle("learner.freeze_to");
  const FreezeReport report = p.freeze_to(first, options);
  p.pending.reset();
  return report;
}

bool Learner::is_first_rank() const { return state("learner").is_first_rank(); }

bool Learner::first_rank_says(bool own) {
  const auto& group = state("learner").options.group;
  return group ? group->exchange({own ? 1.0 : 0.0}).front().front() != 0 : own;
}

DataScope::DataScope(Learner& learner, FitSetup setup) : learner_(learner) {
  learner_.set_up(std::move(setup));
}

DataScope::DataScope(Learner& learner, Splits data, int64_t batch)
    : DataScope(learner, {.data = std::move(data), .batch = batch}) {}

DataScope::~DataScope() {
  if (!learner_.destroyed()) learner_.set_up({.data = Splits{}});
}

}  // namespace tare

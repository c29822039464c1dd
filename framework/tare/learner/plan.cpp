// Plans the next fit of a Learner.
#include "tare/learner/plan.h"

#include <new>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/learner/parts.h"
#include "tare/learner/plan_fit.h"
#include "tare/learner/recompute.h"
#include "tare/memory/backend.h"
#include "tare/model/registry.h"

namespace tare {
namespace {

void check(const PlanOptions& options, int64_t batch, int64_t samples) {
  if (options.batch < 0)
    throw ConfigError("learner.plan", "batch must be >= 1, or 0 for the Learner's, got " +
                                          std::to_string(options.batch));
  if (batch > samples) {
    throw ConfigError("learner.plan", "batch " + std::to_string(batch) +
                                          " is larger than the training split of " +
                                          std::to_string(samples) + " samples; lower it");
  }
}

/// Brings another Learner of the same model to where this one is: frozen layers, optimizer state.
std::function<void(Learner&)> like(const Model& model, bool fp8, bool with_state) {
  std::unordered_set<std::string> frozen;
  for (const auto& parameter : model.parameters())
    if (!parameter.tensor.requires_grad()) frozen.insert(parameter.name);
  return [frozen, fp8, with_state](Learner& other) {
    for (const auto& parameter : other.model().parameters())
      if (frozen.contains(parameter.name)) at::Tensor(parameter.tensor).set_requires_grad(false);
    other.model().hold_frozen(fp8);
    if (with_state) other.optimizer().prepare();
  };
}

}  // namespace

PlanRequest Learner::Parts::plan_request(bool with_state) const {
  PlanRequest request{.options = options, .on_host = device.is_cpu()};
  if (const auto& spec = model.spec()) request.model = [spec] { return models::make(*spec); };
  request.train = std::make_shared<BatchAllocations>(data.train, true);
  if (data.valid) request.valid = std::make_shared<BatchAllocations>(data.valid, false);
  request.before = like(model, options.frozen_weights == "fp8", with_state);
  return request;
}

std::optional<int64_t> Learner::Parts::planned_micro_batch(int64_t failed,
                                                           const FitStart& start) const {
  if (!model.spec()) return std::nullopt;
  const GeneratorScope generators(device);
  try {
    const auto target = plan::parse_target(device.str());
    PlanRequest request = plan_request(start.with_state);
    request.options.recompute = recomputing;
    return tare::planned_micro_batch(request, target, target.capacity_bytes - start.allocated_bytes,
                                     failed);
  } catch (const Error& error) {  // then the size is found by trying
    log::debug("no plan of a micro-batch: " + printable(error.what()));
  } catch (const c10::Error& error) {  // out of memory for the samples that it reads
    log::debug("no plan of a micro-batch: " + printable(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
  }
  return std::nullopt;
}

void Learner::Parts::choose_recompute() {
  if (!is_auto(options.recompute) || stand_in) return;
  const GeneratorScope generators(device);
  PlanRequest request = plan_request(!optimizer->state().empty());
  const auto target = plan::parse_target(device.str());
  tare::choose_recompute(request, target,
                         target.capacity_bytes - memory::backend(device).usage().allocated_bytes);
  auto& chosen = request.options.recompute;
  if (chosen == recomputing) return;
  sizes.clear();  // more or less is kept for the backward
  model.set_recompute(chosen);
  recomputing = std::move(chosen);
  log::info("recompute: auto takes " + std::to_string(recomputing.size()) + " of " +
            std::to_string(model.blocks().size()) + " blocks");
}

MemoryPlan Learner::plan(const PlanOptions& options) {
  Parts& p = idle("learner.plan");
  const DatasetPtr& train = p.split(Split::train, "learner.plan");
  const int64_t batch = options.batch > 0 ? options.batch : p.options.batch;
  check(options, batch, train->size());
  if (options.batch == 0 && !options.model) p.check_single_samples("learner.plan");
  const auto target = plan::parse_target(options.device.empty() ? p.device.str() : options.device);
  if (!options.model && !p.model.spec()) {
    return unknown_plan(target, batch,
                        "the model is not from the registry, so it cannot be built a second time; "
                        "give PlanOptions::model");
  }
  PlanRequest request = p.plan_request(p.optimizer && !p.optimizer->state().empty());
  if (options.model) request.model = options.model;
  request.on_host = !target.caches;
  request.options.batch = batch;
  return plan_adapted(std::move(request), target, options.advice);
}

}  // namespace tare

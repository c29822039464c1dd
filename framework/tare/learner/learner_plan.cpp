// Plans the next fit of a Learner.
#include "tare/base/error.h"
#include "tare/learner/learner.h"
#include "tare/plan/next_fit.h"
#include "tare/plan/plan_adapted.h"
#include "tare/plan/plan_fit.h"
#include "tare/train/learner_state.h"

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

}  // namespace

MemoryPlan Learner::plan(const PlanOptions& options) {
  LearnerState& p = idle("learner.plan");
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
  PlanRequest request = request_of(p, stateful_parameters(p), target.machine());
  if (options.model) request.model = options.model;
  if (!options.device.empty())
    request.cards.assign(target.caches ? p.stages.size() : 0,
                         target);  // one like it for each stage
  request.options.batch = batch;
  return plan_adapted(std::move(request), target, options.advice);
}

}  // namespace tare

#include "tare/learner/plan.h"

#include <unordered_set>

#include "tare/base/error.h"
#include "tare/learner/parts.h"
#include "tare/learner/plan_fit.h"
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
std::function<void(Learner&)> like(const Model& model, bool with_state) {
  std::unordered_set<std::string> frozen;
  for (const auto& parameter : model.parameters())
    if (!parameter.tensor.requires_grad()) frozen.insert(parameter.name);
  return [frozen, with_state](Learner& other) {
    for (const auto& parameter : other.model().parameters())
      if (frozen.contains(parameter.name)) at::Tensor(parameter.tensor).set_requires_grad(false);
    if (with_state) other.optimizer().prepare();
  };
}

}  // namespace

MemoryPlan Learner::plan(const PlanOptions& options) {
  Parts& p = idle("learner.plan");
  const DatasetPtr& train = p.split(Split::train, "learner.plan");
  const int64_t batch = options.batch > 0 ? options.batch : p.options.batch;
  check(options, batch, train->size());
  const auto target = plan::parse_target(options.device.empty() ? p.device.str() : options.device);
  if (!options.model && !p.model.spec()) {
    return unknown_plan(target, batch,
                        "the model is not from the registry, so it cannot be built a second time; "
                        "give PlanOptions::model");
  }
  FitSubject subject{
      .model = options.model ? options.model : [&] { return models::make(*p.model.spec()); },
      .options = p.options,
      .on_host = !target.cuda};
  subject.options.batch = batch;
  subject.train = std::make_shared<BatchWork>(train, true);
  if (p.data.valid) subject.valid = std::make_shared<BatchWork>(p.data.valid, false);
  subject.before = like(p.model, p.optimizer && !p.optimizer->state().empty());
  return plan_fit(subject, target, options.advice);
}

}  // namespace tare

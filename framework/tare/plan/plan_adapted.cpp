// Plans a fit with the blocks that it recomputes.
#include "tare/plan/plan_adapted.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/plan/plan_fit.h"
#include "tare/plan/recompute.h"
#include "tare/trace/measurements.h"

namespace tare {
namespace {

using plan::Target;

/// Returns the bytes that the model has at least while it trains; 0 where they are not known before
/// a trace, which then says why.
int64_t bytes_of_weights(const PlanRequest& request) {
  try {
    const plan::MetaScope meta;
    const Model model = request.model();
    int64_t bytes = 0;
    for (const auto& [name, tensor] : model.state()) bytes += static_cast<int64_t>(tensor.nbytes());
    if (request.options.precision == "bf16-true") bytes /= 2;
    return request.options.frozen_weights == "fp8" ? bytes / 4 : bytes;  // at most all of them
  } catch (const plan::NotPlannable&) {
    return 0;
  } catch (const c10::Error&) {
    return 0;
  }
}

/// Returns the plan of a fit whose weights alone do not fit, so that none of its operators is
/// tried.
std::optional<MemoryPlan> refused_for_weights(const PlanRequest& request, const Target& target) {
  const int64_t bytes = bytes_of_weights(request);
  if (bytes <= target.capacity_bytes) return std::nullopt;
  MemoryPlan plan = plan_for(target, request.options.batch);
  plan.start_bytes = plan.reserved_bytes = bytes;
  plan.not_counted = {"gradients", "activations", "the optimizer's state"};
  plan.at = "the weights";
  plan.fits = false;
  return plan;
}

/// Returns the largest batch for which some choice of blocks fits: most with all of them. `all`:
/// the blocks that may be chosen; empty: not asked for yet.
int64_t largest_recomputed(PlanRequest request, const Target& target,
                           std::vector<std::string> all) {
  if (all.empty()) all = recomputable(request);
  if (all == request.options.recompute) return 0;
  request.options.recompute = std::move(all);
  return largest_batch(request, target);
}

}  // namespace

MemoryPlan plan_adapted(PlanRequest request, const Target& target, bool advice) {
  if (auto refused = refused_for_weights(request, target)) return *std::move(refused);
  const bool chosen = is_auto(request.options.recompute);
  auto blocks = choose_recompute(request, target);
  MemoryPlan plan = plan_fit(request, target, advice);
  if (chosen) plan.recompute = request.options.recompute;
  if (chosen && advice && plan.known())
    plan.largest_batch =
        std::max(plan.largest_batch, largest_recomputed(request, target, std::move(blocks)));
  plan::measurements().save();
  return plan;
}

}  // namespace tare

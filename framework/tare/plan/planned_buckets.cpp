// Puts hooks on parameters, which move their gradients into one piece of memory.
#include "tare/plan/planned_buckets.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <map>
#include <utility>

#include "tare/memory/phase.h"
#include "tare/optim/gradient_hook.h"

namespace tare {

class PlannedBuckets::Hook final : public GradientHook {
 public:
  Hook(const PlannedBuckets& owner, at::Tensor place) : owner_(owner), place_(std::move(place)) {}
  void operator()(const at::Tensor& parameter) override {
    if (owner_.is_last_part_) parameter.mutable_grad() = place_;
  }

 private:
  const PlannedBuckets& owner_;
  at::Tensor place_;
};

struct PlannedBuckets::Place {
  at::Tensor parameter{};
  std::unique_ptr<GradientHook> before{};
};

PlannedBuckets::PlannedBuckets() = default;
PlannedBuckets::~PlannedBuckets() = default;

Action PlannedBuckets::before_fit(FitContext& context) {
  const c10::AutoGradMode no_grad(false);
  const memory::Phase phase(memory::PhaseKind::backward);
  std::map<c10::ScalarType, int64_t> elements;
  for (const auto& one : context.learner.model().parameters())
    if (one.tensor.requires_grad()) elements[one.tensor.scalar_type()] += one.tensor.numel();
  std::map<c10::ScalarType, at::Tensor> free;
  for (const auto& [type, count] : elements)
    free[type] = at::empty({count}, at::TensorOptions(type).device(context.learner.device()));
  for (const auto& one : context.learner.model().parameters()) {
    if (!one.tensor.requires_grad()) continue;
    at::Tensor& left = free.at(one.tensor.scalar_type());
    const at::Tensor place = left.narrow(0, 0, one.tensor.numel()).view(one.tensor.sizes());
    left = left.narrow(0, one.tensor.numel(), left.numel() - one.tensor.numel());
    places_.push_back(
        {one.tensor, exchange_hook(one.tensor, std::make_unique<Hook>(*this, place))});
  }
  return Action::proceed;
}

Action PlannedBuckets::after_loss(FitContext& context) {
  is_last_part_ = context.micro_batch + 1 == context.micro_batches;
  return Action::proceed;
}

Action PlannedBuckets::after_backward(FitContext&) {
  is_last_part_ = false;
  return Action::proceed;
}

Action PlannedBuckets::after_fit(FitContext&) {
  for (Place& one : places_) (void)exchange_hook(one.parameter, std::move(one.before));
  places_.clear();
  return Action::proceed;
}

}  // namespace tare

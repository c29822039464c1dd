// PlannedBuckets: the memory in which ranks keep gradients, for the plan of one of them. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Holds memory for all gradients of a fit from its beginning on, and moves each of them there as
/// soon as it is complete, as parallel::DataParallel does.
class PlannedBuckets final : public Callback {
 public:
  PlannedBuckets();
  ~PlannedBuckets() override;
  [[nodiscard]] std::string name() const override { return "planned_buckets"; }
  Action before_fit(FitContext& context) override;
  Action after_loss(FitContext& context) override;
  Action after_backward(FitContext& context) override;
  Action after_fit(FitContext& context) override;

 private:
  class Hook;
  struct Place;
  std::vector<Place> places_;
  bool is_last_part_ = false;
};

}  // namespace tare

// FitProbe: fits done for real on few samples, from which any batch is predicted. Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tare/plan/fit_trace.h"
#include "tare/trace/host_trace.h"

namespace tare {

/// Throws NotPlannable if a model like the request's may be too large for this host.
void require_memory_for(const PlanRequest& request);

/// Predicts fits whose allocations meta tensors do not show. Fits are done on this host, with a
/// model of their own, some samples of the data and the loss and optimizer of the request; the
/// state of LibTorch's generator of the host is put back.
class FitProbe {
 public:
  /// Prepares the probe of a fit; `request` must outlive it. Throws NotPlannable if the model may
  /// be too large for this host.
  explicit FitProbe(const PlanRequest& request);

  /// Returns the trace of a fit with batches of `batch` samples in parts of these sizes. Where no
  /// earlier batch had an epoch of equally cut batches, it does four to eleven fits of few samples.
  /// If their allocations are not affine in the numbers of samples, it does one fit with the
  /// numbers of samples asked for. Meanwhile the host has no budget, which is one for the fit and
  /// not for its plan. Throws NotPlannable if that fit may be too large for this host.
  /// Throws c10::Error for what LibTorch refuses.
  [[nodiscard]] FitTrace of(int64_t batch, const PartSizes& parts);

 private:
  struct Known {
    FitShape shape{};  ///< one that it was probed for
    plan::Section counted{};
    std::optional<plan::AffineTrace> trace{};  ///< unset: the allocations are not affine
    int64_t probed_bytes = 0;                  ///< the peak of the smallest fit
  };
  [[nodiscard]] Known probe(const FitShape& shape) const;
  [[nodiscard]] FitTrace whole_fit(const FitShape& shape, const Known& known) const;

  const PlanRequest& request_;
  std::vector<Known> known_;
};

/// Returns why the fit of the request cannot be done: what LibTorch refuses in its model, loss,
/// metrics or optimizer when it is done on this host with few samples, and with whole batches too.
/// A fit for a card is tried on the host, in float32. Unset: nothing is
/// known against the fit, also where this host has too little memory to try.
[[nodiscard]] std::optional<std::string> refusal_of(const PlanRequest& request);

}  // namespace tare

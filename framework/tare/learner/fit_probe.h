// FitProbe: what fits with few samples, done for real, say of any batch. Internal.
#pragma once

#include <vector>

#include "tare/learner/fit_trace.h"
#include "tare/plan/host_trace.h"

namespace tare {

/// Throws CannotTell if a model of the subject's on this host may be too large for it.
void require_room(const FitSubject& subject);

/// For models that meta tensors cannot tell. The fits are done on this host, with a model of their
/// own, some samples of the data and the loss and optimizer of the subject; the state of LibTorch's
/// generator of the host is put back.
class FitProbe {
 public:
  /// `subject` must outlive it. Throws CannotTell if the model may be too large for this host.
  explicit FitProbe(const FitSubject& subject);

  /// The trace of a fit with that batch. Probes if no batch before had an epoch of the same parts:
  /// four to seven fits. Throws CannotTell if its allocations are not affine in the numbers of
  /// samples.
  [[nodiscard]] FitTrace of(int64_t batch);

 private:
  struct Known {
    FitShape shape{};  ///< one that it was probed for
    plan::Section counted{};
    plan::AffineTrace trace;
  };
  [[nodiscard]] Known probe(const FitShape& shape) const;

  const FitSubject& subject_;
  std::vector<Known> known_;
};

}  // namespace tare

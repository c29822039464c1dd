// SyncBatchNormScope: batch norms whose mean and variance are over the batches of all ranks.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "tare/parallel/group.h"

namespace tare::parallel {

/// Opens a scope in which batch norms that train, called on its thread, normalise by the mean and
/// the variance over the batches of all ranks, and so do their gradients in a backward that begins
/// in the scope. The running statistics are those of all ranks too. The ranks call batch norms in
/// one order; a call exchanges two rows of numbers in the forward and one in the backward. After
/// SyncBatchNorm of PyTorch; the variance is computed from the common mean.
class SyncBatchNormScope {
 public:
  /// Begins the scope; the group outlives it. `counts`: whether this rank's batch counts; one that
  /// does not takes part in the exchanges with no sample.
  SyncBatchNormScope(Group& group, bool counts);
  ~SyncBatchNormScope();
  SyncBatchNormScope(const SyncBatchNormScope&) = delete;
  SyncBatchNormScope& operator=(const SyncBatchNormScope&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace tare::parallel

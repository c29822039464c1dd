// The kinds of optimizers that Tare adds to optimizers::registry(). Internal.
#pragma once

#include "tare/optim/optimizer.h"

namespace tare {

[[nodiscard]] OptimizerKind sgd_kind();
[[nodiscard]] OptimizerKind adam_kind();  ///< Adam and AdamW, by OptimizerOptions::kind
[[nodiscard]] OptimizerKind nadam_kind();
[[nodiscard]] OptimizerKind rmsprop_kind();
[[nodiscard]] OptimizerKind adadelta_kind();
[[nodiscard]] OptimizerKind adagrad_kind();

}  // namespace tare

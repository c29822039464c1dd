// The optimizers for which ATen has no fused kernel: NAdam, RMSprop, Adadelta and Adagrad.
// Internal.
//
// Each is a function of one element and the numbers of its group. On the host it is called in one
// pass over the memory of a parameter, which allocates nothing; elsewhere the formula is written
// with tensors, which take memory meanwhile. Both compute as torch.optim of PyTorch 2 does without
// foreach.
#pragma once

#include <memory>
#include <vector>

#include "tare/optim/fused.h"

namespace tare {

/// `options.kind`: "nadam", "rmsprop", "adadelta" or "adagrad". `with_tensors`: see
/// make_optimizer().
[[nodiscard]] std::unique_ptr<Optimizer> make_elementwise_optimizer(
    const OptimizerOptions& options, std::vector<ParameterGroup> groups, bool with_tensors = false);

}  // namespace tare

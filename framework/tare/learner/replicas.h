// replicated(): a task that computes each batch on copies of the model on several devices.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tare/metric/loss.h"
#include "tare/model/model.h"
#include "tare/train/options.h"

namespace tare {

/// Returns a task for LearnerOptions::task that trains one model on several devices of this
/// process, as PyTorch's DataParallel does. Each step
///
/// - copies the parameters and buffers of the model to a copy of it on each other device,
/// - divides the batch into parts that are nearly equal, one for each device,
/// - computes output, loss and gradients of each part on its device, and
/// - adds up the gradients on the device of the model, weighted by what the loss counts in the
///   parts, so that they are those of the whole batch.
///
/// `make` returns a model like that of the Learner; its weights do not matter. `devices` names the
/// devices, of which the first is that of the Learner; one that is named twice has two parts.
/// Buffers, such as running statistics of batch norms, become those of the first part. The outputs
/// that metrics see are those of all parts, on the first device.
///
/// The copies stay on their devices as long as the task. The first device has all outputs,
/// gradients and the optimizer, so it takes more memory than the others, and waits for them in each
/// step: ranks (docs/distributed.md) are faster. Throws ConfigError for no device, an unknown one,
/// and a loss that resolve() refuses. The task throws ConfigError where the Learner is on another
/// device than the first, and ShapeError for a copy whose parameters differ from those of the
/// model.
[[nodiscard]] Task replicated(std::function<Model()> make, const std::vector<std::string>& devices,
                              const Loss& loss);

}  // namespace tare

// Computes the forward of a model, and names the tensors of an error of devices.
#include "tare/base/error.h"
#include "tare/model/devices.h"
#include "tare/model/model.h"

namespace tare {

Outputs Model::forward(const Batch& batch) const {
  require("model.forward");
  if (!forward_) {
    throw StateError("model.forward", "without a forward of tensors or of a Batch",
                     "give the Learner a Task for such a model");
  }
  try {
    Outputs outputs = forward_(batch);
    check_output_devices("model.forward", *this, batch, outputs);
    return outputs;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    explain_devices("model.forward", *this, batch, error);
    throw;
  }
}

}  // namespace tare

// Operations over tensors of two devices inside a forward: which tensors they are, by name.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <string>

#include "tare/model/model.h"

namespace tare {

/// Throws DeviceError if an error of LibTorch in the model's forward is one of devices: with the
/// names and devices of an input or parameter and of one that lies elsewhere; where all are on one
/// device, of a tensor that the forward made, with LibTorch's own words. Otherwise returns.
void explain_devices(const std::string& where, const Model& model, const Batch& batch,
                     const c10::Error& error);

/// Throws DeviceError if an output is on the meta device and the first input is not: LibTorch
/// computes nothing, and reports nothing, where one operand is there.
void check_output_devices(const std::string& where, const Model& model, const Batch& batch,
                          const Outputs& outputs);

}  // namespace tare

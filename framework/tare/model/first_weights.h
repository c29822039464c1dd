// The file of weights that a model starts from. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/memory/named_tensor.h"

namespace tare::models {

/// Throws what load_weights() would throw, without a copy. `targets`: Model::state() on any device,
/// also meta; `head`: as Family::head.
void check_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                   const std::string& path);

/// Copies the tensors of a safetensors file, a bundle or a file of torch.save into `targets` by
/// name. A prefix that all names of the file have, and the targets do not, is dropped. Float32,
/// bfloat16 and float16 values are converted, and E4M3 ones are dequantised by their scales.
/// Tensors of the head that have another shape in the file keep their values, which a line of the
/// log says. Throws ConfigError for a folder; IoError; FormatError for a tensor that is missing or
/// does not fit; then nothing has been copied.
void load_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                  const std::string& path);

}  // namespace tare::models

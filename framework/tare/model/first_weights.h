// The file of weights that a model starts from. Internal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tare/memory/named_tensor.h"

namespace tare::models {

/// Throws what load_weights() would throw, without a copy. `targets`: Model::state() on any device,
/// also meta; `head`: as Family::head; `rename`: as ModelOptions::rename.
void check_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                   const std::string& path, const std::map<std::string, std::string>& rename);

/// Copies the tensors of a safetensors file, a bundle or a file of torch.save into `targets` by
/// name, after `rename`. A prefix that all names have then, and the targets do not, is dropped.
/// Float32, bfloat16 and float16 values are converted, and E4M3 ones are dequantised by their
/// scales. Tensors of the head that have another shape in the file keep their values, which a line
/// of the log says. Throws ConfigError for a folder, a rule of `rename` that changes no name, and
/// names that become one; IoError; FormatError for a tensor that is missing or does not fit; then
/// nothing has been copied.
void load_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                  const std::string& path, const std::map<std::string, std::string>& rename);

}  // namespace tare::models

// What is in a file of weights, in words: for `tare inspect`.
#pragma once

#include <filesystem>
#include <string>

namespace tare {

/// Describes a bundle, a checkpoint directory or a plain safetensors file: tensors with shape,
/// dtype and bytes, metadata or manifest, and whether it verified or what is wrong with it (a
/// damaged file is described, not thrown). Reads all of it, changes nothing. Text from the file is
/// escaped. Throws IoError for what cannot be read at all, FormatError for a file that is none of
/// the three.
[[nodiscard]] std::string inspect(const std::filesystem::path& path);

}  // namespace tare

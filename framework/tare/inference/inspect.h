// inspect(): describes a bundle, checkpoint or safetensors file, for `tare inspect`.
#pragma once

#include <filesystem>
#include <string>

namespace tare {

/// Describes a bundle, a checkpoint directory or a plain safetensors file: tensors with shape,
/// dtype and bytes, metadata or manifest, and whether it verified or what is wrong with it (damage
/// is described, not thrown). Reads all of it. Text from the file is escaped. Throws IoError if it
/// cannot be read at all, FormatError for a file that is none of the three.
[[nodiscard]] std::string inspect(const std::filesystem::path& path);

}  // namespace tare

// inspect(): describes a bundle, checkpoint or file of weights, for `tare inspect`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/terminal.h"
#include "tare/inference/bundle.h"

namespace tare {

/// Describes a file or folder.
struct Description {
  std::string text{};       ///< lines, or a JSON object, each with a newline at its end
  bool is_damaged = false;  ///< a checksum or a rule of the format is broken
};

/// Describes a tensor of a file.
struct TensorPart {
  std::string name{};            ///< unique in the file
  std::string dtype{};           ///< "float32"
  std::vector<int64_t> shape{};  ///< of any sizes >= 0
  int64_t bytes = 0;             ///< in the file
};

/// Returns the description of a tensor that may be mapped.
[[nodiscard]] TensorPart part_of(const NamedTensor& tensor);

/// Holds what a file of another program's format has, see interchange::read_parts().
struct FileParts {
  std::string kind{};                        ///< "onnx"
  int64_t bytes = 0;                         ///< of all its files
  std::optional<bool> verified{};            ///< unset: there are no hashes to compare with
  std::string problem{};                     ///< what is wrong; empty: nothing
  std::optional<BundleManifest> manifest{};  ///< unset: Tare has not written it
  std::vector<TensorPart> tensors{};         ///< in the order of the file
};

/// Describes such a file, as inspect() does.
[[nodiscard]] Description describe(const std::filesystem::path& path, const FileParts& parts,
                                   size_t width = kAnyWidth);
/// Describes such a file as one JSON object.
[[nodiscard]] Description describe_json(const std::filesystem::path& path, const FileParts& parts);

/// Describes a bundle, a checkpoint directory, a plain safetensors file or a state dict of PyTorch
/// (TorchFile): first a summary (what it is and whether it verified or what is wrong with it,
/// model, input, classes, metrics), then
/// manifest or metadata, and the tensors with shape, dtype and bytes. Damage is described, not
/// thrown, also that of a truncated file, whose tensors are not known, and transforms of a bundle
/// that this program does not have are named. Reads all of it. Text from the file is escaped.
/// Throws IoError if it cannot be read at all, FormatError for a file that is not one of the four.
/// Texts that are longer than `width` columns continue in further lines.
[[nodiscard]] Description inspect(const std::filesystem::path& path, size_t width = kAnyWidth);
/// Returns the description as one JSON object, see docs/formats.md. Text that is not UTF-8 has
/// U+FFFD in it.
[[nodiscard]] Description inspect_json(const std::filesystem::path& path);

}  // namespace tare

// Reads files for other programs: what is in them, and whether it is what was written.
#pragma once

#include <filesystem>
#include <string>

#include "tare/inference/inspect.h"

namespace tare::interchange {

/// Returns `gguf`, `onnx` or `pt2` for a file that begins as one, whoever has written it, and
/// `safetensors` for one that `tare export` has written; empty: it is none of them. An ONNX file of
/// another program is known by its extension. Throws IoError.
[[nodiscard]] std::string format_of(const std::filesystem::path& path);

/// Reads a file of one of these formats: the manifest of Tare, and the tensors, each of which is
/// compared with its hash. Nothing of a graph is computed, and nothing in a file is ever run. The
/// tensors stay in the mapped file, and what is read of the rest is paid for by the bytes of the
/// file. Damage is described by FileParts::problem. Throws IoError.
[[nodiscard]] FileParts read_parts(const std::filesystem::path& path);

/// Whether Tare has written a file of one of these formats, which can be read. Throws IoError.
[[nodiscard]] bool is_ours(const std::filesystem::path& path);

/// Throws FormatError, naming the tensors, for a file of Tare that is not as it was written.
void verify_file(const std::filesystem::path& path);

}  // namespace tare::interchange

// FoundFile: holds what a reader finds in a file, before it is compared with its hashes. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/io.h"
#include "tare/checkpoint/digest.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/inference/inspect.h"
#include "tare/inference/manifest_json.h"

namespace tare::interchange {

inline constexpr const char* kReadFile = "read_file";       // in messages
inline constexpr const char* kSealKey = "tare.seal";        // of the metadata of onnx and gguf
inline constexpr const char* kSealFile = "tare_seal.json";  // below extra/ of pt2
inline constexpr const char* kManifestFile = "tare.json";

/// Holds a tensor and its bytes in the mapped file.
struct FoundTensor {
  TensorPart part{};
  std::span<const std::byte> bytes{};
};

/// Holds what a file has.
struct FoundFile {
  std::list<io::Mapping> mappings{};
  std::optional<checkpoint::SafeTensors> weights{};  ///< of safetensors, in place of the mappings
  std::vector<FoundTensor> tensors{};
  /// Everything but the tensors that have hashes and the hashes themselves.
  std::string rest{};
  bool framed = true;  ///< what holds the parts together is as Tare writes it
  std::optional<checkpoint::Digest> seal{};  ///< unset: another program has written the file
  std::string manifest{};                    ///< JSON; empty: the file has none
};

/// Reads a file of the format. Throws FormatError for one that breaks the rules of the format,
/// IoError.
[[nodiscard]] FoundFile find_gguf(const std::filesystem::path& path);
[[nodiscard]] FoundFile find_onnx(const std::filesystem::path& path);
[[nodiscard]] FoundFile find_pt2(const std::filesystem::path& path);

/// Returns the text of the hashes of a file, which its writer adds.
[[nodiscard]] std::string seal_text(const checkpoint::Digest& seal);
/// Returns the hashes. Throws FormatError for another text.
[[nodiscard]] checkpoint::Digest read_seal(std::string_view text,
                                           const std::filesystem::path& path);
/// Returns names, dtypes and shapes of tensors, in any order, as a text.
[[nodiscard]] std::string outline(const std::vector<TensorPart>& tensors);
/// Returns the hash of the bytes of a tensor on the host.
[[nodiscard]] std::string hash_of(const at::Tensor& tensor);
/// Returns the bytes of a shape with elements of so many bytes; unset: no file has so many, or a
/// size is negative.
[[nodiscard]] std::optional<int64_t> bytes_for(const std::vector<int64_t>& shape, int64_t element);

}  // namespace tare::interchange

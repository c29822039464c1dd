// The header of a safetensors file, checked before it is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tare/checkpoint/tensor_info.h"

namespace tare::checkpoint {

inline constexpr int64_t kMaxHeaderBytes = 100'000'000;  ///< as in safetensors' own reader
inline constexpr int64_t kMaxTensors = 1'000'000;        ///< in one file

/// Holds a header that has passed every check that does not need the data.
struct Header {
  std::vector<TensorInfo> tensors;              ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  int64_t data_start = 0;                       ///< offset of the data in the file
};

/// Parses the header of a safetensors file; `file` is its whole content, `path` is for messages.
/// Lengths are checked before anything is allocated for them. Throws FormatError, naming the tensor
/// or field that breaks a rule.
[[nodiscard]] Header parse_header(std::span<const std::byte> file,
                                  const std::filesystem::path& path);

}  // namespace tare::checkpoint

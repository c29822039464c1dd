// Reads arrays that NumPy has saved (.npy).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tare {

/// Reads a .npy file of version 1 to 3 (numpy.lib.format) as a contiguous tensor: uint8, int8,
/// int16, int32, int64, bool, float16, float32 or float64, little-endian, in the order of C. Throws
/// IoError, also for a file larger than `limit_bytes`; FormatError for another dtype or order, a
/// damaged head, and a file whose size is not that of its array.
[[nodiscard]] at::Tensor read_npy(const std::filesystem::path& path,
                                  int64_t limit_bytes = int64_t{16} << 30);
/// Reads the bytes of such a file; `name` is for messages. Throws as read_npy().
[[nodiscard]] at::Tensor decode_npy(std::string_view bytes, const std::string& name);
/// Returns the name that NumPy has for the dtype of an array that read_npy() has read: "float32".
[[nodiscard]] std::string numpy_dtype(const at::Tensor& array);

}  // namespace tare

// The IDX format of MNIST: a magic number, big-endian dimensions, raw values; plain or gzip.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

#include "tare/data/dataset.h"

namespace tare {

/// Bounds the size of the values, uncompressed.
inline constexpr int64_t kMaxIdxBytes = int64_t{4} << 30;

/// Reads a file of unsigned bytes (type 0x08) with 1 to 4 dimensions as a uint8 tensor; gzip is
/// recognised by its content. Nothing is allocated before the header agrees with the size of the
/// file. Throws FormatError, naming path and part, for a wrong magic number, dimensions that are 0
/// or too large, missing or surplus bytes, a broken gzip stream; IoError.
[[nodiscard]] at::Tensor read_idx(const std::filesystem::path& path,
                                  int64_t limit_bytes = kMaxIdxBytes);

/// Writes a uint8 tensor of 1 to 4 dimensions atomically, with gzip if the name ends in ".gz";
/// equal values give equal bytes. Throws ShapeError, IoError.
void write_idx(const std::filesystem::path& path, const at::Tensor& values);

/// Reads images [N, height, width] and labels [N] as a data set of uint8 [1, height, width] and
/// int64, with the class indices as names. Throws as read_idx, and FormatError if the two files do
/// not match.
[[nodiscard]] DatasetPtr idx_dataset(const std::filesystem::path& images,
                                     const std::filesystem::path& labels);

}  // namespace tare

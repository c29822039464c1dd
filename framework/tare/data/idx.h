// The IDX format of MNIST: a magic number, big-endian dimensions, raw values; plain or gzip.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

#include "tare/data/dataset.h"

namespace tare {

inline constexpr int64_t kMaxIdxBytes = int64_t{4}
                                        << 30;  ///< of values, uncompressed, that is accepted

/// Reads a file of unsigned bytes (type 0x08) with 1 to 4 dimensions, recognising gzip by its
/// content. Nothing is allocated before the header agrees with the size of the file. Throws
/// FormatError naming path and part for a wrong magic number, dimensions that are 0 or too large,
/// missing or surplus bytes, a broken gzip stream; IoError.
[[nodiscard]] at::Tensor read_idx(const std::filesystem::path& path,
                                  int64_t limit_bytes = kMaxIdxBytes);

/// Writes uint8 with 1 to 4 dimensions, whole or not at all; gzip where the name ends in ".gz" (the
/// same bytes for the same values). Throws ShapeError, IoError.
void write_idx(const std::filesystem::path& path, const at::Tensor& values);

/// Images [N, H, W] and labels [N] as a data set of uint8 [1, H, W] and int64, with the class
/// indices as names. Throws what read_idx throws, and FormatError when the two files do not belong
/// together.
[[nodiscard]] DatasetPtr idx_dataset(const std::filesystem::path& images,
                                     const std::filesystem::path& labels);

}  // namespace tare

// Writes the class of each pixel that a model predicts, for `tare predict --masks`.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <set>
#include <string>

#include "tare/cli/predict_place.h"

namespace tare::cli {

/// Writes masks as PNG files of grey levels, of which each is the number of a class.
class MaskFolder {
 public:
  /// Takes the folder, which is made with the first file; empty: none is written.
  explicit MaskFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Whether masks are asked for.
  explicit operator bool() const { return !folder_.empty(); }
  /// Writes the mask of one sample and returns its path: that of the sample below the folder, or
  /// its name alone where it lies elsewhere, and the line where a file has several samples.
  /// `output`: [1, classes, height, width] after the activation; with one class, the pixels above
  /// 0.5 are of class 1. Throws ConfigError for another output, for more than 256 classes, and for
  /// a name that another sample has had; IoError.
  std::filesystem::path write(const SamplePlace& place, const at::Tensor& output);

 private:
  std::filesystem::path folder_;
  std::set<std::filesystem::path> written_;
};

}  // namespace tare::cli

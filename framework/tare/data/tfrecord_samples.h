// TFRecord files as samples with labels, by the names of their features.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/data/dataset.h"

namespace tare {

/// Names the features of an example that make a sample, and sets how they are read.
struct TfSampleOptions {
  std::string input = "image";   ///< feature of a sample: see tfrecord_samples()
  std::string label = "label";   ///< feature of its label
  std::vector<int64_t> shape{};  ///< of a sample; empty: of the first one, numbers in one row
  int64_t channels = 0;          ///< of PNG files: 1 grey, 3 RGB, 0: those of the first one
  int64_t size = 0;  ///< height and width that PNG files are resized to; 0: all must have one size
  std::string fit = "stretch";  ///< how they are resized: stretch | crop | pad, see Resize
  int64_t parallel_reads = 1;   ///< files that are read at a time, >= 1
};

/// Returns the files at the paths: a file is itself, and a folder the files in it whose names have
/// ".tfrec" in them, bytewise by name. Throws ConfigError for a folder without one, at its index in
/// `field`; IoError.
[[nodiscard]] std::vector<std::filesystem::path> tfrecord_files(
    const std::vector<std::string>& paths, const std::string& field);

/// Reads the examples of each part, a list of files, into memory. The feature `input` is one text
/// of bytes, a PNG file or uint8 values of `shape`, then a picture, or a list of numbers, which
/// become float32 of `shape`. The feature `label` is one integer, a class from 0 to 65,535 whose
/// name is its number, or one float. Throws FormatError, naming path and record, for a feature that
/// is missing or of another kind or length; ConfigError for parts that differ in the shape of their
/// samples, and for `channels` where no sample is a PNG file; as tfrecord_dataset() else. A data
/// set for each part, all with the same class names; none for a part without files.
[[nodiscard]] std::vector<DatasetPtr> tfrecord_samples(
    const std::vector<std::vector<std::filesystem::path>>& parts, const TfSampleOptions& options);

}  // namespace tare

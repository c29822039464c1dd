// Reads arrays of NumPy as samples of a bundle's model, for `tare predict`. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tare/inference/bundle.h"

namespace tare::cli {

/// Holds the samples of an array.
struct ArraySamples {
  at::Tensor samples{};  ///< [samples, ...], of the dtype of the bundle's input, or uint8 pictures
  bool is_one = false;   ///< the array is one sample, without a dimension of samples
  /// The samples are pictures, uint8 [channels, height, width], for Predictor::predict_picture().
  bool pictures = false;
};

/// Reads a .npy file for the first input of a model: an array [samples, ...], or one sample alone.
/// The values become what the data set npy makes of them: uint8 arrays of pictures stay as they
/// are, and numbers for an input of floating-point numbers are converted. Throws IoError;
/// FormatError, naming the part of the file, for another shape, a dtype that the model does not
/// take, and a file that read_npy() refuses; ConfigError for a model that was trained on the rows
/// of a table.
[[nodiscard]] ArraySamples read_array(const std::filesystem::path& path,
                                      const BundleManifest& manifest);

/// Does what read_array() does with the bytes of a .npy file; `name` is for messages.
[[nodiscard]] ArraySamples array_from(std::string_view bytes, const std::string& name,
                                      const BundleManifest& manifest);

/// Warns where samples [samples, ...] have numbers of other levels than the inputs of the training.
/// `name`: of their file.
void warn_of_levels(const at::Tensor& samples, const BundleManifest& manifest,
                    const std::string& name);

/// Throws FormatError for a sample, number `number` from 1, with NaN or an infinite number.
void check_finite(const at::Tensor& sample, const std::filesystem::path& path, int64_t number);

}  // namespace tare::cli

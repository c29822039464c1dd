// Reads files, folders and standard input as samples of a bundle's model, for `tare predict`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/cli/predict_truth.h"
#include "tare/inference/predictor.h"

namespace tare::cli {

/// Locates the source of a sample.
struct SamplePlace {
  std::string path{};  ///< "-": standard input
  int64_t line = 0;    ///< from 1, of a file of tensors or an array the sample; 0: the whole file
  std::optional<Truth> truth{};  ///< what the sample is known to be, with PredictInputs::truths
};

/// Sets how the inputs of `tare predict` are read, and where the predictions go.
struct PredictInputs {
  /// Computes the predictions; must outlive this object.
  Predictor& predictor;
  bool text = false;  ///< lines are text, not numbers
  /// Samples that are predicted together at most; unset: as many as fit, see PredictQueue.
  std::optional<int64_t> batch{};
  /// Finds what each sample is known to be, and a sample without it fails; null: nothing is known.
  const Truths* truths = nullptr;
  /// Gets the model's outputs for one sample, each [1, ...].
  std::function<void(const SamplePlace&, const Outputs& predictions)> on_prediction{};
  /// Called inside the handler of a sample, a file or a line that failed; the remaining ones are
  /// read afterwards.
  std::function<void(const SamplePlace&)> on_failure{};
};

/// Predicts every sample of the inputs, in their order. Lines of standard input are predicted as
/// they come. For a model of pictures: a PNG, JPEG or WebP file, a folder
/// (its pictures and those of its subfolders, in bytewise order), a table whose column `path` names
/// pictures relative to its own folder, "-" for a picture or a list of paths on standard input, one
/// a line or with a zero byte behind each. For other models: a file with one sample a line, "-" for
/// such lines on standard input; for a model of tokens also a folder, each of whose text files
/// (.txt) is a sample. For every model, and alone for one of several inputs, a safetensors file: a
/// tensor [samples, ...] for each input under its name, the first under any. For a model of one
/// input that is no row of a table also a .npy file, see read_array(), in a folder, in a list, or
/// on standard input.
void predict_inputs(const PredictInputs& inputs, const std::vector<std::string>& paths);

}  // namespace tare::cli

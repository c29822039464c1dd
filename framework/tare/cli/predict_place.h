// Where the samples of `tare predict` come from, and where their predictions go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

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

}  // namespace tare::cli

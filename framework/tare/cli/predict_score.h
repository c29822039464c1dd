// Score: how well predictions meet what samples are known to be, for `tare predict --score`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tare/cli/predict_truth.h"
#include "tare/inference/predictor.h"
#include "tare/metric/metric.h"

namespace tare::cli {

/// Computes the metrics of predictions: accuracy and the macro average of F1 for classes and for
/// labels, mae, rmse and r2 for numbers, and these of each number where there are several. Neither
/// copied nor moved.
class Score {
 public:
  /// Refers to the manifest, which must outlive it.
  explicit Score(const BundleManifest& manifest);
  Score(const Score&) = delete;
  Score& operator=(const Score&) = delete;

  /// Adds a sample. `predictions`: the model's outputs, each [1, ...]. Throws ConfigError for
  /// outputs that are not those of one class or of some numbers.
  void add(const Outputs& predictions, const Truth& truth);
  /// Returns "120 samples: accuracy 0.975, f1 0.974".
  [[nodiscard]] std::string str();
  /// Returns `{"samples": 120, "failed": 0, "metrics": {"accuracy": 0.975, "f1": 0.974}}`; a figure
  /// without a value is null. `failed`: samples that could not be predicted.
  [[nodiscard]] std::string json(int64_t failed);

 private:
  void compute();

  const BundleManifest& manifest_;
  std::vector<MetricState> metrics_;
  std::vector<at::Tensor> outputs_, targets_;  // of samples that are not counted yet
  int64_t samples_ = 0;
};

}  // namespace tare::cli

// Collects the samples of `tare predict`, so that several are predicted together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tare/cli/predict_place.h"
#include "tare/data/batch.h"

namespace tare::cli {

/// Predicts samples in the order in which they come, those of one shape together.
class PredictQueue {
 public:
  /// Takes where predictions and failures go, see PredictInputs; it must outlive this. Without
  /// PredictInputs::batch the first sample is predicted alone: of what it took beyond the weights
  /// as many samples are predicted together as fit into half of the available memory, at most 64.
  explicit PredictQueue(const PredictInputs& inputs) : inputs_(inputs), most_(inputs.batch) {}

  /// Adds a sample [1, ...], and predicts all that wait where there are enough.
  void add(SamplePlace place, Batch sample);
  /// Predicts the samples that wait. A sample that fails is reported alone; where memory is too
  /// short for all, there are two parts, and fewer at a time from then on.
  void flush();

 private:
  struct Waiting {
    SamplePlace place;
    Batch sample;
  };
  void predict(std::span<const Waiting> waiting);
  [[nodiscard]] int64_t measured(const Waiting& first);

  const PredictInputs& inputs_;
  std::optional<int64_t> most_;  // samples at a time; unset: not measured yet
  std::vector<Waiting> waiting_;
};

}  // namespace tare::cli

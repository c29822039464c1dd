// What a classifier confuses, and the samples that it is most wrong about. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tare {

struct Predictions;

/// A sample by its index in the split, with the loss of its own.
struct WorstSample {
  int64_t index = 0;
  std::string name{};  ///< see Dataset::sample_name()
  std::string label{}, predicted{};
  double probability = 0;  ///< of the predicted class
  double loss = 0;
  std::string picture{};  ///< a PNG file; empty where the samples are no images
};

/// Of a whole split with labels.
struct Classification {
  std::vector<std::string> labels{};
  std::vector<std::vector<int64_t>> counts{};  ///< samples, [label][predicted]
  std::vector<WorstSample> worst{};            ///< highest loss first
};

inline constexpr size_t kMostClasses = 100;  ///< of a Classification
inline constexpr size_t kWorstSamples = 12;

/// Unset where it is no classification into `labels`: outputs other than [samples, labels], targets
/// other than one class a sample, fewer than two labels or more than kMostClasses. A target outside
/// of the labels, such as -100, is not counted.
[[nodiscard]] std::optional<Classification> classification_of(
    const Predictions& predictions, const std::vector<std::string>& labels);

}  // namespace tare

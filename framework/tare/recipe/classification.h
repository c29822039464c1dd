// Computes a classifier's confusion matrix, and the samples with the highest loss. Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tare/report/run_files.h"

namespace tare {

struct Predictions;

inline constexpr size_t kMostClasses = 100;  ///< of a Classification
inline constexpr size_t kWorstSamples = 12;

/// Returns the classification; unset where the outputs are none into `labels`: outputs other than
/// [samples, labels], or [samples, 1] with the probability of the second of two, targets other than
/// one class a sample, fewer than two labels or more than kMostClasses. Without losses there are no
/// worst samples. A target outside of the labels, such as -100, is not counted. Targets in floating
/// point, [samples, labels], say of each label whether a sample has it: there are
/// Classification::label_counts in place of the matrix, and one label is enough.
[[nodiscard]] std::optional<Classification> classification_of(
    const Predictions& predictions, const std::vector<std::string>& labels);

}  // namespace tare

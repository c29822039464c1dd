// The options of the metrics that have a name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tare/config/field.h"
#include "tare/metric/loss.h"

namespace tare {

/// Configures the metric `accuracy`.
struct AccuracyOptions {
  /// Unset: the target is a class label. Else output and target have one shape [n, labels, ...],
  /// and a label is predicted where the sigmoid of its output is above this probability, in [0, 1].
  std::optional<double> threshold{};
};
void visit_fields(auto& visit, AccuracyOptions& o) {
  visit("threshold", o.threshold, config::between(0, 1));
}

/// Configures the metric `top_k`.
struct TopKOptions {
  int64_t k = 5;  ///< how many of the highest scores count, from 1 to the number of classes
};
void visit_fields(auto& visit, TopKOptions& o) { visit("k", o.k, config::at_least(1)); }

/// Configures the metrics `precision`, `recall` and `f1`.
struct AverageOptions {
  /// macro: the mean over the classes that occur; micro: over all samples at once; weighted: the
  /// mean over the classes, each weighted by its samples.
  std::string average = "macro";
  std::optional<double> threshold{};  ///< see AccuracyOptions::threshold
};
void visit_fields(auto& visit, AverageOptions& o) {
  visit("average", o.average, config::one_of({"macro", "micro", "weighted"}));
  visit("threshold", o.threshold, config::between(0, 1));
}

/// Configures the metrics `iou` and `dice`.
struct OverlapOptions {
  /// Label whose elements are not counted, beside -100; a class of this number has no part in the
  /// mean.
  int64_t ignore_index = kIgnoredLabel;
  std::optional<double> threshold{};  ///< see AccuracyOptions::threshold
};
void visit_fields(auto& visit, OverlapOptions& o) {
  visit("ignore_index", o.ignore_index);
  visit("threshold", o.threshold, config::between(0, 1));
}

/// Configures the metric `perplexity`.
struct PerplexityOptions {
  int64_t ignore_index = kIgnoredLabel;  ///< token that is not counted, beside -100
};
void visit_fields(auto& visit, PerplexityOptions& o) { visit("ignore_index", o.ignore_index); }

}  // namespace tare

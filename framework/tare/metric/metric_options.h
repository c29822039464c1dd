// The options of the metrics that have a name. Each has `as`, so that a metric can stand in a list
// several times with other options; a metric without options stands there once.
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
  std::string as{};  ///< name of the metric's column; empty: that of the metric, `accuracy`
};
void visit_fields(auto& visit, AccuracyOptions& o) {
  visit("threshold", o.threshold, config::between(0, 1));
  visit("as", o.as, config::text_or_null());
}

/// Configures the metric `top_k`.
struct TopKOptions {
  int64_t k = 5;     ///< how many of the highest scores count, from 1 to the number of classes
  std::string as{};  ///< see AccuracyOptions::as
};
void visit_fields(auto& visit, TopKOptions& o) {
  visit("k", o.k, config::at_least(1));
  visit("as", o.as, config::text_or_null());
}

/// Configures the metrics `precision`, `recall` and `f1`.
struct AverageOptions {
  /// macro: the mean over the classes that occur; micro: over all samples at once; weighted: the
  /// mean over the classes, each weighted by its samples.
  std::string average = "macro";
  std::optional<double> threshold{};  ///< see AccuracyOptions::threshold
  std::string as{};                   ///< see AccuracyOptions::as
};
void visit_fields(auto& visit, AverageOptions& o) {
  visit("average", o.average, config::one_of({"macro", "micro", "weighted"}));
  visit("threshold", o.threshold, config::between(0, 1));
  visit("as", o.as, config::text_or_null());
}

/// Configures the metrics `iou` and `dice`.
struct OverlapOptions {
  /// Label whose elements are not counted, beside -100; a class of this number has no part in the
  /// mean.
  int64_t ignore_index = kIgnoredLabel;
  std::optional<double> threshold{};  ///< see AccuracyOptions::threshold
  std::string as{};                   ///< see AccuracyOptions::as
};
void visit_fields(auto& visit, OverlapOptions& o) {
  visit("ignore_index", o.ignore_index);
  visit("threshold", o.threshold, config::between(0, 1));
  visit("as", o.as, config::text_or_null());
}

/// Configures the metric `perplexity`.
struct PerplexityOptions {
  int64_t ignore_index = kIgnoredLabel;  ///< token that is not counted, beside -100
  std::string as{};                      ///< see AccuracyOptions::as
};
void visit_fields(auto& visit, PerplexityOptions& o) {
  visit("ignore_index", o.ignore_index);
  visit("as", o.as, config::text_or_null());
}

}  // namespace tare

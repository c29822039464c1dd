// The metrics of Tare that have a name: who adds them to the registry, and helpers. Internal.
#pragma once

#include <string>

#include "tare/metric/mean_metric.h"
#include "tare/metric/metric.h"

namespace tare {

/// Says where an option of a probability lies among the outputs, which are logits.
[[nodiscard]] double logit_of(double probability);

/// Returns NaN, and warns once in the process that the metric has no value, with the reason.
[[nodiscard]] double no_value(const std::string& metric, const std::string& reason);

namespace metrics {
/// Adds accuracy, error_rate, top_k and top_5_accuracy.
void add_class_metrics(Registry& all);
/// Adds precision, recall, f1, balanced_accuracy, iou and dice.
void add_count_metrics(Registry& all);
/// Adds auroc and average_precision.
void add_rank_metrics(Registry& all);
/// Adds mse, mae, rmse, r2 and perplexity.
void add_value_metrics(Registry& all);
}  // namespace metrics

}  // namespace tare

// The metrics of Tare that have a name: what they share, and who adds them to the registry.
// Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/metric/metric.h"
#include "tare/metric/stateful.h"

namespace tare {

/// Is the base of the metrics whose check() finds all that update() refuses.
class NamedMetric : public StatefulMetric {
 public:
  [[nodiscard]] bool checks_all() const override { return true; }
};

/// Computes a mean: a sum over batches, divided by what was counted.
class MeanMetric : public NamedMetric {
 public:
  void update(const at::Tensor& output, const at::Tensor& target) override;
  void merge(const StatefulMetric& other) override;
  [[nodiscard]] double value() const override;
  [[nodiscard]] std::vector<at::Tensor*> state() override { return {&sum_, &counted_}; }

 protected:
  /// Holds the sum over a batch, a float64 scalar, and what it is over: a scalar where it depends
  /// on values, else a number.
  struct Part {
    at::Tensor sum{}, counted{};
    double count = 0;
  };
  [[nodiscard]] virtual Part part(const at::Tensor& output, const at::Tensor& target) const = 0;
  /// Returns the figure that belongs to a mean.
  [[nodiscard]] virtual double finish(double mean) const { return mean; }

 private:
  at::Tensor sum_, counted_;
  double count_ = 0;
};

/// Says where an option of a probability lies among the outputs, which are logits.
[[nodiscard]] double logit_of(double probability);

/// Returns NaN, and warns once in the process that the metric has no value, with the reason.
[[nodiscard]] double no_value(const std::string& metric, const std::string& reason);

namespace metrics {
void add_class_metrics(Registry& all);  ///< adds accuracy, error_rate, top_k, top_5_accuracy
void add_count_metrics(
    Registry& all);                    ///< adds precision, recall, f1, balanced_accuracy, iou, dice
void add_rank_metrics(Registry& all);  ///< adds auroc, average_precision
void add_value_metrics(Registry& all);  ///< adds mse, mae, rmse, r2, perplexity
}  // namespace metrics

}  // namespace tare

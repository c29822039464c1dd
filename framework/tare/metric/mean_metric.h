// The bases of metrics with a name and of means. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

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
  [[nodiscard]] std::vector<std::variant<double*, int64_t*>> counts() override { return {&count_}; }

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

}  // namespace tare

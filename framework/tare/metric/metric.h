// Metrics by name or function, accumulated over batches without waiting for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace tare {

/// (output, target) -> scalar tensor: the mean over the batch's samples.
using MetricFunction =
    std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

/// A name of metric_names(), or a function, which may carry a name of its own for the epochs table.
///
/// | name           | output [batch, ...]  | target                 | value |
/// |----------------|----------------------|------------------------|------------------------------------------|
/// | accuracy       | scores [n, c, ...]   | classes int64 [n, ...] | share of right argmax over
/// dimension 1   | | error_rate     | as accuracy          |                        | 1 - accuracy
/// | | top_5_accuracy | scores [n, c], c >= 5 | classes int64 [n]     | share with the class among
/// the 5 highest | | mae, mse, rmse | values [...]         | values, same shape     | over all
/// elements; rmse: root of the whole mse |
struct Metric : std::variant<std::string, MetricFunction> {
  using std::variant<std::string, MetricFunction>::variant;
  Metric(std::string name, MetricFunction function)
      : std::variant<std::string, MetricFunction>(std::move(function)), label(std::move(name)) {}

  std::string label = {};  ///< of a function; empty: "metric"
};

/// A running metric. The sum lives on the device of the outputs and is kept in double, so that
/// counts are exact and other values do not depend (beyond 1e-12, relative) on how the samples were
/// cut into batches; a function's mean is weighted by its samples. Not thread-safe.
class MetricState {
 public:
  /// Throws ConfigError for an unknown name (with the nearest one) and for an empty function.
  explicit MetricState(const Metric& metric);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Forgets everything and frees the sum.
  void reset();
  /// Adds a batch: output [batch, ...], target [batch, ...]. Does not wait for the device and keeps
  /// no graph. Throws ShapeError where the table above is not met.
  void update(const at::Tensor& output, const at::Tensor& target);
  /// The value over everything since reset(); NaN before the first update. Waits for the device.
  [[nodiscard]] double value() const;
  [[nodiscard]] int64_t count() const {
    return count_;
  }  ///< samples or elements the mean goes over
  [[nodiscard]] const at::Tensor& sum() const {
    return sum_;
  }  ///< scalar, undefined before the first update: for ledgers

 private:
  std::string name_;
  std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target, int64_t& count)>
      batch_sum_;
  std::function<double(double mean)> finish_;  // empty: the mean itself
  at::Tensor sum_;
  int64_t count_ = 0;
};

/// Sorted names of the built-in metrics.
[[nodiscard]] std::vector<std::string> metric_names();

}  // namespace tare

// Metrics by name or function, accumulated over batches without waiting for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/metric/loss.h"

namespace tare {

/// Maps (output, target) to a scalar tensor: the mean over the batch's samples.
using MetricFunction =
    std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

/// Holds a name of metric_names(), or a function, with or without a name for the epochs table.
///
/// | name           | output                | target                 | value                      |
/// |----------------|-----------------------|------------------------|----------------------------|
/// | accuracy       | scores [n, c, ...]    | classes int64 [n, ...] | share of right argmax      |
/// | error_rate     | scores [n, c, ...]    | classes int64 [n, ...] | 1 - accuracy               |
/// | top_5_accuracy | scores [n, c], c >= 5 | classes int64 [n]      | share with target in top 5 |
/// | mae, mse, rmse | values [...]          | values, same shape     | mean over all elements     |
///
/// The argmax is over dimension 1 (c). Labels of -100 are not counted, as by the losses. A function
/// whose mean is not over the samples comes with what it counts, as a Loss does. rmse is the root
/// of the mse over everything, not a mean of roots.
struct Metric : std::variant<std::string, MetricFunction> {
  using std::variant<std::string, MetricFunction>::variant;
  /// Makes a metric by name with its options, as a recipe has it.
  Metric(config::Choice named)
      : std::variant<std::string, MetricFunction>(std::move(named.name)),
        options(std::move(named.options)) {}
  /// Makes a metric of a function whose mean is over the samples, and of the name that rows and
  /// reports give it.
  Metric(std::string name, MetricFunction function)
      : std::variant<std::string, MetricFunction>(std::move(function)), label(std::move(name)) {}
  /// Makes a metric of a function whose mean is over what `counts` returns, and of the name of the
  /// metric.
  Metric(std::string name, MetricFunction function, CountFunction counts)
      : Metric(std::move(name), std::move(function)) {
    counted = std::move(counts);
  }
  /// Makes a metric of a function object that lists its tensors by `void account(Ledger&) const`.
  template <class F>
  requires Accounting<F> Metric(std::string name, const std::shared_ptr<F>& function)
      : std::variant<std::string, MetricFunction>(
            MetricFunction([function](const at::Tensor& output, const at::Tensor& target) {
              return (*function)(output, target);
            })),
        label(std::move(name)),
        account([function](Ledger& all) { function->account(all); }) {}

  config::Node options = config::Node::map();  ///< of a named metric that a program adds
  std::string label = {};                      ///< of a function; empty: "metric"
  CountFunction counted = {};                  ///< of a function; empty: the samples
  /// Adds the tensors that the function holds to the Learner's ledger; may be empty.
  std::function<void(Ledger&)> account{};
};

/// Reads a name, or a name with its options: `{quantile: {share: 0.9}}`. Whether a metric has the
/// name is checked where it is made. Throws ConfigError for an unknown option, with the nearest
/// one, and for a value that is not allowed.
void from_node(const config::Node& node, Metric& value);
/// Returns the name, with the options if there are some; null for a function.
[[nodiscard]] config::Node to_node(const Metric& value);

namespace metrics {
/// Holds the metrics that have a name. A program adds its own:
///   metrics::registry().add("bias", "mean of output less target",
///                           [] { return Metric("bias", mean_difference); });
/// or with options: `metrics::registry().add<QuantileOptions>("quantile", "...", quantile)`.
using Registry = config::Registry<Metric()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
}  // namespace metrics

/// Accumulates a metric over batches. The sum is a double on the device of the outputs, so that
/// counts are exact and other values depend on the batch size by less than 1e-12 (relative); a
/// function's mean is weighted by what it counts. Not thread-safe.
class MetricState {
 public:
  /// Throws ConfigError for an unknown name (with the nearest one) and for an empty function.
  explicit MetricState(const Metric& metric);

  /// Returns the metric's name in rows and reports.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Appends to its name, such as the name of the target that it is over.
  void add_to_name(const std::string& text) { name_ += text; }
  /// Starts again from zero and frees the sum.
  void reset();
  /// Throws what update() throws for the shapes and dtypes of a batch, and computes nothing. With
  /// `try_function` it also calls a metric that is a function, and drops the value.
  void check(const at::Tensor& output, const at::Tensor& target, bool try_function = false) const;
  /// Adds a batch: output [batch, ...], target [batch, ...]. Does not wait for the device and keeps
  /// no graph. Throws ShapeError for shapes or dtypes other than the table's.
  void update(const at::Tensor& output, const at::Tensor& target);
  /// Adds what another state of the same metric has seen, which must not be updated any more: its
  /// sums may be shared. Allocates nothing.
  void merge(const MetricState& other);
  /// Returns the value over all batches since reset(); NaN where nothing was counted and for meta
  /// tensors. Waits for the device.
  [[nodiscard]] double value() const;
  /// Returns what the mean is over: samples, elements or labels, or the sum of their weights. Waits
  /// for the device.
  [[nodiscard]] double count() const;
  /// Returns scalars on the device of the outputs, for ledgers; undefined before the first update,
  /// and `counted` where the shapes determine their number.
  [[nodiscard]] const at::Tensor& sum() const { return sums_.sum; }
  /// Returns what `sum` is over; see sum().
  [[nodiscard]] const at::Tensor& counted() const { return sums_.counted; }

 private:
  // The number is `count` or, for labels of which some may be ignored, in `counted`.
  struct Sums {
    at::Tensor sum{}, counted{};
    double count = 0;
  };
  void add(const Sums& other);
  void use_name(const config::Choice& choice);
  void use_function(const Metric& metric);
  void use_kind(const std::string& name);
  [[nodiscard]] Sums sums_of(const at::Tensor& output, const at::Tensor& target) const;

  std::string name_;
  bool is_function_ = false;
  std::function<void(const at::Tensor& output, const at::Tensor& target)> check_;
  std::function<Sums(const at::Tensor& output, const at::Tensor& target)> batch_sums_;  // checked
  std::function<double(double mean)> finish_;  // empty: the mean itself
  Sums sums_;
};

/// Returns the names in metrics::registry(), sorted.
[[nodiscard]] std::vector<std::string> metric_names();

}  // namespace tare

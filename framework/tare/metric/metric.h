// Metrics by name, by function or with a state, accumulated over batches without waiting for the
// device.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric_options.h"
#include "tare/metric/stateful.h"

namespace tare {

/// Maps (output, target) to a scalar tensor: the mean over the batch's samples.
using MetricFunction =
    std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

/// Holds a name of metric_names(), alone or with its options, a function, or a metric with a state;
/// the latter two have a name for the epochs table.
///
/// | name                                 | output             | target                 |
/// |--------------------------------------|--------------------|------------------------|
/// | accuracy, error_rate, top_k,         | scores             | classes int64 [n, ...] |
/// | top_5_accuracy, precision, recall,   | [n, c, ...]        |                        |
/// | f1, balanced_accuracy, iou, dice     |                    |                        |
/// | accuracy, precision, recall, f1,     | logits             | 0 or 1, floating, same |
/// | iou, dice with a `threshold`         | [n, labels, ...]   | shape                  |
/// | auroc, average_precision             | scores [n, c]      | classes int64 [n]      |
/// | auroc, average_precision             | logits [n, labels] | 0 or 1, floating, same |
/// | perplexity                           | logits [n, c, ...] | classes int64 [n, ...] |
/// | mae, mse, rmse, r2                   | values [...]       | values, same shape     |
///
/// Classes are dimension 1 (c). Labels of -100 are not counted, as by the losses. Each value is
/// over everything at once, not a mean of values of batches. A function whose mean is not over the
/// samples comes with what it counts, as a Loss does.
struct Metric : std::variant<std::string, MetricFunction> {
  using std::variant<std::string, MetricFunction>::variant;
  /// Makes a metric by name with its options, as a recipe has it.
  Metric(config::Choice named)
      : std::variant<std::string, MetricFunction>(std::move(named.name)),
        options(std::move(named.options)) {}
  /// Makes a metric by name with the options of that metric.
  template <config::Options O>
  Metric(std::string name, const O& of_name)
      : std::variant<std::string, MetricFunction>(std::move(name)),
        options(config::to_node(of_name)) {}
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
  /// Makes a metric with a state, see StatefulMetric; `metric` is copied for each validation.
  template <std::derived_from<StatefulMetric> M>
  Metric(std::string name, M metric)
      : std::variant<std::string, MetricFunction>(MetricFunction()),
        label(std::move(name)),
        stateful(std::move(metric)) {}
  /// Makes a metric of a function object that lists its tensors by `void account(Ledger&) const`.
  template <class F>
  requires Accounting<F> Metric(std::string name, const std::shared_ptr<F>& function)
      : std::variant<std::string, MetricFunction>(
            MetricFunction([function](const at::Tensor& output, const at::Tensor& target) {
              return (*function)(output, target);
            })),
        label(std::move(name)),
        account([function](Ledger& all) { function->account(all); }) {}

  config::Node options = config::Node::map();  ///< of a named metric; a missing one has its default
  std::string label = {};                      ///< of a function or a state; empty: "metric"
  CountFunction counted = {};                  ///< of a function; empty: the samples
  MetricObject stateful = {};                  ///< in place of a function
  /// Adds the tensors that the function holds to the Learner's ledger; may be empty.
  std::function<void(Ledger&)> account{};
};

/// Reads a name, or a name with its options: `{quantile: {share: 0.9}}`. Whether a metric has the
/// name is checked where it is made. Throws ConfigError for an unknown option, with the nearest
/// one, and for a value that is not allowed.
void from_node(const config::Node& node, Metric& value);
/// Returns the name alone where all options have their defaults; null for a metric without a name.
[[nodiscard]] config::Node to_node(const Metric& value);
/// Returns the name of the metric's column in tables: its option `as` if it has one, else its name;
/// "metric" for a function without a name. Does not check that there is such a metric.
[[nodiscard]] std::string column_of(const Metric& metric);

namespace metrics {
/// Holds the metrics that have a name. A program adds its own:
///   metrics::registry().add("bias", "computes the mean of output less target",
///                           [] { return Metric("bias", Bias()); });
/// or with options: `metrics::registry().add<QuantileOptions>("quantile", "...", quantile)`.
using Registry = config::Registry<Metric()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process
/// Returns the metric as bundles store it: its name where all options have their defaults, else
/// its name with the options that have other values, `{top_k: {k: 3}}`; empty for a metric without
/// a name. Throws ConfigError for an unknown name or option.
[[nodiscard]] std::string text_of(const Metric& metric);
/// Returns the metric of such a text. Throws ConfigError for a text that cannot be read.
[[nodiscard]] Metric from_text(const std::string& text);
}  // namespace metrics

/// Accumulates a metric over batches. Sums are float64 on the device of the outputs, so that counts
/// are exact and other values depend on the batch size by less than 1e-12 (relative); a function's
/// mean is weighted by what it counts. A copy shares the tensors of the state. Not thread-safe.
class MetricState {
 public:
  /// Throws ConfigError for an unknown name (with the nearest one), an option that is not allowed,
  /// and an empty function.
  explicit MetricState(const Metric& metric);

  /// Returns the metric's name in rows and reports.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Appends to its name, such as the name of the target that it is over.
  void add_to_name(const std::string& text) { name_ += text; }
  /// Returns whether a lower value is better; unset for a function, of which this is unknown.
  [[nodiscard]] std::optional<bool> lower_is_better() const;
  /// Starts again from zero and frees the state.
  void reset();
  /// Announces how many samples the updates will bring, see StatefulMetric::expect().
  void expect(int64_t samples) { now_->expect(samples); }
  /// Throws what update() throws for the shapes and dtypes of a batch, and computes nothing. With
  /// `try_update` it also tries a metric whose own check does not find everything, such as a
  /// function, and drops the value.
  void check(const at::Tensor& output, const at::Tensor& target, bool try_update = false) const;
  /// Adds a batch: output [batch, ...], target [batch, ...]. Does not wait for the device and keeps
  /// no graph. Throws ShapeError for shapes or dtypes other than the table's, ConfigError for an
  /// option that does not fit the output.
  void update(const at::Tensor& output, const at::Tensor& target);
  /// Adds what another state of the same metric has seen, which must not be used any more: its
  /// tensors may be shared.
  void merge(const MetricState& other);
  /// Returns the tensors of the state, undefined before the first update, so that another process
  /// can continue with them by with_state(). Throws ConfigError for a metric whose value does not
  /// follow from the tensors alone, see StatefulMetric.
  [[nodiscard]] std::vector<at::Tensor> state() const;
  /// Returns this metric with the state of another process, as state() gives it there.
  [[nodiscard]] MetricState with_state(const std::vector<at::Tensor>& state) const;
  /// Returns the value over all batches since reset(); NaN where nothing was counted and for meta
  /// tensors. Waits for the device.
  [[nodiscard]] double value() const;
  /// Adds the tensors of the state, on the device of the outputs, to a ledger.
  void account(Ledger& all) const;

 private:
  void use(const Metric& metric);
  void use_name(const config::Choice& choice);

  std::string name_, where_;  // where_ begins messages
  bool is_function_ = false, updated_ = false;
  MetricObject start_, now_;
};

/// Returns the names in metrics::registry(), sorted.
[[nodiscard]] std::vector<std::string> metric_names();

}  // namespace tare

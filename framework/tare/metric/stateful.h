// Metrics with a state: what a metric of Tare or of a program derives from.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tare/memory/accountable.h"

namespace tare {

/// Is the base of metrics that keep a state over the batches of a validation, such as sums. Copies
/// are made of a metric as it was constructed, so all that update() changes are members: tensors
/// that state() lists and, where merge() is overridden, numbers as well. Each batch is counted by a
/// copy of its own, so that a batch that memory was refused for is not counted twice. Not
/// thread-safe.
///
///   class Bias final : public StatefulMetric {  // the mean of output less target
///    public:
///     void update(const at::Tensor& output, const at::Tensor& target) override {
///       add(sum_, (output - target).sum(at::kDouble));
///       add(count_, at::full({}, target.numel(), sum_.options()));
///     }
///     double value() const override { return number(sum_) / number(count_); }
///     std::vector<at::Tensor*> state() override { return {&sum_, &count_}; }
///
///    private:
///     at::Tensor sum_, count_;
///   };
///   LearnerOptions options{.metrics = {Metric("bias", Bias())}};
class StatefulMetric {
 public:
  virtual ~StatefulMetric() = default;

  /// Throws ShapeError, DeviceError or ConfigError for an output and a target that update() does
  /// not take, computes nothing and does not wait for the device. By default it checks that both
  /// are tensors [batch, ...] of one batch on one device. `where` begins the message.
  virtual void check(const std::string& where, const at::Tensor& output,
                     const at::Tensor& target) const;
  /// Whether check() finds all that update() refuses; else a fit tries update() with its first
  /// batch, and drops what comes of it.
  [[nodiscard]] virtual bool checks_all() const { return false; }
  /// Adds a batch: output [batch, ...], target [batch, ...], checked, without a graph. It should
  /// not wait for the device, and in a plan it gets meta tensors: item() and operators whose result
  /// has a size that depends on values do not work there.
  virtual void update(const at::Tensor& output, const at::Tensor& target) = 0;
  /// Adds what `other`, of the same type, has seen; its tensors may be taken over. By default every
  /// tensor of state() is added to its counterpart.
  virtual void merge(const StatefulMetric& other);
  /// Returns the value over all that was added; NaN where it cannot be computed. Waits for the
  /// device. Called only with something added, and never with meta tensors.
  [[nodiscard]] virtual double value() const = 0;
  /// Returns the tensors that update() changes, undefined before the first update: what the ledger
  /// lists and what a reset frees.
  [[nodiscard]] virtual std::vector<at::Tensor*> state() = 0;
  /// Returns what state() returns, to read.
  [[nodiscard]] std::vector<const at::Tensor*> tensors() const;
  /// Returns the numbers that update() changes beside state(), with which ranks that train together
  /// exchange what each has seen. Their merge() is overridden.
  [[nodiscard]] virtual std::vector<std::variant<double*, int64_t*>> counts() { return {}; }
  /// Called before the first update with the number of samples to come, so that a metric that keeps
  /// something of each sample allocates once.
  virtual void expect(int64_t /*samples*/) {}
  /// Whether a lower value is better, for callbacks that look for the best epoch.
  [[nodiscard]] virtual bool lower_is_better() const { return false; }

 protected:
  StatefulMetric() = default;
  StatefulMetric(const StatefulMetric&) = default;  ///< shares the tensors of the state
  /// Shares the tensors of the state.
  StatefulMetric& operator=(const StatefulMetric&) = default;

  /// Adds a new tensor, which must share no memory with another one, to a tensor of the state.
  static void add(at::Tensor& sum, const at::Tensor& more);
  /// Returns a scalar tensor as a number. Waits for the device.
  [[nodiscard]] static double number(const at::Tensor& scalar);
  /// Returns the elements of a float64 tensor. Waits for the device.
  [[nodiscard]] static std::vector<double> numbers(const at::Tensor& tensor);
};

/// Holds a StatefulMetric by value: a copy has a copy of it, which shares the tensors of the state.
class MetricObject {
 public:
  MetricObject() = default;  ///< holds none
  /// Holds a copy of a metric.
  template <class M>
  requires(std::derived_from<M, StatefulMetric>&& std::copy_constructible<M>) explicit MetricObject(
      M metric)
      : object_(std::make_unique<M>(std::move(metric))), copy_([](const StatefulMetric& from) {
          return std::unique_ptr<StatefulMetric>(std::make_unique<M>(static_cast<const M&>(from)));
        }) {}
  /// Holds a copy of what the other holds.
  MetricObject(const MetricObject& other)
      : object_(other.object_ ? other.copy_(*other.object_) : nullptr), copy_(other.copy_) {}
  /// Holds a copy of what the other holds, in place of its own.
  MetricObject& operator=(const MetricObject& other) {
    if (this != &other) *this = MetricObject(other);
    return *this;
  }
  MetricObject(MetricObject&&) noexcept = default;             ///< takes what the other holds
  MetricObject& operator=(MetricObject&&) noexcept = default;  ///< takes what the other holds
  ~MetricObject() = default;

  explicit operator bool() const { return object_ != nullptr; }       ///< whether it holds a metric
  StatefulMetric* operator->() { return object_.get(); }              ///< returns what it holds
  const StatefulMetric* operator->() const { return object_.get(); }  ///< returns what it holds
  StatefulMetric& operator*() { return *object_; }                    ///< needs one that it holds
  const StatefulMetric& operator*() const { return *object_; }        ///< needs one that it holds

 private:
  std::unique_ptr<StatefulMetric> object_;
  std::unique_ptr<StatefulMetric> (*copy_)(const StatefulMetric&) = nullptr;
};

}  // namespace tare

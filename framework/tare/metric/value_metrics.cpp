// The metrics of values and of losses: mse, mae, rmse, r2, perplexity.
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <cmath>

#include "tare/metric/check.h"
#include "tare/metric/metric_options.h"
#include "tare/metric/named.h"

namespace tare {
namespace {

using at::Tensor;

/// Is the base of the mean errors over all elements.
class MeanError : public MeanMetric {
 public:
  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    check_same_shape(where, output, target);
  }
  [[nodiscard]] bool lower_is_better() const override { return true; }

 protected:
  [[nodiscard]] Part part(const Tensor& output, const Tensor& target) const override {
    const Tensor error = output.to(at::kDouble).sub(target);
    return {.sum = size_of(error).sum(), .count = static_cast<double>(target.numel())};
  }
  /// Returns what an error adds to the sum.
  [[nodiscard]] virtual Tensor size_of(const Tensor& error) const { return error.square(); }
};

class Mae final : public MeanError {
 protected:
  [[nodiscard]] Tensor size_of(const Tensor& error) const override { return error.abs(); }
};

class Rmse final : public MeanError {
 protected:
  [[nodiscard]] double finish(double mean) const override { return std::sqrt(mean); }
};

/// The share of the variance of the targets that the outputs explain, by element of a sample, then
/// the mean over the elements. Means and squares are merged as by Chan, Golub and LeVeque 1983,
/// Algorithms for Computing the Sample Variance, section 2, so that targets far from 0 lose no
/// digits.
class R2 final : public NamedMetric {
 public:
  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    check_same_shape(where, output, target);
  }

  void update(const Tensor& output, const Tensor& target) override {
    const Tensor values = target.reshape({target.size(0), -1}).to(at::kDouble);
    R2 batch;
    batch.count_ = static_cast<double>(values.size(0));
    batch.mean_ = values.sum(0).div(batch.count_);
    batch.spread_ = values.sub(batch.mean_).square().sum(0);
    batch.rest_ = values.sub(output.reshape(values.sizes())).square().sum(0);
    merge(batch);
  }

  void merge(const StatefulMetric& other) override {
    const auto& more = static_cast<const R2&>(other);
    if (more.count_ == 0) return;
    add(rest_, more.rest_);
    if (count_ == 0) {
      mean_ = more.mean_;
      spread_ = more.spread_;
    } else {
      const double all = count_ + more.count_;
      const Tensor apart = more.mean_.sub(mean_);
      spread_.add_(more.spread_).add_(apart.square(), count_ * more.count_ / all);
      mean_.add_(apart, more.count_ / all);
    }
    count_ += more.count_;
  }

  [[nodiscard]] double value() const override {
    if (count_ < 2) return no_value("r2", "it needs two samples");
    const auto rest = numbers(rest_), spread = numbers(spread_);
    double sum = 0;
    for (size_t i = 0; i < rest.size(); ++i) sum += of_element(rest[i], spread[i]);
    return sum / static_cast<double>(rest.size());
  }
  [[nodiscard]] std::vector<Tensor*> state() override { return {&mean_, &spread_, &rest_}; }
  [[nodiscard]] std::vector<std::variant<double*, int64_t*>> counts() override { return {&count_}; }

 private:
  // Targets that are all equal have no variance to explain: 1 where they are met, else 0, as
  // scikit-learn has it.
  static double of_element(double rest, double spread) {
    if (spread > 0) return 1 - rest / spread;
    return rest > 0 ? 0 : 1;
  }

  double count_ = 0;
  Tensor mean_, spread_, rest_;  // float64 [elements]: of the targets, and squared errors
};

/// The exponential of the mean cross-entropy of tokens or other class labels.
class Perplexity final : public MeanMetric {
 public:
  explicit Perplexity(const PerplexityOptions& options) : ignored_(options.ignore_index) {}

  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    check_classes(where, output, target);
  }
  [[nodiscard]] bool lower_is_better() const override { return true; }

 protected:
  [[nodiscard]] Part part(const Tensor& output, const Tensor& target) const override {
    Tensor label = target;
    if (ignored_ != kIgnoredLabel) label = label.masked_fill(label.eq(ignored_), kIgnoredLabel);
    const Tensor each = at::cross_entropy_loss(output, label, {}, at::Reduction::None,
                                               kIgnoredLabel, /*label_smoothing=*/0);
    return {.sum = each.sum(at::kDouble), .counted = label.ne(kIgnoredLabel).sum(at::kDouble)};
  }
  [[nodiscard]] double finish(double mean) const override { return std::exp(mean); }

 private:
  int64_t ignored_;
};

}  // namespace

namespace metrics {

void add_value_metrics(Registry& all) {
  all.add("mae", "computes the mean absolute error", [] { return Metric("mae", Mae()); });
  all.add("mse", "computes the mean squared error", [] { return Metric("mse", MeanError()); });
  all.add("rmse", "computes the root of the mean squared error",
          [] { return Metric("rmse", Rmse()); });
  all.add("r2", "computes the share of the targets' variance that the outputs explain",
          [] { return Metric("r2", R2()); });
  all.add<PerplexityOptions>(
      "perplexity", "computes the exponential of the mean cross-entropy of tokens",
      [](const PerplexityOptions& o) { return Metric("perplexity", Perplexity(o)); });
}

}  // namespace metrics
}  // namespace tare

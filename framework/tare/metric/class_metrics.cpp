// The shares of right predictions: accuracy, error_rate, top_k, top_5_accuracy.
#include <tuple>

#include "tare/base/error.h"
#include "tare/metric/check.h"
#include "tare/metric/metric_options.h"
#include "tare/metric/named.h"

namespace tare {
namespace {

using at::Tensor;

class Accuracy : public MeanMetric {
 public:
  explicit Accuracy(const AccuracyOptions& options = {}) : threshold_(options.threshold) {}

  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    threshold_ ? check_same_shape(where, output, target) : check_classes(where, output, target);
  }

 protected:
  [[nodiscard]] Part part(const Tensor& output, const Tensor& target) const override {
    if (threshold_) return of_all_labels(output, target);
    const Tensor scores = is_one_score(output, target) ? two_scores(output) : output;
    return {.sum = scores.argmax(1).eq(target).sum(at::kDouble),  // -100 equals no index
            .counted = target.ne(kIgnoredLabel).sum(at::kDouble)};
  }

 private:
  /// A sample is right where all of its labels are.
  [[nodiscard]] Part of_all_labels(const Tensor& output, const Tensor& target) const {
    Tensor right = output.gt(logit_of(*threshold_)).eq(target.gt(0.5));
    if (right.dim() > 1) right = right.sum(1).eq(output.size(1));
    return {.sum = right.sum(at::kDouble), .count = static_cast<double>(right.numel())};
  }

  std::optional<double> threshold_;
};

class ErrorRate final : public Accuracy {
 public:
  [[nodiscard]] bool lower_is_better() const override { return true; }

 protected:
  [[nodiscard]] double finish(double mean) const override { return 1 - mean; }
};

class TopK : public MeanMetric {
 public:
  explicit TopK(const TopKOptions& options) : k_(options.k) {}

  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    check_classes(where, output, target);
    const int64_t classes = is_one_score(output, target) ? 2 : output.size(1);
    if (k_ > classes)
      throw ConfigError("metric", "top_k.k", "is more than the model has classes",
                        "at most " + std::to_string(classes), std::to_string(k_));
  }

 protected:
  [[nodiscard]] Part part(const Tensor& output, const Tensor& target) const override {
    const Tensor scores = is_one_score(output, target) ? two_scores(output) : output;
    const Tensor best = std::get<1>(scores.topk(k_, /*dim=*/1, /*largest=*/true, /*sorted=*/false));
    return {.sum = best.eq(target.unsqueeze(1)).sum(at::kDouble),
            .counted = target.ne(kIgnoredLabel).sum(at::kDouble)};
  }

  int64_t k_;
};

class TopFive final : public TopK {
 public:
  TopFive() : TopK(TopKOptions{.k = 5}) {}
  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    check_classes(where, output, target, k_);
  }
};

}  // namespace

namespace metrics {

void add_class_metrics(Registry& all) {
  all.add<AccuracyOptions>(
      "accuracy", "computes the share of samples whose highest score is that of their class",
      [](const AccuracyOptions& o) { return Metric("accuracy", Accuracy(o)); });
  all.add("error_rate", "computes 1 less the accuracy",
          [] { return Metric("error_rate", ErrorRate()); });
  all.add("top_5_accuracy",
          "computes the share of samples whose class is among the five highest scores",
          [] { return Metric("top_5_accuracy", TopFive()); });
  all.add<TopKOptions>("top_k",
                       "computes the share of samples whose class is among the k highest scores",
                       [](const TopKOptions& o) { return Metric("top_k", TopK(o)); });
}

}  // namespace metrics
}  // namespace tare

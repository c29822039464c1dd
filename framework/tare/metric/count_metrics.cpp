// The metrics of counts by class: precision, recall, f1, balanced_accuracy, iou, dice.
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tare/metric/check.h"
#include "tare/metric/metric_options.h"
#include "tare/metric/named.h"

namespace tare {
namespace {

using at::Tensor;

/// Holds what was counted of one class, or of one label of several.
struct Counts {
  double right = 0;      ///< predicted and there
  double predicted = 0;  ///< predicted
  double there = 0;      ///< in the target
};

// A figure without anything to divide by is 0, as scikit-learn's.
double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
double precision(const Counts& c) { return ratio(c.right, c.predicted); }
double recall(const Counts& c) { return ratio(c.right, c.there); }
double f1(const Counts& c) { return ratio(2 * c.right, c.predicted + c.there); }
double iou(const Counts& c) { return ratio(c.right, c.predicted + c.there - c.right); }

using Figure = double (*)(const Counts& of_class);

/// Returns the figure of all classes together.
double micro(Figure figure, const std::vector<Counts>& all) {
  Counts sum;
  for (const Counts& each : all) {
    sum.right += each.right;
    sum.predicted += each.predicted;
    sum.there += each.there;
  }
  return figure(sum);
}

/// Returns the mean over classes, each with its samples as its weight, or with 1; see `evenly`.
double mean(Figure figure, const std::vector<Counts>& all, bool evenly) {
  double sum = 0, weights = 0;
  for (const Counts& each : all) {
    const double weight = evenly ? 1 : each.there;
    sum += weight * figure(each);
    weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}

/// Counts predictions and targets by class or label, in float64 on the device.
class CountMetric : public NamedMetric {
 public:
  /// `of_both`: with one output for two classes both are counted, else class 1 alone.
  CountMetric(std::optional<double> threshold, int64_t ignored, bool of_both = false)
      : threshold_(threshold), ignored_(ignored), of_both_(of_both) {}

  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    threshold_ ? check_same_shape(where, output, target) : check_classes(where, output, target);
  }
  void update(const Tensor& output, const Tensor& target) override {
    if (threshold_) return count_labels(output, target);
    if (!is_one_score(output, target)) return count_classes(output, target);
    of_both_ ? count_classes(two_scores(output), target) : count_positive(output, target);
  }
  [[nodiscard]] std::vector<Tensor*> state() override { return {&right_, &predicted_, &there_}; }

 protected:
  /// Returns the counts of every class.
  [[nodiscard]] std::vector<Counts> all() const {
    const auto right = numbers(right_), predicted = numbers(predicted_), there = numbers(there_);
    std::vector<Counts> counts(right.size());
    for (size_t i = 0; i < counts.size(); ++i) counts[i] = {right[i], predicted[i], there[i]};
    return counts;
  }
  /// Returns the counts of the classes that take part in a mean: those that occur in predictions or
  /// targets, and of several labels, or of class 1 alone, all.
  [[nodiscard]] std::vector<Counts> occurring() const {
    std::vector<Counts> counts = all();
    if (counts.size() == 1) return counts;
    if (ignored_ >= 0 && std::cmp_less(ignored_, counts.size()))
      counts.erase(counts.begin() + ignored_);
    if (threshold_) return counts;
    std::erase_if(counts, [](const Counts& each) { return each.predicted + each.there == 0; });
    return counts;
  }

 private:
  void count_classes(const Tensor& output, const Tensor& target) {
    const Tensor guess = output.argmax(1).flatten(), label = target.flatten();
    Tensor counts = label.ne(kIgnoredLabel);
    if (ignored_ != kIgnoredLabel) counts = counts.logical_and(label.ne(ignored_));
    const Tensor right = guess.eq(label).logical_and(counts),
                 safe = label.masked_fill(counts.bitwise_not(), 0);
    const int64_t classes = output.size(1);
    add(right_, sum_by(guess, right, classes));
    add(predicted_, sum_by(guess, counts, classes));
    add(there_, sum_by(safe, counts, classes));
  }
  /// Counts class 1 of two, for which the output is a score.
  void count_positive(const Tensor& output, const Tensor& target) {
    Tensor counts = target.ne(kIgnoredLabel);
    if (ignored_ != kIgnoredLabel) counts = counts.logical_and(target.ne(ignored_));
    const Tensor guess = output.flatten().gt(0).logical_and(counts),
                 truth = target.eq(1).logical_and(counts);
    add(right_, sum_of(guess.logical_and(truth)));
    add(predicted_, sum_of(guess));
    add(there_, sum_of(truth));
  }
  /// Returns how many of `of` are true by class, float64 [classes].
  static Tensor sum_by(const Tensor& label, const Tensor& of, int64_t classes) {
    const Tensor zeros = at::zeros({classes}, of.options().dtype(at::kDouble));
    return zeros.scatter_add(0, label, of.to(at::kDouble));
  }
  void count_labels(const Tensor& output, const Tensor& target) {
    const Tensor guess = output.gt(logit_of(*threshold_)), truth = target.gt(0.5);
    add(right_, sum_of(guess.logical_and(truth)));
    add(predicted_, sum_of(guess));
    add(there_, sum_of(truth));
  }
  /// Returns the sums over all dimensions but that of the labels, float64 [labels].
  static Tensor sum_of(const Tensor& of) {
    std::vector<int64_t> dims(static_cast<size_t>(std::max<int64_t>(1, of.dim() - 1)), 0);
    std::iota(dims.begin() + 1, dims.end(), 2);
    return of.sum(dims, /*keepdim=*/of.dim() == 1, at::kDouble);
  }

  std::optional<double> threshold_;
  int64_t ignored_;
  bool of_both_;
  Tensor right_, predicted_, there_;
};

class Averaged final : public CountMetric {
 public:
  Averaged(Figure figure, const AverageOptions& options)
      : CountMetric(options.threshold, kIgnoredLabel), figure_(figure), average_(options.average) {}

  [[nodiscard]] double value() const override {
    const std::vector<Counts> counts = occurring();
    if (counts.empty()) return std::numeric_limits<double>::quiet_NaN();  // no label counts
    if (average_ == "micro") return micro(figure_, counts);
    return mean(figure_, counts, /*evenly=*/average_ == "macro");
  }

 private:
  Figure figure_;
  std::string average_;
};

/// The mean over classes of the area that prediction and target share.
class Overlap final : public CountMetric {
 public:
  Overlap(Figure figure, const OverlapOptions& options)
      : CountMetric(options.threshold, options.ignore_index), figure_(figure) {}

  [[nodiscard]] double value() const override {
    const std::vector<Counts> counts = occurring();
    if (counts.empty()) return std::numeric_limits<double>::quiet_NaN();  // no label counts
    return mean(figure_, counts, /*evenly=*/true);
  }

 private:
  Figure figure_;
};

/// The mean of the recall over the classes that occur in the targets.
class BalancedAccuracy final : public CountMetric {
 public:
  BalancedAccuracy() : CountMetric(std::nullopt, kIgnoredLabel, /*of_both=*/true) {}

  [[nodiscard]] double value() const override {
    std::vector<Counts> counts = all();
    std::erase_if(counts, [](const Counts& each) { return each.there == 0; });
    if (counts.empty()) return std::numeric_limits<double>::quiet_NaN();  // no label counts
    return mean(recall, counts, /*evenly=*/true);
  }
};

void add_averaged(metrics::Registry& all, const char* name, const char* summary, Figure figure) {
  all.add<AverageOptions>(name, summary, [name, figure](const AverageOptions& options) {
    return Metric(name, Averaged(figure, options));
  });
}

void add_overlap(metrics::Registry& all, const char* name, const char* summary, Figure figure) {
  all.add<OverlapOptions>(name, summary, [name, figure](const OverlapOptions& options) {
    return Metric(name, Overlap(figure, options));
  });
}

}  // namespace

namespace metrics {

void add_count_metrics(Registry& all) {
  add_averaged(all, "precision", "computes the share of the predictions of a class that are right",
               precision);
  add_averaged(all, "recall", "computes the share of the samples of a class that are found",
               recall);
  add_averaged(all, "f1", "computes the harmonic mean of precision and recall", f1);
  add_overlap(all, "iou", "computes the intersection over the union of prediction and target", iou);
  add_overlap(all, "dice", "computes twice the intersection over the sum of prediction and target",
              f1);
  all.add("balanced_accuracy", "computes the mean of the recall over the classes",
          [] { return Metric("balanced_accuracy", BalancedAccuracy()); });
}

}  // namespace metrics
}  // namespace tare

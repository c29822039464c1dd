// The metrics of the order of scores: auroc, average_precision.
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include "tare/metric/check.h"
#include "tare/metric/named.h"

namespace tare {
namespace {

using at::Tensor;

/// Holds the score of a sample for a class, and whether the sample is of the class.
struct Scored {
  float score = 0;
  bool positive = false;
};

/// Holds the numbers of samples of equal score, or of all.
struct Tally {
  double positive = 0, negative = 0;
};

Tally tally_of(std::span<const Scored> samples) {
  Tally tally;
  for (const Scored& each : samples) ++(each.positive ? tally.positive : tally.negative);
  return tally;
}

/// Calls `f` with the tally of each distinct score, from the highest to the lowest.
template <class F>
void for_each_score(std::span<const Scored> descending, F&& f) {
  for (size_t from = 0, to = 0; from < descending.size(); from = to) {
    while (to < descending.size() && descending[to].score == descending[from].score) ++to;
    f(tally_of(descending.subspan(from, to - from)));
  }
}

/// Returns the area under the curve of true over false positives: the share of the pairs of a
/// positive and a negative sample that are ranked right, where equal scores are half right.
double auroc(std::span<const Scored> descending, const Tally& all) {
  double right = 0, above = 0;
  for_each_score(descending, [&](const Tally& tally) {
    right += tally.negative * (above + tally.positive / 2);
    above += tally.positive;
  });
  return right / (all.positive * all.negative);
}

/// Returns the sum over distinct scores of the precision times the rise of the recall.
double average_precision(std::span<const Scored> descending, const Tally& all) {
  double sum = 0;
  Tally above;
  for_each_score(descending, [&](const Tally& tally) {
    above.positive += tally.positive;
    above.negative += tally.negative;
    sum += tally.positive / all.positive * above.positive / (above.positive + above.negative);
  });
  return sum;
}

/// Keeps the scores and labels of all samples as float32 on the device of the outputs: the curve
/// depends on every score. One row a sample: a score for each class, or one for two classes, then
/// the class; or a score for each label, then each label.
class RankMetric final : public NamedMetric {
 public:
  using Figure = double (*)(std::span<const Scored> descending, const Tally& all);
  RankMetric(const char* name, Figure figure, bool needs_negatives)
      : name_(name), figure_(figure), needs_negatives_(needs_negatives) {}

  void check(const std::string& where, const Tensor& output, const Tensor& target) const override {
    const bool of_labels = target.defined() && target.is_floating_point();
    if (of_labels) {
      check_same_shape(where, output, target);
    } else {
      check_classes(where, output, target, /*least=*/is_one_score(output, target) ? 1 : 2);
    }
    check_dimensions(where, output, /*most=*/2);
  }
  void expect(int64_t samples) override { expected_ = samples; }

  void update(const Tensor& output, const Tensor& target) override {
    const int64_t samples = output.size(0);
    if (target.is_floating_point()) {
      scores_ = output.numel() / samples;
      const Tensor rows = next_rows(samples, 2 * scores_, output);
      rows.narrow(1, 0, scores_).copy_(output.reshape({samples, scores_}));
      rows.narrow(1, scores_, scores_).copy_(target.reshape({samples, scores_}));
      return;
    }
    scores_ = output.size(1) == 2 ? 1 : output.size(1);
    const Tensor rows = next_rows(samples, scores_ + 1, output);
    if (output.size(1) == 1) {
      rows.select(1, 0).copy_(output.select(1, 0));
    } else if (scores_ == 1) {
      rows.select(1, 0).copy_(output.select(1, 1).sub(output.select(1, 0)));
    } else {
      rows.narrow(1, 0, scores_).copy_(at::softmax(output, 1));
    }
    rows.select(1, scores_).copy_(target);
  }

  void merge(const StatefulMetric& other) override {
    const auto& more = static_cast<const RankMetric&>(other);
    if (more.filled_ == 0) return;
    scores_ = more.scores_;
    next_rows(more.filled_, more.rows_.size(1), more.rows_)
        .copy_(more.rows_.narrow(0, 0, more.filled_));
  }

  [[nodiscard]] double value() const override {
    const Tensor rows = rows_.narrow(0, 0, filled_).cpu();
    const bool of_labels = rows.size(1) == 2 * scores_;  // or of two classes, as one label
    double sum = 0;
    for (int64_t i = 0; i < scores_; ++i) {
      const double value = of_labels ? value_of(rows, i, scores_ + i, std::nullopt)
                                     : value_of(rows, i, scores_, static_cast<float>(i));
      if (std::isnan(value)) return value;  // one reason is enough
      sum += value;
    }
    return sum / static_cast<double>(scores_);
  }
  [[nodiscard]] std::vector<Tensor*> state() override { return {&rows_}; }
  [[nodiscard]] std::vector<std::variant<double*, int64_t*>> counts() override {
    return {&filled_, &scores_};
  }

 private:
  /// Returns rows that follow those that are filled, [samples, columns], and counts them as filled.
  Tensor next_rows(int64_t samples, int64_t columns, const Tensor& like) {
    const int64_t needed = filled_ + samples;
    if (!rows_.defined() || needed > rows_.size(0)) {
      const int64_t capacity =
          rows_.defined() ? std::max(2 * rows_.size(0), needed) : std::max(expected_, needed);
      const Tensor larger = at::empty({capacity, columns}, like.options().dtype(at::kFloat));
      if (filled_ > 0) larger.narrow(0, 0, filled_).copy_(rows_.narrow(0, 0, filled_));
      rows_ = larger;
    }
    filled_ = needed;
    return rows_.narrow(0, needed - samples, samples);
  }

  /// Returns the figure of a column of scores against a column of labels: of one class against all
  /// others or, without `of`, of labels that are 0 or 1.
  [[nodiscard]] double value_of(const Tensor& rows, int64_t score, int64_t label,
                                std::optional<float> of) const {
    std::vector<Scored> samples;
    samples.reserve(static_cast<size_t>(rows.size(0)));
    const float* row = rows.const_data_ptr<float>();
    for (int64_t i = 0; i < rows.size(0); ++i, row += rows.size(1)) {
      if (row[label] == static_cast<float>(kIgnoredLabel)) continue;
      if (std::isnan(row[score])) return no_value(name_, "an output is NaN");
      if (!of && row[label] != 0 && row[label] != 1)
        return no_value(name_, "a target is neither 0 nor 1");
      samples.push_back({row[score], row[label] == of.value_or(1)});
    }
    const Tally all = tally_of(samples);
    const std::string what = of ? "class " + std::to_string(score) : "the positive class";
    if (all.positive == 0) return no_value(name_, "no sample of the split is of " + what);
    if (needs_negatives_ && all.negative == 0)
      return no_value(name_, "all samples of the split are of " + what);
    std::ranges::sort(samples, std::greater(), &Scored::score);
    return figure_(samples, all);
  }

  const char* name_;
  Figure figure_;
  bool needs_negatives_;
  int64_t expected_ = 0, filled_ = 0, scores_ = 0;
  Tensor rows_;
};

}  // namespace

namespace metrics {

void add_rank_metrics(Registry& all) {
  all.add("auroc", "computes the area under the receiver operating characteristic",
          [] { return Metric("auroc", RankMetric("auroc", auroc, /*needs_negatives=*/true)); });
  all.add("average_precision", "computes the mean precision over the steps of the recall", [] {
    return Metric("average_precision", RankMetric("average_precision", average_precision,
                                                  /*needs_negatives=*/false));
  });
}

}  // namespace metrics
}  // namespace tare

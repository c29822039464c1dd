// Metrics with a state: those of a program, options, directions, and figures that there are not.
#include "tare/metric/stateful.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <cmath>

#include "tare/base/error.h"
#include "tare/metric/metric.h"

namespace tare {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

/// The mean of output less target.
class Bias final : public StatefulMetric {
 public:
  void update(const Tensor& output, const Tensor& target) override {
    if (output.dim() > 1) throw ShapeError("bias", "one value a sample", "more");
    add(sum_, output.sub(target).sum(at::kDouble));
    add(count_, at::full({}, target.numel(), sum_.options()));
  }
  [[nodiscard]] double value() const override { return number(sum_) / number(count_); }
  [[nodiscard]] std::vector<Tensor*> state() override { return {&sum_, &count_}; }
  [[nodiscard]] bool lower_is_better() const override { return true; }

 private:
  Tensor sum_, count_;
};

double fed_once(const Metric& metric, const Tensor& output, const Tensor& target) {
  MetricState state(metric);
  state.update(output, target);
  return state.value();
}

Tensor class_labels(const std::vector<int64_t>& of) { return at::tensor(of); }

TEST(StatefulMetric, OfAProgramIsMergedListedAndFreed) {
  const Metric metric("bias", Bias());
  MetricState all(metric);
  EXPECT_EQ(all.name(), "bias");
  EXPECT_EQ(all.lower_is_better(), true);
  const MetricState fresh = all;
  for (const int64_t size : {3, 1}) {
    MetricState batch = fresh;
    batch.update(at::full({size}, 2.0F), at::full({size}, size == 1 ? 1.0F : 0.0F));
    all.merge(batch);
  }
  EXPECT_DOUBLE_EQ(all.value(), 7.0 / 4);
  Ledger ledger;
  all.account(ledger);
  EXPECT_EQ(ledger.bytes().total(), 16);
  EXPECT_EQ(ledger.entries().front().name, "bias");
  all.reset();
  EXPECT_TRUE(std::isnan(all.value()));
  all.merge(fresh);
  EXPECT_TRUE(std::isnan(all.value())) << "nothing was added";
}

TEST(StatefulMetric, OfAProgramIsTriedByACheck) {
  const MetricState state(Metric("bias", Bias()));
  EXPECT_NO_THROW(state.check(at::zeros({2, 2}), at::zeros({2, 2})));
  EXPECT_THROW(state.check(at::zeros({2, 2}), at::zeros({2, 2}), /*try_update=*/true), ShapeError);
  EXPECT_THROW(state.check(at::zeros({2}), at::zeros({3})), ShapeError);
}

TEST(StatefulMetric, AnEntryMayBeAnotherNameForOne) {
  metrics::registry().add("hits", "computes the accuracy", [] { return Metric("accuracy"); });
  metrics::registry().add("itself", "computes nothing", [] { return Metric("itself"); });
  MetricState hits("hits");
  EXPECT_EQ(hits.name(), "hits");
  hits.update(at::eye(2), class_labels({0, 1}));
  EXPECT_EQ(hits.value(), 1);
  EXPECT_THROW(MetricState("itself"), ConfigError);
}

TEST(MetricOptions, HaveAShortForm) {
  const auto read = [](const std::string& text) {
    return metrics::text_of(metrics::from_text(text));
  };
  EXPECT_EQ(read("accuracy"), "accuracy");
  EXPECT_EQ(read("{top_k: {k: 5}}"), "top_k") << "its default";
  EXPECT_EQ(read("{top_k: {k: 3}}"), "{top_k: {k: 3}}");
  EXPECT_EQ(metrics::text_of(Metric("top_k", TopKOptions{.k = 3})), "{top_k: {k: 3}}");
  EXPECT_EQ(read("{f1: {average: micro}}"), "{f1: {average: micro}}");
  EXPECT_EQ(metrics::text_of(Metric("bias", Bias())), "");
  EXPECT_THROW((void)read("{top_k: {n: 3}}"), ConfigError);
  EXPECT_THROW((void)read("{f1: {average: mean}}"), ConfigError);
  EXPECT_THROW((void)read("{f1: {threshold: 2}}"), ConfigError);
  EXPECT_THROW((void)read("{top_k: {k: 0}}"), ConfigError);
}

TEST(MetricDirection, IsAPropertyOfTheMetric) {
  for (const char* name : {"error_rate", "mae", "mse", "perplexity", "rmse"})
    EXPECT_EQ(MetricState(name).lower_is_better(), true) << name;
  for (const char* name : {"accuracy", "auroc", "average_precision", "balanced_accuracy", "dice",
                           "f1", "iou", "precision", "r2", "recall", "top_5_accuracy", "top_k"})
    EXPECT_EQ(MetricState(name).lower_is_better(), false) << name;
  const Metric function("spread", [](const Tensor& o, const Tensor&) { return o.mean(); });
  EXPECT_FALSE(MetricState(function).lower_is_better().has_value());
}

TEST(MetricOptions, AThresholdTakesSeveralLabelsInPlaceOfClasses) {
  const Tensor logits = at::tensor({1.0F, -1.0F, 0.5F, 2.0F}).view({2, 2});
  const Tensor there = at::tensor({1.0F, 0.0F, 0.0F, 1.0F}).view({2, 2});
  EXPECT_THROW((void)fed_once("accuracy", logits, there), ShapeError) << "values are no classes";
  const Metric accuracy("accuracy", AccuracyOptions{.threshold = 0.5});
  EXPECT_EQ(fed_once(accuracy, logits, there), 0.5) << "one sample has a wrong label";
  EXPECT_EQ(fed_once(Metric("accuracy", AccuracyOptions{.threshold = 0.7}), logits, there), 1);
  EXPECT_EQ(fed_once(accuracy, logits.flatten(), there.flatten()), 0.75) << "one label a sample";
  EXPECT_THROW((void)fed_once(accuracy, logits, class_labels({0, 1})), ShapeError);
}

TEST(OneScore, ForTwoClassesIsCountedAsTheSecondClass) {
  const at::Tensor score = at::tensor({2.F, 1.F, -1.F, 0.5F, -3.F}).view({5, 1});
  const at::Tensor label = at::tensor({1, 0, 1, 1, 0}, at::kLong);
  const auto value = [&](const Metric& metric) {
    MetricState state(metric);
    state.update(score.narrow(0, 0, 3), label.narrow(0, 0, 3));
    state.update(score.narrow(0, 3, 2), label.narrow(0, 3, 2));
    return state.value();
  };
  // Two of three predictions of class 1 are right, and two of its three samples are found.
  EXPECT_NEAR(value("precision"), 2. / 3, 1e-12);
  EXPECT_NEAR(value("recall"), 2. / 3, 1e-12);
  EXPECT_NEAR(value("f1"), 2. / 3, 1e-12);
  EXPECT_NEAR(value("iou"), 0.5, 1e-12);
  EXPECT_NEAR(value("accuracy"), 0.6, 1e-12);
  EXPECT_NEAR(value("error_rate"), 0.4, 1e-12);
  EXPECT_NEAR(value("balanced_accuracy"), (2. / 3 + 1. / 2) / 2, 1e-12);
  EXPECT_NEAR(value("auroc"), 4. / 6, 1e-12);
  MetricState none("f1");
  none.update(score.narrow(0, 4, 1), label.narrow(0, 4, 1));
  EXPECT_EQ(none.value(), 0) << "nothing is of class 1";
}

TEST(MetricOptions, KIsAtMostTheNumberOfClasses) {
  const Metric metric("top_k", TopKOptions{.k = 4});
  try {
    (void)fed_once(metric, at::rand({2, 3}), class_labels({0, 1}));
    FAIL() << "four of three classes";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.field(), "top_k.k");
    EXPECT_EQ(error.allowed(), "at most 3");
  }
}

/// Returns what is written to standard error by the value, which must be NaN.
std::string reason_of(const Metric& metric, const Tensor& output, const Tensor& target) {
  MetricState state(metric);
  state.update(output, target);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(std::isnan(state.value())) << state.name();
  EXPECT_TRUE(std::isnan(state.value())) << state.name();
  return ::testing::internal::GetCapturedStderr();
}

TEST(MetricValue, ThatThereIsNotIsNaNWithOneReason) {
  const Tensor two = at::rand({3, 2}), three = at::rand({3, 3});
  const std::string one_class = reason_of("auroc", two, class_labels({1, 1, 1}));
  EXPECT_THAT(one_class, HasSubstr("the metric auroc has no value: all samples of the split are of "
                                   "the positive class"));
  EXPECT_EQ(one_class.find("auroc"), one_class.rfind("auroc")) << "said once";
  const std::string two_missing = reason_of("auroc", three, class_labels({0, 0, 0}));
  EXPECT_THAT(two_missing, HasSubstr("all samples of the split are of class 0"));
  EXPECT_EQ(two_missing.find("auroc"), two_missing.rfind("auroc")) << "one class is enough";
  EXPECT_THAT(reason_of("auroc", three, class_labels({0, 0, 1})),
              HasSubstr("no sample of the split is of class 2"));
  EXPECT_THAT(reason_of("average_precision", two, class_labels({0, 0, 0})),
              HasSubstr("no sample of the split is of the positive class"));
  EXPECT_THAT(reason_of("auroc", two, at::full({3, 2}, 0.5F)),
              HasSubstr("a target is neither 0 nor 1"));
  EXPECT_THAT(reason_of("auroc", two.mul(std::nan("")), class_labels({0, 1, 1})),
              HasSubstr("an output is NaN"));
  EXPECT_THAT(reason_of("r2", at::rand({1, 2}), at::rand({1, 2})),
              HasSubstr("the metric r2 has no value: it needs two samples"));
}

TEST(MetricValue, IsNaNWhereNoLabelCounts) {
  const Tensor ignored = at::full({3}, kIgnoredLabel, at::kLong);
  for (const char* name :
       {"accuracy", "balanced_accuracy", "dice", "f1", "iou", "perplexity", "precision", "recall"})
    EXPECT_TRUE(std::isnan(fed_once(name, at::rand({3, 4}), ignored))) << name;
}

TEST(MetricValue, OfACurveIsOfSamplesAlone) {
  EXPECT_THROW((void)fed_once("auroc", at::rand({2, 3, 4}), at::zeros({2, 4}, at::kLong)),
               ShapeError);
  EXPECT_THROW((void)fed_once("auroc", at::rand({2, 1, 4}), at::zeros({2, 4}, at::kLong)),
               ShapeError);
}

}  // namespace
}  // namespace tare

// Metrics by name and by function.
#include "tare/metric/metric.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tare/base/error.h"

namespace tare {
namespace {

using at::Tensor;

// A sum in double, cut elsewhere.
constexpr double kTolerance = 1e-12;

double once(const Metric& metric, const Tensor& output, const Tensor& target) {
  MetricState state(metric);
  state.update(output, target);
  return state.value();
}

/// Whether the metric takes class labels.
bool takes_labels(const Metric& metric) {
  const std::vector<std::string> of_values{"mae", "mse", "r2", "rmse"};
  return std::ranges::find(of_values, MetricState(metric).name()) == of_values.end();
}

/// Returns the bytes of its state.
int64_t bytes_of(const MetricState& state) {
  Ledger all;
  state.account(all);
  return all.bytes().total();
}

TEST(Metric, AccuracyCountsTheRightArgmax) {
  const Tensor output = at::tensor({0.1f, 0.9f, 0.8f, 0.2f, 0.3f, 0.7f, 0.6f, 0.4f}).view({4, 2});
  const Tensor target = at::tensor(std::vector<int64_t>{1, 0, 0, 0});
  EXPECT_EQ(once("accuracy", output, target), 0.75);
  EXPECT_EQ(once("error_rate", output, target), 0.25);
}

TEST(Metric, AccuracyGoesOverEveryPixel) {
  const Tensor output = at::stack({at::ones({2, 3, 3}), at::zeros({2, 3, 3})}, 1);
  Tensor target = at::zeros({2, 3, 3}, at::kLong);
  target[0][0][0] = 1;
  EXPECT_DOUBLE_EQ(once("accuracy", output, target), 17.0 / 18.0);
}

TEST(Metric, CheckRefusesWhatUpdateRefusesAndComputesNothing) {
  const Tensor three = at::rand({4, 3}), labels = at::zeros({4}, at::kLong);
  EXPECT_THROW(MetricState("top_5_accuracy").check(three, labels), ShapeError);
  EXPECT_THROW(MetricState("mae").check(three, labels), ShapeError);
  int calls = 0;
  const Metric own("own", [&](const Tensor& output, const Tensor&) {
    ++calls;
    return output.mean();
  });
  EXPECT_THROW(MetricState(own).check(three, at::zeros({5})), ShapeError);
  MetricState accuracy("accuracy");
  EXPECT_NO_THROW(accuracy.check(three, labels));
  EXPECT_NO_THROW(MetricState(own).check(three, labels));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(bytes_of(accuracy), 0);
}

TEST(Metric, TopFiveLooksAtTheFiveHighest) {
  const Tensor output = at::arange(7, at::kFloat).repeat({3, 1});  // the five highest: 2 to 6
  EXPECT_DOUBLE_EQ(once("top_5_accuracy", output, at::tensor(std::vector<int64_t>{1, 2, 6})),
                   2.0 / 3.0);
  EXPECT_THROW((void)once("top_5_accuracy", at::zeros({1, 4}), at::zeros({1}, at::kLong)),
               ShapeError);
}

TEST(Metric, ErrorsOfValues) {
  const Tensor output = at::tensor({1.0f, 2.0f, 3.0f, 6.0f}).view({2, 2});
  const Tensor target = at::tensor({1.0f, 1.0f, 1.0f, 2.0f}).view({2, 2});
  EXPECT_DOUBLE_EQ(once("mae", output, target), 7.0 / 4);
  EXPECT_DOUBLE_EQ(once("mse", output, target), 21.0 / 4);
  EXPECT_DOUBLE_EQ(once("rmse", output, target), std::sqrt(21.0 / 4));
}

TEST(Metric, ValueDoesNotDependOnTheBatches) {
  at::manual_seed(3);
  const Tensor scores = at::randn({100, 10}), classes = at::randint(10, {100}, at::kLong),
               values = at::randn({100, 10});
  const Metric custom("spread",
                      [](const Tensor& o, const Tensor& t) { return o.sub(t).abs().mean(); });
  std::vector<Metric> all{custom};
  for (const auto& name : metric_names()) all.emplace_back(name);
  for (const Metric& metric : all) {
    MetricState state(metric);
    const Tensor target = state.name() != "spread" && takes_labels(metric) ? classes : values;
    for (int64_t from = 0, size = 1; from < 100; from += size++) {
      const int64_t to = std::min<int64_t>(100, from + size);
      state.update(scores.slice(0, from, to), target.slice(0, from, to));
    }
    const double whole = once(metric, scores, target);
    // A function's own mean is float32.
    EXPECT_NEAR(state.value(), whole, state.name() == "spread" ? 1e-6 : kTolerance) << state.name();
  }
}

TEST(Metric, FunctionIsWeightedBySamples) {
  MetricState state(Metric("first", [](const Tensor& output, const Tensor&) { return output[0]; }));
  EXPECT_EQ(state.name(), "first");
  state.update(at::full({3}, 1.0f), at::zeros({3}));
  state.update(at::full({1}, 5.0f), at::zeros({1}));
  EXPECT_DOUBLE_EQ(state.value(), 2);
}

TEST(Metric, FreesItsState) {
  MetricState state("mse");
  state.update(at::ones({2}).requires_grad_(true), at::zeros({2}));
  EXPECT_EQ(bytes_of(state), 8) << "one sum, and no graph";
  state.reset();
  EXPECT_EQ(bytes_of(state), 0);
  EXPECT_TRUE(std::isnan(state.value()));
}

// A sum has a size of its own, and a curve depends on every sample.
TEST(Metric, StatesOfSumsDoNotGrowWithTheSamples) {
  const Tensor scores = at::randn({64, 10}), values = at::randn({64, 10}),
               classes = at::arange(64).remainder(10);
  for (const auto& name : metric_names()) {
    MetricState state{Metric(name)};
    state.expect(128);
    const Tensor& target = takes_labels(name) ? classes : values;
    state.update(scores, target);
    const int64_t once = bytes_of(state);
    state.update(scores, target);
    EXPECT_EQ(bytes_of(state), once) << name;
    const bool is_curve = name == "auroc" || name == "average_precision";
    if (is_curve)
      EXPECT_EQ(once, 128 * 11 * 4) << name;
    else
      EXPECT_LE(once, 3 * 10 * 8) << name;
  }
}

TEST(Metric, ACurveTakesMoreSamplesThanWereExpected) {
  const Tensor scores = at::randn({90, 2}), classes = at::arange(90).remainder(2);
  MetricState state("auroc");
  state.expect(10);
  for (int64_t from = 0; from < 90; from += 30)
    state.update(scores.slice(0, from, from + 30), classes.slice(0, from, from + 30));
  EXPECT_EQ(state.value(), once("auroc", scores, classes));
}

TEST(Metric, TheColumnHasTheNameThatIsGiven) {
  const Metric plain("f1", AverageOptions{.average = "micro"});
  const Metric named("f1", AverageOptions{.average = "micro", .as = "f1_micro"});
  EXPECT_EQ(column_of(plain), "f1");
  EXPECT_EQ(column_of(named), "f1_micro");
  EXPECT_EQ(MetricState(named).name(), "f1_micro");
  EXPECT_EQ(metrics::text_of(named), "{f1: {average: micro, as: f1_micro}}");
  EXPECT_EQ(column_of(metrics::from_text(metrics::text_of(named))), "f1_micro");
  const Tensor output = at::tensor({0.1F, 0.9F, 0.8F, 0.2F, 0.3F, 0.7F}).view({3, 2});
  const Tensor target = at::tensor({1, 0, 0}, at::kLong);
  EXPECT_EQ(once(named, output, target), once(plain, output, target));
  for (const char* name : {"f 1", "f1.a", "accuracy", "valid_loss", "loss", "seconds"})
    EXPECT_THROW(MetricState(Metric("f1", AverageOptions{.as = name})), ConfigError) << name;
}

TEST(Metric, RefusesWhatItCannotMeasure) {
  EXPECT_THROW(MetricState("acuracy"), ConfigError);
  EXPECT_THROW(MetricState(MetricFunction{}), ConfigError);
  EXPECT_THROW((void)once("accuracy", at::zeros({2, 3}), at::zeros({2})), ShapeError);
  EXPECT_THROW((void)once("mse", at::zeros({2, 3}), at::zeros({2})), ShapeError);
  const Metric vector = [](const Tensor& o, const Tensor&) { return o; };
  EXPECT_THROW((void)once(vector, at::zeros({2}), at::zeros({2})), ShapeError);
}

}  // namespace
}  // namespace tare

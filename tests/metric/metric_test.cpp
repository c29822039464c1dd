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
  EXPECT_FALSE(accuracy.sum().defined());
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
    const bool by_class =
        state.name().find("accuracy") != std::string::npos || state.name() == "error_rate";
    const Tensor target = by_class ? classes : values;
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
  EXPECT_EQ(state.count(), 4);
}

TEST(Metric, KeepsNoGraphAndFreesItsSum) {
  MetricState state("mse");
  state.update(at::ones({2}).requires_grad_(true), at::zeros({2}));
  EXPECT_FALSE(state.sum().requires_grad());
  state.reset();
  EXPECT_FALSE(state.sum().defined());
  EXPECT_TRUE(std::isnan(state.value()));
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

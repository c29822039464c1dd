// Losses, metrics and single operators allocate on the host as planned.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "trace/support.h"

namespace tare::plan {
namespace {

void expect_equal(const std::function<void()>& work) {
  at::set_num_threads(1);
  const Trace trace = plan::trace(work);
  ASSERT_FALSE(trace.events.empty());
  EXPECT_EQ(difference(host_sequence(work), trace), "");
  EXPECT_THAT(unverified(trace), ::testing::IsEmpty());
}

at::Tensor target_for(const std::string& loss, int64_t batch, int64_t classes) {
  if (loss == "cross_entropy" || loss == "nll") return torch::zeros({batch}, torch::kLong);
  return torch::rand({batch, classes});
}

class ExactLoss : public ::testing::TestWithParam<std::string> {};

TEST_P(ExactLoss, MeanForwardAndBackward) {
  expect_equal([] {
    const auto loss = resolve(Loss(GetParam()));
    const auto output = torch::rand({7, 10}).requires_grad_();
    loss.mean(output, target_for(loss.name, 7, 10)).backward();
  });
}

TEST_P(ExactLoss, PerSampleAndActivation) {
  expect_equal([] {
    const torch::NoGradGuard no_grad;
    const auto loss = resolve(Loss(GetParam()));
    const auto output = torch::rand({7, 10});
    const auto each = loss.per_sample(output, target_for(loss.name, 7, 10));
    const auto prediction = loss.activation(output);
  });
}

INSTANTIATE_TEST_SUITE_P(Named, ExactLoss, ::testing::ValuesIn(loss_names()),
                         [](const auto& test) { return test.param; });

TEST(ExactWeightedLoss, OfLabelsInOneAndInThreeDimensions) {
  for (const double smoothing : {0.0, 0.1}) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{7}, {7, 3, 4}}) {
      expect_equal([&] {
        std::vector<int64_t> of_output = shape;
        of_output.insert(of_output.begin() + 1, 10);
        const auto loss = resolve(
            {"cross_entropy", CrossEntropyOptions{.label_smoothing = smoothing,
                                                  .class_weights = std::vector<double>(10, 0.5)}});
        const auto output = torch::rand(of_output).requires_grad_();
        loss.mean(output, torch::zeros(shape, torch::kLong)).backward();
      });
    }
  }
}

class ExactMetric : public ::testing::TestWithParam<std::string> {};

TEST_P(ExactMetric, TwoBatches) {
  expect_equal([] {
    MetricState metric{Metric(GetParam())};
    const auto of_values = {"mae", "mse", "r2", "rmse"};
    const bool values = std::ranges::find(of_values, GetParam()) != of_values.end();
    for (const int64_t batch : {7, 4}) {
      const auto output = torch::rand({batch, 10});
      metric.update(output,
                    values ? torch::rand({batch, 10}) : torch::zeros({batch}, torch::kLong));
    }
  });
}

// Plans the metrics of pixels, which are counted as the positions of samples, and in parts that are
// merged.
TEST(ExactMetrics, OfPixelsInParts) {
  for (const auto& name : {"accuracy", "balanced_accuracy", "dice", "error_rate", "f1", "iou",
                           "perplexity", "precision", "recall", "top_k"}) {
    SCOPED_TRACE(name);
    expect_equal([&] {
      MetricState metric{Metric(name)};
      for (const int64_t part : {7, 4}) {
        MetricState more{Metric(name)};
        more.update(torch::rand({part, 10, 3, 5}), torch::zeros({part, 3, 5}, torch::kLong));
        metric.merge(more);
      }
    });
  }
}

TEST(ExactMetrics, OfSeveralLabels) {
  for (const auto& name : {"accuracy", "auroc", "average_precision", "f1", "iou"}) {
    SCOPED_TRACE(name);
    expect_equal([&] {
      const bool is_curve = std::string_view(name).starts_with('a') && name[1] != 'c';
      MetricState metric{is_curve ? Metric(name) : Metric(name, AccuracyOptions{.threshold = 0.7})};
      for (const int64_t batch : {7, 4}) {
        MetricState more = metric;
        more.reset();
        more.expect(batch);
        more.update(torch::rand({batch, 5}), torch::rand({batch, 5}));
        metric.merge(more);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Named, ExactMetric, ::testing::ValuesIn(metric_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tare::plan

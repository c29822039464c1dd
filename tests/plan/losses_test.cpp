// Losses, metrics and single operators allocate on the host as planned.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "plan/support.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"

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

class ExactMetric : public ::testing::TestWithParam<std::string> {};

TEST_P(ExactMetric, TwoBatches) {
  expect_equal([] {
    MetricState metric{Metric(GetParam())};
    const bool values = GetParam() == "mae" || GetParam() == "mse" || GetParam() == "rmse";
    for (const int64_t batch : {7, 4}) {
      const auto output = torch::rand({batch, 10});
      metric.update(output,
                    values ? torch::rand({batch, 10}) : torch::zeros({batch}, torch::kLong));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Named, ExactMetric, ::testing::ValuesIn(metric_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tare::plan

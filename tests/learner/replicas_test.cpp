// Replicas of a model on several devices of one process train as one device does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include "tare/learner/learner.h"
#include "tare/learner/replicas.h"
#include "tare/memory/backend.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using Devices = std::vector<std::string>;

Model net() { return models::make("mlp", {.classes = 3, .sample_shape = {6}, .hidden = {8, 5}}); }

struct Trained {
  std::vector<double> losses{};
  std::vector<at::Tensor> weights{};
};

/// Trains with an uneven last batch and labels that do not count; `devices`: of the replicas.
Trained trained(const Devices& devices, bool freezes = false, int64_t micro_batch = 0) {
  at::manual_seed(5);
  const at::Tensor inputs = at::randn({100, 6}), labels = at::randint(3, {100});
  const auto data = tensor_dataset(inputs, labels.masked_fill(inputs.select(1, 0) > 0.5, -100));
  LearnerOptions options{.metrics = {"accuracy"},
                         .device = "cpu",
                         .batch = 24,
                         .optimizer = {.kind = "sgd", .lr = 0.1, .momentum = 0.9},
                         .workers = 0,
                         .progress = false};
  if (micro_batch > 0) options.micro_batch = micro_batch;
  if (!devices.empty()) options.task = replicated(net, devices, "cross_entropy");
  at::manual_seed(7);
  Learner learner(net(), {.train = data, .valid = data, .test = {}}, options);
  if (freezes) learner.freeze();
  Trained result;
  for (const EpochRow& epoch : learner.fit(3).epochs) {
    result.losses.insert(result.losses.end(), {epoch.train_loss, epoch.valid_loss});
    result.losses.push_back(epoch.metrics.front().value);
  }
  const Predictions predicted = learner.get_preds(Split::valid);
  result.losses.push_back(predicted.outputs.square().sum().item<double>());
  for (const NamedTensor& one : learner.model().state())
    result.weights.push_back(one.tensor.detach().clone());
  return result;
}

void expect_near(const Trained& got, const Trained& expected) {
  ASSERT_EQ(got.losses.size(), expected.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], expected.losses[i], 1e-5) << i;
  ASSERT_EQ(got.weights.size(), expected.weights.size());
  for (size_t i = 0; i < got.weights.size(); ++i)
    EXPECT_TRUE(at::allclose(got.weights[i], expected.weights[i], 1e-5, 1e-6)) << i;
}

TEST(Replicas, TrainAsOneDeviceDoes) {
  const Trained alone = trained({});
  for (const Devices& devices : {Devices{"cpu"}, {"cpu", "cpu"}, {"cpu", "cpu", "cpu", "cpu"}})
    expect_near(trained(devices), alone);
}

TEST(Replicas, TrainWithFrozenLayersAndMicroBatches) {
  expect_near(trained({"cpu", "cpu"}, true), trained({}, true));
  expect_near(trained({"cpu", "cpu"}, false, 7), trained({}, false, 7));
}

TEST(Replicas, AreInTheLedgerAndEndWithTheLearner) {
  const int64_t before = memory::backend(c10::kCPU).usage().allocated_bytes;
  {
    const auto data = tensor_dataset(at::randn({32, 6}), at::randint(3, {32}));
    Learner learner(net(), {.train = data, .valid = {}, .test = {}},
                    {.device = "cpu",
                     .batch = 16,
                     .workers = 0,
                     .task = replicated(net, {"cpu", "cpu", "cpu"}, "cross_entropy"),
                     .progress = false});
    const auto bytes = [&](Category category) {
      return learner.ledger().bytes(c10::kCPU)[category];
    };
    const int64_t other = bytes(Category::other);
    (void)learner.fit(1);
    EXPECT_EQ(bytes(Category::other) - other, 2 * bytes(Category::parameters));
    EXPECT_EQ(bytes(Category::gradients), 0);
    learner.destroy();
  }
  EXPECT_EQ(memory::backend(c10::kCPU).usage().allocated_bytes, before);
}

TEST(Replicas, SayWhatTheyCannotTake) {
  const auto message = [](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(message([] { (void)replicated(net, {}, "cross_entropy"); }),
              HasSubstr("devices are none"));
  EXPECT_THAT(message([] { (void)replicated(net, {"gpu:0"}, "cross_entropy"); }),
              HasSubstr("gpu:0"));
  EXPECT_THAT(message([] { (void)replicated(net, {"cpu"}, "cross_entropyy"); }),
              HasSubstr("cross_entropy"));
  const auto fit = [](const Task& task) {
    const auto data = tensor_dataset(at::randn({32, 6}), at::randint(3, {32}));
    Learner learner(net(), {.train = data, .valid = {}, .test = {}},
                    {.device = "cpu", .batch = 16, .workers = 0, .task = task, .progress = false});
    (void)learner.fit(1);
  };
  const auto wider = [] {
    return models::make("mlp", {.classes = 3, .sample_shape = {6}, .hidden = {9, 5}});
  };
  EXPECT_THAT(message([&] { fit(replicated(wider, {"cpu", "cpu"}, "cross_entropy")); }),
              AllOf(HasSubstr("[8, 6]"), HasSubstr("[9, 6]")));
}

}  // namespace
}  // namespace tare::testing

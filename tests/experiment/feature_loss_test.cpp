// The mistake that fastai's lesson on super-resolution made famous: a loss that compares features
// keeps them, and the Learner's destroy() does not bring their memory back.
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "tare/data/dataset.h"
#include "tare/experiment/experiment.h"
#include "tare/learner/learner.h"
#include "tare/memory/backend.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 10, kClasses = 3, kWidth = 50;

int64_t tracked() { return memory::backend(c10::kCPU).usage().allocated_bytes; }

/// Compares what a fixed layer makes of output and target, and remembers what it made.
struct FeatureLoss {
  at::Tensor weight = at::rand({kWidth, kClasses});
  at::Tensor features{};
  int line = 0;

  at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) {
    features = at::linear(output.detach(), weight);
    line = __LINE__ - 1;
    return at::mse_loss(at::linear(output, weight),
                        at::linear(at::one_hot(target, kClasses).to(at::kFloat), weight));
  }
};

TEST(FeatureLoss, IsNamedWithTheLineOfWhatItKeepsAfterDestroy) {
  const TempDir folder;
  const auto loss = std::make_shared<FeatureLoss>();
  const int64_t before = tracked();
  {
    const ExperimentOptions located{.out = nullptr, .call_sites = true};
    Experiment stage("story", located);
    LearnerOptions options;
    options.device = "cpu";
    options.batch = kBatch;
    options.folder = folder.path();
    options.progress = false;
    options.loss = Loss([loss](const at::Tensor& output, const at::Tensor& target) {
      return (*loss)(output, target);
    });
    const auto set =
        tensor_dataset(at::rand({3 * kBatch, 4}), at::randint(kClasses, {3 * kBatch}, at::kLong));
    Learner learner(models::make("mlp", {.classes = kClasses, .sample_shape = {4}}), {.train = set},
                    std::move(options));
    learner.fit(2);
    const PurgeReport destroyed = learner.destroy();
    EXPECT_EQ(destroyed.holders.at(0).bytes, kBatch * kWidth * 4) << destroyed.str();
    EXPECT_THAT(destroyed.str(), HasSubstr("allocated in phase forward at "));
    EXPECT_THAT(destroyed.str(), HasSubstr("feature_loss_test.cpp:" + std::to_string(loss->line)));
    const auto report = stage.finish();
    ASSERT_EQ(report.leaks.size(), 2U) << report;  // and the data set, which `set` keeps
    const auto& leak = report.leaks.front();
    EXPECT_EQ(leak.bytes, kBatch * kWidth * 4);
    EXPECT_EQ(leak.site.line, loss->line) << report;
    EXPECT_EQ(leak.phase, "forward");
    EXPECT_THAT(report.str(), HasSubstr("feature_loss_test.cpp:" + std::to_string(loss->line)));
  }
  loss->features.reset();
  EXPECT_EQ(tracked(), before) << "nothing else was kept";
}

}  // namespace
}  // namespace tare::testing

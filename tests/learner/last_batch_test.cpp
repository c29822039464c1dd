// A last batch of one sample, which a batch norm cannot train on: said before the fit, or skipped,
// by plan and run alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "learner/state.h"
#include "support/outcome.h"
#include "tare/base/error.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kOneOver = 33;  // two batches of 16, and one sample

struct ImageNetImpl : torch::nn::Module {
  ImageNetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(1, 4, 3));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
    head = register_module("head", torch::nn::Linear(4, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(norm(conv(x)).mean({2, 3})); }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(ImageNet);

DatasetPtr images(int64_t n, int64_t size) {
  torch::manual_seed(5);
  return tensor_dataset(torch::rand({n, 1, size, size}), torch::arange(n) % kClasses);
}

TEST(LastBatch, OfOneSampleIsSkippedWhereABatchNormCannotTrainOnIt) {
  const TempDir folder;
  Learner learner(make_net(), split_points(kOneOver), quiet(folder));
  ::testing::internal::CaptureStderr();
  const FitResult result = learner.fit(2);
  EXPECT_EQ(result.steps, 4);
  EXPECT_EQ(result.epochs.at(0).samples, 32);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(log.empty() || log.find("it is skipped") != std::string::npos) << log;
}

TEST(LastBatch, OfOneImageIsTrainedOnAsItHasManyValuesPerChannel) {
  const TempDir folder;
  Learner wide(ImageNet(), {.train = images(kOneOver, 6)}, quiet(folder));
  EXPECT_EQ(wide.fit(1).steps, 3);
  Learner single(ImageNet(), {.train = images(kOneOver, 3)}, quiet(folder));  // one pixel is left
  EXPECT_EQ(single.fit(1).steps, 2);
}

TEST(LastBatch, WithoutABatchNormIsTrainedOn) {
  const TempDir folder;
  Learner learner(torch::nn::Linear(kFeatures, kClasses), split_points(kOneOver), quiet(folder));
  EXPECT_EQ(learner.fit(1).steps, 3);
}

TEST(LastBatch, IsKeptOrDroppedAsSaid) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.drop_last = true;
  Learner dropping(make_net(), split_points(90), options);
  EXPECT_EQ(dropping.fit(1).epochs.at(0).samples, 80);
  options.drop_last = false;
  Learner keeping(make_net(), split_points(90), options);
  EXPECT_EQ(keeping.fit(1).epochs.at(0).samples, 90);
  Learner refused(make_net(), split_points(kOneOver), options);
  const State before = capture(refused);
  EXPECT_THAT(outcome_of([&] { (void)refused.fit(1); }),
              AllOf(StartsWith("ConfigError: [learner.fit] the last batch of an epoch has 1 sample "
                               "(33 in batches of 16)"),
                    HasSubstr("leave drop_last unset, or take another batch")));
  EXPECT_TRUE(capture(refused) == before);
}

TEST(LastBatch, EveryBatchOfOneSampleIsRefusedBeforeTheFit) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.batch = 1;
  Learner one(make_net(), split_points(kOneOver), options);
  EXPECT_THAT(outcome_of([&] { (void)one.fit(1); }),
              AllOf(StartsWith("ConfigError: [learner.fit] batch 1 makes single samples"),
                    HasSubstr("one value per channel")));
  options.batch = 16;
  options.micro_batch = 1;
  Learner parts(make_net(), split_points(kOneOver), options);
  EXPECT_THAT(outcome_of([&] { (void)parts.fit(1); }), HasSubstr("micro_batch 1 makes single"));
  options.micro_batch = 2;  // the last batch of 3 would be parts of 2 and 1
  Learner uneven(make_net(), split_points(35), options);
  EXPECT_EQ(uneven.fit(1).epochs.at(0).samples, 32);
}

TEST(LastBatch, TheSearchForItChangesNothing) {
  const TempDir folder;
  Learner searched(make_net(), split_points(kOneOver), quiet(folder));
  LearnerOptions options = quiet(folder);
  options.drop_last = true;
  Learner given(make_net(), split_points(kOneOver), options);
  torch::manual_seed(4);
  (void)searched.fit(1);
  const State found = capture(searched);
  torch::manual_seed(4);
  (void)given.fit(1);
  EXPECT_TRUE(found == capture(given));
}

TEST(LastBatch, IsPlannedAsItIsRun) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.workers = 0;
  Learner learner(
      models::make("convnet", {.classes = kClasses, .sample_shape = {1, 4, 4}, .width = 4}),
      {.train = images(kOneOver, 4)}, options);  // one pixel is left
  const MemoryPlan plan = learner.plan();
  EXPECT_EQ(plan.method, "meta") << plan.str();
  EXPECT_EQ(learner.fit(1).steps, 2);
  options.drop_last = false;
  Learner keeping(
      models::make("convnet", {.classes = kClasses, .sample_shape = {1, 4, 4}, .width = 4}),
      {.train = images(kOneOver, 4)}, options);
  EXPECT_THAT(outcome_of([&] { (void)keeping.plan(); }),
              HasSubstr("[learner.plan] the last batch of an epoch has 1 sample"));
}

}  // namespace
}  // namespace tare::testing

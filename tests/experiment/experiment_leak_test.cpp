#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/holder.h"
#include "support/sanitized.h"
#include "tare/experiment/experiment.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"

namespace tare {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;
using testing::Holder;
using testing::kSanitized;

ExperimentOptions quiet() { return {.enabled = true, .devices = {}, .out = nullptr}; }

TEST(ExperimentLeak, IsNamedWithBytesCountAndPhase) {
  Experiment stage("stage", quiet());
  std::vector<at::Tensor> forgotten;
  {
    const memory::Phase phase(memory::PhaseKind::forward);
    forgotten.push_back(bytes_of(100));
    forgotten.push_back(bytes_of(200));
  }
  forgotten.push_back(bytes_of(400));
  const auto report = stage.finish();
  ASSERT_EQ(report.leaks.size(), 2U);
  EXPECT_EQ(report.leaks[0].phase, "none");
  EXPECT_EQ(report.leaks[0].bytes, 400);
  EXPECT_EQ(report.leaks[1].phase, "forward");
  EXPECT_EQ(report.leaks[1].bytes, 300);
  EXPECT_EQ(report.leaks[1].count, 2);
  EXPECT_EQ(report.leaked_bytes(), 700);
  EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 700);
  EXPECT_THAT(report.str(), HasSubstr("2 blocks, 300 B on cpu born in phase forward"));
}

TEST(ExperimentLeak, IsNotWhatWasThereBefore) {
  const auto old = bytes_of(100);
  Experiment stage("stage", quiet());
  EXPECT_TRUE(stage.finish().leaks.empty());
}

TEST(ExperimentLeak, IsNotWhatWasKept) {
  Experiment stage("stage", quiet());
  const auto result = bytes_of(100);
  const auto other = bytes_of(1);
  stage.keep(result.slice(0, 10, 20));  // a view answers for its storage
  const auto report = stage.finish();
  EXPECT_EQ(report.leaked_bytes(), 1);
  EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 101);
}

TEST(ExperimentLeak, IsWhatTookTheAddressOfAKeptTensor) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer does not give an address again soon";
  Experiment stage("stage", quiet());
  auto kept = bytes_of(4000);
  const void* address = kept.data_ptr();
  stage.keep(kept);
  kept.reset();
  std::vector<at::Tensor> attempts;
  while (attempts.empty() || attempts.back().data_ptr() != address) {
    ASSERT_LT(attempts.size(), 1000U) << "the address was not given again";
    attempts.push_back(bytes_of(4000));
  }
  EXPECT_EQ(stage.finish().leaked_bytes(), 4000 * static_cast<int64_t>(attempts.size()));
}

TEST(ExperimentLeak, IsNotWhatALivingObjectAnswersFor) {
  Holder attended("attended");
  Experiment stage("stage", attended, quiet());
  const Holder stranger("stranger", 500);  // living, never attended
  attended.weight = bytes_of(2000);        // replaced inside, survives the purge
  const auto report = stage.finish();
  EXPECT_TRUE(report.leaks.empty());
  EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 1500);
}

TEST(ExperimentLeak, IgnoresUndefinedTensorsToKeep) {
  Experiment stage("stage", quiet());
  EXPECT_NO_THROW(stage.keep(at::Tensor()));
}

// What a failed backward leaves in the ready queue is no leak: finish() flushes it.
TEST(ExperimentLeak, IsNotLeftByAFailedBackward) {
  const auto weight = at::ones({4, 4, 3, 3}).set_requires_grad(true);
  const auto loss_of = [&] {
    auto x = at::ones({2, 4, 16, 16});
    for (int i = 0; i < 4; ++i)
      x = at::relu(at::conv2d(x, weight, {}, 1, 1)).add(at::conv2d(x, weight, {}, 1, 1));
    return x.sum();
  };
  loss_of().backward();
  weight.mutable_grad().reset();
  int failures = 0;
  for (const uint64_t k : {5U, 10U, 15U, 20U, 25U}) {
    Experiment stage("stage", quiet());
    {
      const auto loss = loss_of();
      memory::host_allocator::fail_at(k);
      try {
        loss.backward();
      } catch (const OutOfMemory&) {
        ++failures;
      }
      memory::host_allocator::fail_at(0);
    }
    weight.mutable_grad().reset();
    const auto report = stage.finish();
    EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 0) << k;
    EXPECT_TRUE(report.leaks.empty()) << report;
  }
  EXPECT_GT(failures, 0);
}

TEST(ExperimentLeak, IsFoundEvenWhenNoAllocationIsPossible) {
  Experiment stage("stage", quiet());
  const auto forgotten = bytes_of(100);
  memory::host_allocator::fail_all(true);
  const auto report = stage.finish();
  memory::host_allocator::fail_all(false);
  EXPECT_EQ(report.leaked_bytes(), 100);
}

}  // namespace
}  // namespace tare

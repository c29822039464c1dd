// Tests what an Experiment calls a leak, and what it does not.
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

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

ExperimentOptions silent() { return {.enabled = true, .devices = {}, .out = nullptr}; }

TEST(ExperimentLeak, IsNamedWithBytesCountAndPhase) {
  Experiment stage("stage", silent());
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
  Experiment stage("stage", silent());
  EXPECT_TRUE(stage.finish().leaks.empty());
}

TEST(ExperimentLeak, IsNotWhatWasKept) {
  Experiment stage("stage", silent());
  const auto result = bytes_of(100);
  const auto other = bytes_of(1);
  stage.keep(result.slice(0, 10, 20));  // a view answers for its storage
  const auto report = stage.finish();
  EXPECT_EQ(report.leaked_bytes(), 1);
  EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 101);
}

TEST(ExperimentLeak, IsWhatTookTheAddressOfAKeptTensor) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer does not give an address again soon";
  Experiment stage("stage", silent());
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
  Experiment stage("stage", attended, silent());
  const Holder stranger("stranger", 500);  // living, never attended
  attended.weight = bytes_of(2000);        // replaced inside, survives the purge
  const auto report = stage.finish();
  EXPECT_TRUE(report.leaks.empty());
  EXPECT_EQ(report.on(c10::kCPU).residual_bytes(), 1500);
}

/// Allocates after its construction, and lists its tensors or does not.
struct Listing {
  void account(Ledger& all) const { all.add(Category::other, "late", late); }
  at::Tensor late;
};
struct Opaque {
  at::Tensor late;
};
/// Has what torch::nn::Module has.
struct Module {
  [[nodiscard]] std::vector<at::Tensor> parameters() const { return {weight}; }
  [[nodiscard]] std::vector<at::Tensor> buffers() const { return {mean}; }
  at::Tensor weight, mean;
};
/// Has what tare::Model has.
struct Model {
  struct Named {
    std::string name;
    at::Tensor tensor;
  };
  [[nodiscard]] std::vector<Named> parameters() const { return {{"weight", weight}}; }
  [[nodiscard]] std::vector<Named> buffers() const { return {}; }
  [[nodiscard]] bool empty() const { return false; }
  at::Tensor weight;
};

at::Tensor with_gradient() {
  auto weight = at::ones({8}).set_requires_grad(true);
  weight.mutable_grad() = at::ones({8});
  return weight;
}

// A temporary that is moved into an owned object was allocated before the object was made.
TEST(ExperimentLeak, IsNotATensorOfAKeptObject) {
  Experiment stage("stage", silent());
  stage.emplace<at::Tensor>("tensor", bytes_of(100));
  stage.emplace<std::vector<at::Tensor>>("list", std::vector{bytes_of(1), bytes_of(2)});
  auto& late = stage.emplace<std::map<std::string, at::Tensor>>("late");
  late["a"] = bytes_of(300);
  stage.emplace<std::shared_ptr<Listing>>("pointer", std::make_shared<Listing>())->late =
      bytes_of(400);
  stage.emplace<std::optional<at::Tensor>>("none");
  stage.emplace<std::variant<int, at::Tensor>>("variant", 1) = bytes_of(500);
  stage.emplace<Module>("module", Module{with_gradient(), bytes_of(3)});
  stage.emplace<Model>("model", Model{with_gradient()});
  stage.emplace<std::unique_ptr<Holder>>("holder") = std::make_unique<Holder>("holder", 600);
  for (const char* name :
       {"tensor", "list", "late", "pointer", "none", "variant", "module", "model", "holder"})
    stage.keep(name);
  const auto report = stage.finish();
  EXPECT_TRUE(report.leaks.empty()) << report;
  EXPECT_TRUE(report.unclear.empty()) << report;
  EXPECT_EQ(report.kept.size(), 9U);
}

TEST(ExperimentLeak, IsWhatOnlyAnObjectThatWasNotKeptHeld) {
  Experiment stage("stage", silent());
  const auto outside = stage.emplace<at::Tensor>("tensor", bytes_of(100));
  EXPECT_EQ(stage.finish().leaked_bytes(), 100);
}

TEST(ExperimentLeak, IsUnclearWhileAKeptObjectDoesNotListItsTensors) {
  at::Tensor forgotten;
  {
    Experiment stage("stage", silent());
    const auto before = bytes_of(10);
    auto& kept = stage.emplace<Opaque>("opaque");
    stage.keep("opaque");
    kept.late = bytes_of(200);
    forgotten = bytes_of(30);
    const auto report = stage.finish();
    EXPECT_EQ(report.leaked_bytes(), 10) << "allocated before the kept object was made";
    ASSERT_EQ(report.unclear.size(), 1U) << report;
    EXPECT_EQ(report.unclear[0].bytes, 230);
    EXPECT_THAT(report.opaque, ::testing::ElementsAre("opaque"));
    EXPECT_THAT(report.str(), HasSubstr("  kept or leaked: 2 blocks, 230 B on cpu"));
    ::testing::internal::CaptureStderr();
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("'stage' leaked 30 B"));
}

TEST(ExperimentLeak, CannotBeKeptAfterFinish) {
  Experiment stage("stage", silent());
  const auto& owned = stage.emplace<at::Tensor>("x1", bytes_of(1));
  const at::Tensor tensor = owned;
  stage.finish();
  EXPECT_THROW(stage.keep("x1"), StateError);
  EXPECT_THROW(stage.keep(tensor), StateError);
}

TEST(ExperimentLeak, ThatIsNoTensorIsNamedAsGrowthOfTheProcess) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer keeps freed blocks resident";
  std::vector<char> forgotten;
  Experiment stage("loading", silent());
  forgotten.assign(size_t{80} << 20, 'x');
  const auto report = stage.finish();
  EXPECT_TRUE(report.leaks.empty());
  EXPECT_GT(report.on(c10::kCPU).residual_beside_tensors_bytes(), int64_t{72} << 20);
  EXPECT_THAT(report.str(), HasSubstr("the process grew by "));
  EXPECT_THAT(report.str(), HasSubstr(" beside tensors on cpu in 'loading'"));
  Experiment clean("clean", silent());
  EXPECT_THAT(clean.finish().str(), ::testing::Not(HasSubstr("the process grew by")));
}

TEST(ExperimentLeak, IgnoresUndefinedTensorsToKeep) {
  Experiment stage("stage", silent());
  EXPECT_NO_THROW(stage.keep(at::Tensor()));
}

// Tests that a failed backward leaves no leak in the ready queue: finish() flushes the queue.
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
    Experiment stage("stage", silent());
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
  Experiment stage("stage", silent());
  const auto forgotten = bytes_of(100);
  memory::host_allocator::fail_all(true);
  const auto report = stage.finish();
  memory::host_allocator::fail_all(false);
  EXPECT_EQ(report.leaked_bytes(), 100);
}

}  // namespace
}  // namespace tare

// Compares the figures of Learner::plan for a card with the memory that a fit takes there.
#include <gtest/gtest.h>

#include "contract/traits.h"
#include "learner/zoo.h"
#include "tare/memory/backend.h"
#include "tare/plan/plan.h"

namespace tare::testing {
namespace {

struct Case {
  const char* model;
  const char* optimizer;
  int64_t batch;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model << ' ' << c.optimizer << ' ' << c.batch;
}

class PlanOnCuda : public ::testing::TestWithParam<Case> {
 protected:
  using Traits = memory::CudaTraits;

  void SetUp() override {
    if (const auto reason = Traits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = &memory::backend(Traits::device());
    backend_->warm();
    learner()->fit(1);  // what libraries keep for the life of the process
    backend_->reclaim();
    start_ = backend_->usage();
  }

  [[nodiscard]] std::unique_ptr<Learner> learner(std::optional<int64_t> micro_batch = {}) const {
    torch::manual_seed(1);
    const bool gpt = std::string_view(GetParam().model) == "gpt";
    const ModelOptions options =
        gpt ? ModelOptions{.classes = 256,
                           .sample_shape = {128},
                           .width = 256,
                           .layers = 4,
                           .heads = 8}
        : std::string_view(GetParam().model) == "mlp"
            ? ModelOptions{.classes = 10, .sample_shape = {3, 64, 64}, .hidden = {64, 64}}
            : ModelOptions{.classes = 10, .sample_shape = {3, 64, 64}, .width = 64};
    LearnerOptions o = quiet(folder_);
    o.device = Traits::device().str();
    o.batch = GetParam().batch;
    o.micro_batch = micro_batch;
    o.workers = 0;
    o.optimizer.kind = GetParam().optimizer;
    const int64_t n = 2 * o.batch;
    const auto inputs = gpt ? torch::randint(256, {n, 128}) : torch::rand({n, 3, 64, 64});
    const auto targets = gpt ? inputs.roll(-1, 1) : torch::arange(n) % 10;
    return std::make_unique<Learner>(models::make(GetParam().model, options),
                                     Splits{.train = tensor_dataset(inputs, targets)}, o);
  }

  memory::DeviceBackend* backend_ = nullptr;
  memory::Usage start_;
  TempDir folder_;
};

/// Expects that `measured` is within `share` of the plan; on the stand-in, whose convolutions have
/// no workspaces, both are equal.
void expect_near(int64_t planned, int64_t measured, double share, const MemoryPlan& plan) {
  if (!memory::kernels_compute()) share = 0;
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(measured),
              share * static_cast<double>(measured))
      << plan.str();
}

TEST_P(PlanOnCuda, IsNearWhatAFitTakes) {
  auto l = learner();
  const MemoryPlan plan = l->plan({.advice = false});
  ASSERT_TRUE(plan.known()) << plan.reason;
  backend_->reclaim();
  const memory::PeakScope peak(Traits::device());
  l->fit(1);
  expect_near(plan.peak_bytes, peak.peak_above_start_bytes(), 0.02, plan);
  const int64_t reserved = backend_->usage().reserved_bytes - start_.reserved_bytes;
  expect_near(plan.reserved_bytes, reserved, 0.05, plan);
  RecordProperty("planned_peak", std::to_string(plan.peak_bytes));
  RecordProperty("measured_peak", std::to_string(peak.peak_above_start_bytes()));
  RecordProperty("planned_reserved", std::to_string(plan.reserved_bytes));
  RecordProperty("measured_reserved", std::to_string(reserved));
}

TEST_P(PlanOnCuda, FitsWhereItIsSaidToFit) {
  auto l = learner(GetParam().batch);
  const MemoryPlan plan = l->plan({.advice = false});
  backend_->reclaim();
  backend_->set_budget(start_.reserved_bytes + plan.reserved_bytes + plan.reserved_bytes / 50);
  EXPECT_NO_THROW(l->fit(1)) << plan.str();
  backend_->set_budget({});
}

TEST_P(PlanOnCuda, DoesNotFitWhereTheAllocatedBytesAloneAreAboveTheLimit) {
  auto l = learner(GetParam().batch);
  const MemoryPlan plan = l->plan({.advice = false});
  backend_->reclaim();
  int64_t allocated = plan.start_bytes + plan.peak_bytes;
  // LibTorch takes another algorithm of cuDNN where the workspace of the first is refused.
  if (!memory::is_stand_in()) allocated -= plan.categories[Category::workspace];
  backend_->set_budget(start_.reserved_bytes + allocated - allocated / 50);
  EXPECT_THROW(l->fit(1), c10::OutOfMemoryError) << plan.str();
  backend_->set_budget({});
}

INSTANTIATE_TEST_SUITE_P(Zoo, PlanOnCuda,
                         ::testing::Values(Case{"mlp", "adamw", 256}, Case{"convnet", "sgd", 64},
                                           Case{"resnet18", "sgd", 32},
                                           Case{"resnet18", "adamw", 64},
                                           Case{"resnet50", "adamw", 32}, Case{"gpt", "sgd", 16},
                                           Case{"gpt", "adamw", 32}),
                         [](const auto& zoo) {
                           const Case& c = zoo.param;
                           return std::string(c.model) + c.optimizer + std::to_string(c.batch);
                         });

}  // namespace
}  // namespace tare::testing

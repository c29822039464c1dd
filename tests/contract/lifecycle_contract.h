// The byte promises of purge, destroy, Experiment, budget and peaks, on every kind of device;
// traits as in backend_contract.h, with kRounding besides.
#pragma once

#include <optional>
#include <utility>

#include "contract/lifecycle_fixture.h"
#include "contract/traits.h"
#include "tare/experiment/experiment.h"
#include "tare/memory/offload.h"
#include "tare/memory/oom.h"

namespace tare::testing {

TYPED_TEST_SUITE_P(LifecycleContract);

TYPED_TEST_P(LifecycleContract, PurgeLeavesExactlyParametersAndBuffers) {
  auto l = this->learner();
  const int64_t state = this->state_bytes(l->model());
  EXPECT_EQ(this->allocated(), state);
  l->fit(1);
  EXPECT_GE(this->allocated(), state + 2 * this->gradient_bytes(l->model())) << "AdamW's state";
  const PurgeReport report = l->purge();
  EXPECT_EQ(this->allocated(), state);
  EXPECT_EQ(report.tracked_after - this->start_.allocated_bytes, state);
  EXPECT_GE(report.freed[Category::optimizer], 2 * this->asked_for_gradients(l->model()));
  l->destroy();
  EXPECT_EQ(this->allocated(), 0);
}

TYPED_TEST_P(LifecycleContract, ACompactingPurgeReturnsWhatItReserved) {
  auto l = this->learner();
  l->fit(1);
  const auto before = this->values(l->model());
  const PurgeReport report = l->purge({.compact = true});
  EXPECT_TRUE(report.compacted);
  EXPECT_EQ(this->usage().reserved_bytes - this->start_.reserved_bytes,
            this->segment_bytes(l->model()));
  if (memory::kernels_compute()) {
    EXPECT_EQ(before, this->values(l->model()));
  }
  EXPECT_EQ(l->fit(1).reason, StopReason::finished);
  l->destroy();
  this->backend_->reclaim();
  EXPECT_EQ(this->usage().reserved_bytes, this->start_.reserved_bytes);
}

TYPED_TEST_P(LifecycleContract, AnExperimentGivesBackWhatItConsumed) {
  auto l = this->learner();
  Experiment stage("stage", *l, {.out = nullptr});
  l->fit(1);
  const ExperimentReport report = stage.finish();
  const DeviceReport& device = report.on(TypeParam::device());
  EXPECT_GT(device.consumed.allocated_bytes, 0);
  EXPECT_EQ(device.reclaimed.allocated_bytes, device.consumed.allocated_bytes);
  EXPECT_EQ(device.residual_bytes(), 0);
  EXPECT_GT(device.peak_bytes, device.consumed.allocated_bytes);
  EXPECT_TRUE(report.leaks.empty());
}

TYPED_TEST_P(LifecycleContract, OutOfMemoryInAFitLeavesNothingAndTheFitGoesOn) {
  auto l = this->learner(64);
  l->fit(1);
  l->purge();
  this->backend_->reclaim();
  const int64_t held = this->allocated();
  const auto before = this->values(l->model());
  this->backend_->set_budget(this->usage().reserved_bytes + this->gradient_bytes(l->model()));
  EXPECT_THROW(l->fit(1), c10::OutOfMemoryError);
  this->backend_->set_budget({});
  if (memory::kernels_compute()) {
    EXPECT_EQ(before, this->values(l->model()));
  }
  l->purge();
  EXPECT_EQ(this->allocated(), held);
  EXPECT_EQ(l->fit(1).reason, StopReason::finished);
  l->destroy();
}

TYPED_TEST_P(LifecycleContract, CyclesEndAtTheSameBytes) {
  const bool by_host = this->backend_->traits().is_host || std::getenv("STAND_IN_VALUES");
  for (int i = 0; i < (by_host ? 5 : 100) && !this->HasFailure(); ++i) {
    SCOPED_TRACE(i);
    auto l = this->learner();
    const int64_t state = this->state_bytes(l->model()), segments = this->segment_bytes(l->model());
    this->expect_bytes(state, segments);
    l->fit(1);
    if (this->backend_->traits().pins) {
      EXPECT_GT(this->usage().pinned_bytes, this->start_.pinned_bytes) << "of batches";
    }
    l->save("c");
    l->load("c");
    l->freeze();
    l->fit(1);
    l->unfreeze();
    l->purge();
    this->expect_bytes(state, segments);
    l->fit(1);
    l->purge({.compact = true});
    this->expect_bytes(state, segments);
    if (i % 2 == 0)
      l->destroy();
    else
      l->export_to(this->folder_ / "net.tare", {.destroy = true});
    this->expect_bytes(0, 0);
  }
}

TYPED_TEST_P(LifecycleContract, ResumeEqualsTheStraightRun) {
  const auto fit = [](Learner& l) { return l.fit_one_cycle(2, {.max_lr = 0.01}); };
  LearnerOptions options;  // else cuDNN adds in any order
  options.kernels.deterministic = !TypeParam::device().is_cpu() && memory::kernels_compute();
  auto straight = this->learner(16, options), stopped = this->learner(16, options);
  torch::manual_seed(2);
  const double expected = fit(*straight).epochs.back().train_loss;
  torch::manual_seed(2);
  struct Stop final : Callback {
    [[nodiscard]] std::string name() const override { return "stop"; }
    Action after_batch(FitContext& c) override {
      if (c.step == 3) throw std::runtime_error("planted");
      return Action::proceed;
    }
  };
  EXPECT_THROW(stopped->fit_one_cycle(2, {.max_lr = 0.01, .callbacks = {std::make_shared<Stop>()}}),
               std::runtime_error);
  const double resumed = stopped->resume().epochs.back().train_loss;
  if (memory::kernels_compute()) {
    EXPECT_EQ(resumed, expected);
  }
}

TYPED_TEST_P(LifecycleContract, RecomputedAndOffloadedFitsAreTheSameInLess) {
  // Large enough that activations move.
  const Splits small = std::exchange(
      this->data_, {.train = tensor_dataset(torch::rand({32, 1, 64, 64}), torch::arange(32) % 10)});
  const auto train = [this](LearnerOptions options) {
    return this->train(*this->learner(16, std::move(options), "resnet18"));
  };
  const auto kept = train({}), recomputed = train({.recompute = {"all"}});
  const auto offloaded = train({.offload = {"all"}});
  const auto both = train({.recompute = {"all"}, .offload = {"all"}});
  for (const auto* trained : {&recomputed, &offloaded, &both}) this->expect_same(kept, *trained);
  EXPECT_LT(recomputed.peak_bytes, kept.peak_bytes);
  if (TypeParam::device().is_cpu()) {
    EXPECT_EQ(offloaded.peak_bytes, kept.peak_bytes) << "there is nowhere to go";
  } else {
    EXPECT_LT(offloaded.peak_bytes, kept.peak_bytes);
    EXPECT_LE(both.peak_bytes, recomputed.peak_bytes);
  }
  this->data_ = small;
}

// Copies beside the computation must neither come too late nor meet what gets their memory.
TYPED_TEST_P(LifecycleContract, OffloadedTensorsComeBackBitForBit) {
  const auto options = torch::TensorOptions(TypeParam::device());
  const auto input = torch::rand({4, 1 << 20}, options);
  const auto scale = torch::rand({4, 1 << 20}, options).requires_grad_();
  const auto gradient = [&](bool moves) {
    torch::Tensor x = input;
    for (int layer = 0; layer < 6; ++layer) {
      std::optional<memory::Offload> offload;
      if (moves) offload.emplace(TypeParam::device(), std::vector<torch::Tensor>{scale});
      x = (x * scale).sigmoid().square().add(x.tanh());
      if (moves) offload->finish();
      torch::full_like(input, layer).mul_(2);  // takes what has become free
    }
    return torch::autograd::grad({x.sum()}, {scale})[0];
  };
  const auto kept = gradient(false);
  for (int i = 0; i < 3; ++i) {
    const auto moved = gradient(true);
    if (memory::kernels_compute()) {
      EXPECT_TRUE(torch::equal(kept, moved)) << i;
    }
  }
}

TYPED_TEST_P(LifecycleContract, AFitThatDoesNotFitEqualsOneInMicroBatches) {
  struct Size final : Callback {
    [[nodiscard]] std::string name() const override { return "size"; }
    Action on_micro_batch(FitContext& c) override {
      samples = c.micro_batch_change->to;
      ++changes;
      return Action::proceed;
    }
    int64_t samples = 0, changes = 0;
  };
  // A card reserves segments of many MiB, which the batch must be large against.
  const int64_t side = TypeParam::device().is_cpu() ? 16 : 64;
  const int64_t width = TypeParam::device().is_cpu() ? 4 : 32;
  const Splits small = std::exchange(
      this->data_,
      {.train = tensor_dataset(torch::rand({32, 1, side, side}), torch::arange(32) % 10)});
  const auto whole = this->train(*this->learner(width));
  const auto half = this->train(*this->learner(width, {.micro_batch = 8}));
  ASSERT_LT(half.needed_bytes, whole.needed_bytes);
  const auto size = std::make_shared<Size>();
  LearnerOptions options;  // else cuDNN adds in any order
  options.kernels.deterministic = !TypeParam::device().is_cpu() && memory::kernels_compute();
  options.callbacks = {size};
  auto l = this->learner(width, options);
  this->backend_->reclaim();
  const int64_t allowed = (half.needed_bytes + whole.needed_bytes) / 2;
  this->backend_->set_budget(this->usage().reserved_bytes + allowed);
  const auto adapted = this->train(*l);
  this->backend_->set_budget({});
  ASSERT_GE(size->changes, 1);
  // Libraries of a card keep workspaces of their own, so the first smaller size may be too large.
  ASSERT_LE(size->changes, TypeParam::device().is_cpu() ? 1 : 2);
  ASSERT_LT(size->samples, 16);
  EXPECT_LE(adapted.peak_bytes, allowed);
  options.callbacks.clear();
  options.micro_batch = size->samples;
  this->expect_same(adapted, this->train(*this->learner(width, options)));
  this->data_ = small;
}

REGISTER_TYPED_TEST_SUITE_P(LifecycleContract, PurgeLeavesExactlyParametersAndBuffers,
                            ACompactingPurgeReturnsWhatItReserved,
                            AnExperimentGivesBackWhatItConsumed,
                            OutOfMemoryInAFitLeavesNothingAndTheFitGoesOn, CyclesEndAtTheSameBytes,
                            ResumeEqualsTheStraightRun, RecomputedAndOffloadedFitsAreTheSameInLess,
                            OffloadedTensorsComeBackBitForBit,
                            AFitThatDoesNotFitEqualsOneInMicroBatches);

}  // namespace tare::testing

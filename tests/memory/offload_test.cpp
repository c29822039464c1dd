// Saved tensors that wait on the host: the same gradients, bit for bit, and the device's memory
// free in between. On the CPU the "host" is ordinary memory, so that the copies can be seen.
#include "tare/memory/offload.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/types.h>

#include <optional>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/memory/saved_tensors.h"

namespace tare::memory {
namespace {

using torch::Tensor;

constexpr int64_t kRows = 128, kColumns = 256;  // 128 KiB

int64_t tracked() { return backend(c10::kCPU).usage().allocated_bytes; }

/// Views of one storage, tensors saved twice, one changed after its scope, and a product of
/// weights.
struct Layers {
  std::vector<Tensor> weights{};
  Tensor input = torch::rand({kRows, kColumns});
  bool moves = false;

  Layers() {
    torch::manual_seed(5);
    for (int i = 0; i < 3; ++i)
      weights.push_back(torch::rand({kColumns, kColumns}).div_(kColumns).requires_grad_());
  }
  [[nodiscard]] Tensor layer(const Tensor& x, const Tensor& weight) const {
    const auto halves = x.matmul(weight).chunk(2, 1);
    const Tensor gate = halves[1].sigmoid().mul(halves[0]);  // sigmoid keeps its output
    return torch::cat({gate.tanh(), halves[0].relu()}, 1).add(x).square();
  }
  [[nodiscard]] Tensor forward() const {
    Tensor x = input;
    for (const auto& weight : weights) {
      if (!moves) {
        x = layer(x, weight);
        continue;
      }
      Offload offload(c10::kCPU, weights);
      x = layer(x, weight);
      offload.finish();
    }
    return x.mean();
  }
  /// Gradients of the weights.
  [[nodiscard]] std::vector<Tensor> backward(const Tensor& loss, bool retain = false) const {
    return torch::autograd::grad({loss}, weights, {}, retain);
  }
  [[nodiscard]] std::vector<Tensor> gradients() const { return backward(forward()); }
};

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
}

TEST(Offload, GivesTheSameGradients) {
  Layers layers;
  const auto kept = layers.gradients();
  layers.moves = true;
  const int64_t before = tracked();
  expect_equal(kept, layers.gradients());
  EXPECT_EQ(tracked(), before);
  const Tensor loss = layers.forward();
  expect_equal(kept, layers.backward(loss, true));
  expect_equal(kept, layers.backward(loss));
}

TEST(Offload, MovesAStorageOnceAndFreesIt) {
  const Tensor weight = torch::rand({kColumns, kColumns}).requires_grad_();
  const void* data = nullptr;
  const int64_t before = tracked();
  {
    const SavedTensors noted;
    const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
    const int64_t start = tracked();
    const auto bytes = static_cast<int64_t>(x.nbytes());
    Tensor loss;
    {
      Offload offload(c10::kCPU, {weight});
      const Tensor y = x.matmul(weight);  // x: its copy
      const auto halves = y.chunk(2, 1);
      data = y.const_data_ptr();
      loss = halves[0].mul(halves[1]).sum();  // y: its copy, for two views
      EXPECT_EQ(tracked(), start + 3 * bytes + 4);
      EXPECT_TRUE(SavedTensors::contains(data));
      offload.finish();
    }
    EXPECT_EQ(tracked(), start + 2 * bytes + 4) << "y is gone";
    EXPECT_FALSE(SavedTensors::contains(data));
    EXPECT_TRUE(SavedTensors::contains(weight.const_data_ptr())) << "it stays, and is saved";
    EXPECT_FALSE(SavedTensors::contains(x.const_data_ptr()));
    loss.backward();
    EXPECT_EQ(tracked(), start + bytes + static_cast<int64_t>(weight.nbytes()) + 4)
        << "gradients and the loss";
    weight.mutable_grad().reset();
  }
  EXPECT_EQ(tracked(), before);
}

TEST(Offload, BringsAScopeBackAheadOfItsNeed) {
  std::vector<int64_t> peaks;
  for (const size_t scopes : {1U, 2U, 3U}) {
    Layers layers;
    layers.moves = true;
    layers.weights.resize(scopes);
    const Tensor loss = layers.forward();
    const PeakScope peak(c10::kCPU);
    (void)layers.backward(loss);
    peaks.push_back(peak.peak_above_start_bytes());
  }
  EXPECT_GT(peaks[1], peaks[0]) << "the first comes back with the second";
  const int64_t gradient = kColumns * kColumns * 4;
  EXPECT_LE(peaks[2], peaks[1] + gradient) << "never three at once";
}

TEST(Offload, WhatTwoScopesShareMovesOnce) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  const int64_t start = tracked();
  const auto bytes = static_cast<int64_t>(x.nbytes());
  Tensor loss;
  {
    Tensor between;
    Offload first(c10::kCPU, {});
    between = x.sigmoid();  // its output
    first.finish();
    Offload second(c10::kCPU, {});
    loss = between.square().sum();  // its input
    second.finish();
    EXPECT_EQ(tracked(), start + 2 * bytes + 4) << "the tensor, which is in use, and one copy";
  }
  EXPECT_EQ(tracked(), start + bytes + 4);
  loss.backward();
  const Tensor y = x.detach().sigmoid();
  EXPECT_TRUE(torch::allclose(x.grad(), 2 * y * y * (1 - y)));
}

TEST(Offload, ABackwardInsideTheScopeIsNotTheEnd) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  Offload offload(c10::kCPU, {});
  const Tensor loss = x.sigmoid().sum();
  const auto gradient = [&] { return torch::autograd::grad({loss}, {x}, {}, true)[0]; };
  const Tensor before = gradient();
  offload.finish();
  EXPECT_TRUE(torch::equal(before, gradient()));
}

TEST(Offload, LeavesSmallTensorsAndSlicesWhereTheyAre) {
  const Tensor table = torch::rand({64, kRows, kColumns});
  const Tensor scale = torch::ones({}).requires_grad_();
  Offload offload(c10::kCPU, {});
  const int64_t before = tracked();
  const Tensor slice = table[7] * scale, small = torch::rand({4}) * scale;
  EXPECT_EQ(tracked(), before + static_cast<int64_t>(slice.nbytes()) + 2 * 16);
  offload.finish();
  (slice.sum() + small.sum()).backward();
  EXPECT_TRUE(scale.grad().defined());
}

TEST(Offload, RefusesAChangeInPlaceInTheScopeOnly) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  const auto gradient = [&](bool inside) {
    Tensor y;
    std::optional<Offload> offload(std::in_place, c10::kCPU, std::vector<Tensor>{});
    y = x.sigmoid();
    if (inside) y.detach().add_(1);
    offload->finish();
    offload.reset();
    if (!inside) y.detach().add_(1);
    return torch::autograd::grad({y.sum()}, {x})[0];
  };
  EXPECT_THROW((void)gradient(true), StateError);
  flush_ready_queue();
  const Tensor plain = torch::autograd::grad({x.sigmoid().sum()}, {x})[0];
  EXPECT_TRUE(torch::equal(gradient(false), plain));
}

TEST(Offload, WithoutItsEndEverythingStays) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  const Tensor plain = torch::autograd::grad({x.sigmoid().square().sum()}, {x})[0];
  Tensor loss;
  const void* data = nullptr;
  {
    const Offload offload(c10::kCPU, {});
    const Tensor y = x.sigmoid();
    data = y.const_data_ptr();
    loss = y.square().sum();
  }
  EXPECT_TRUE(SavedTensors::contains(data));
  EXPECT_TRUE(torch::equal(torch::autograd::grad({loss}, {x})[0], plain));
}

TEST(Offload, InsideAnotherTheInnerOneTakes) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  const auto bytes = static_cast<int64_t>(x.nbytes());
  const auto forward = [&] { return x.sigmoid().square().tanh().sum(); };
  const Tensor plain = torch::autograd::grad({forward()}, {x})[0];
  const int64_t start = tracked();
  Tensor loss;
  {
    Offload outer(c10::kCPU, {});
    Tensor square = [&] {
      const Tensor first = x.sigmoid();  // for outer; then for inner, as its input
      Offload inner(c10::kCPU, {});
      Tensor result = first.square();
      inner.finish();
      return result;
    }();
    EXPECT_EQ(tracked(), start + 4 * bytes) << "outer still has its own on the device";
    loss = square.tanh().sum();
    square.reset();
    outer.finish();
  }
  EXPECT_EQ(tracked(), start + 3 * bytes + 4) << "copies of sigmoid, twice, and of tanh";
  EXPECT_TRUE(torch::equal(torch::autograd::grad({loss}, {x})[0], plain));
}

// Parts of one storage that are changed in place apart, as in LibTorch's LSTM cell on the host.
TEST(Offload, PartsThatCountTheirVersionsApartAreSavedApart) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  const auto gradient = [&](bool moves) {
    std::optional<Offload> offload;
    if (moves) offload.emplace(c10::kCPU, std::vector<Tensor>{});
    const auto parts = x.mul(2).unsafe_chunk(2, 1);
    parts[0].sigmoid_();
    parts[1].sigmoid_();
    const Tensor loss = parts[0].mul(parts[1]).sum();
    if (moves) offload->finish();
    return torch::autograd::grad({loss}, {x})[0];
  };
  EXPECT_TRUE(torch::equal(gradient(false), gradient(true)));
}

TEST(Offload, WhatSomebodyElseHoldsIsNotBroughtBack) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  const auto bytes = static_cast<int64_t>(x.nbytes());
  const Tensor plain = torch::autograd::grad({x.sigmoid().sum()}, {x})[0];
  const auto peak_of_backward = [&](bool changed) {
    Offload offload(c10::kCPU, {});
    const Tensor y = x.sigmoid();
    const Tensor loss = y.sum();
    offload.finish();
    if (changed) y.detach().mul_(2);
    const PeakScope peak(c10::kCPU);
    EXPECT_TRUE(torch::equal(torch::autograd::grad({loss}, {x})[0], plain));
    return peak.peak_above_start_bytes();
  };
  EXPECT_EQ(peak_of_backward(false) + bytes, peak_of_backward(true));
}

TEST(Offload, TwoLossesOnOneTrunkGetTheirOwn) {
  const Tensor x = torch::rand({kRows, kColumns}).requires_grad_();
  const auto gradients = [&](bool moves, uint64_t k) {
    std::vector<Tensor> losses;
    Tensor y;
    for (int head = 0; head < 3; ++head) {
      std::optional<Offload> offload;
      if (moves) offload.emplace(c10::kCPU, std::vector<Tensor>{});
      if (head == 0) {
        y = x.sigmoid();
      } else {
        losses.push_back(y.mul(head).tanh().mul(y).sum());
      }
      if (moves) offload->finish();
    }
    y.reset();
    std::vector<Tensor> found;
    host_allocator::fail_at(k);
    try {
      (void)torch::autograd::grad({losses[1]}, {x}, {}, true);
    } catch (const c10::Error&) {
    }
    host_allocator::fail_at(0);
    flush_ready_queue();
    for (const auto& loss : losses)
      found.push_back(torch::autograd::grad({loss}, {x}, {}, true)[0]);
    return found;
  };
  const auto plain = gradients(false, 0);
  for (uint64_t k = 0; k < 12; ++k) expect_equal(plain, gradients(true, k));
}

TEST(Offload, TheChainContinuesPastScopesThatSavedNothing) {
  std::vector<int64_t> peaks;
  for (const bool with_empty : {false, true}) {
    Layers layers;
    layers.moves = true;
    Tensor x = layers.input;
    for (const auto& weight : layers.weights) {
      Offload offload(c10::kCPU, layers.weights);
      x = layers.layer(x, weight);
      offload.finish();
      if (!with_empty) continue;
      Offload nothing(c10::kCPU, {});
      nothing.finish();
    }
    const Tensor loss = x.mean();
    x.reset();
    const PeakScope peak(c10::kCPU);
    (void)layers.backward(loss);
    peaks.push_back(peak.peak_above_start_bytes());
  }
  EXPECT_EQ(peaks[0], peaks[1]);
}

TEST(Offload, EveryFailedAllocationLeavesNothing) {
  Layers layers;
  const auto kept = layers.gradients();
  layers.moves = true;
  const int64_t before = tracked();
  uint64_t k = 1;
  for (;; ++k) {
    host_allocator::fail_at(k);
    std::vector<Tensor> found;
    try {
      found = layers.gradients();
    } catch (const c10::Error&) {
    }
    host_allocator::fail_at(0);
    if (!found.empty()) {
      expect_equal(kept, found);
      break;
    }
    flush_ready_queue();
    ASSERT_EQ(tracked(), before) << "allocation " << k;
  }
  EXPECT_GT(k, 30U);
  expect_equal(kept, layers.gradients());
}

TEST(Offload, AskedAgainAfterAFailureItBringsBackTheRest) {
  Layers layers;
  const auto kept = layers.gradients();
  layers.moves = true;
  for (uint64_t k = 1; k < 200; ++k) {
    const Tensor loss = layers.forward();
    host_allocator::fail_at(k);
    bool failed = false;
    try {
      (void)layers.backward(loss, /*retain=*/true);
    } catch (const c10::Error&) {
      failed = true;
    }
    host_allocator::fail_at(0);
    flush_ready_queue();
    expect_equal(kept, layers.backward(loss));
    if (!failed) return;
  }
  FAIL() << "it never went through";
}

}  // namespace
}  // namespace tare::memory

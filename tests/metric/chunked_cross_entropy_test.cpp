// The cross-entropy of many logits in parts against LibTorch's, in bits and bytes.
#include "tare/metric/chunked_cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "tare/memory/backend.h"
#include "tare/metric/loss.h"

namespace tare::testing {
namespace {

using at::Tensor;

Tensor by_libtorch(const Tensor& logits, const Tensor& labels, int64_t reduction) {
  return at::cross_entropy_loss(logits, labels, {}, reduction, kIgnoredLabel);
}

Tensor in_parts(const Tensor& logits, const Tensor& labels, int64_t reduction) {
  auto loss = chunked_cross_entropy(logits, labels, kIgnoredLabel, reduction);
  EXPECT_TRUE(loss.has_value());
  return loss.value_or(Tensor());
}

using Loss3 = Tensor (*)(const Tensor&, const Tensor&, int64_t);

/// Returns the loss and the gradient of logits that lie as `arranged` returns them.
std::pair<Tensor, Tensor> results(Loss3 loss, const Tensor& values, const Tensor& labels,
                                  int64_t reduction,
                                  const std::function<Tensor(const Tensor&)>& arranged) {
  const Tensor leaf = values.clone().requires_grad_(true);
  const Tensor result = loss(arranged(leaf), labels, reduction);
  at::manual_seed(3);
  result.backward(reduction == at::Reduction::None ? at::rand(result.sizes())
                                                   : at::rand({}).add(0.5));
  return {result.detach(), leaf.grad()};
}

constexpr int64_t kClasses = 4100;

Tensor labels_of(at::IntArrayRef sizes) {
  const Tensor labels = at::randint(kClasses, sizes, at::kLong);
  return labels.masked_fill(labels.remainder(7).eq(0), kIgnoredLabel);
}

void expect_equal(const Tensor& values, const Tensor& labels,
                  const std::function<Tensor(const Tensor&)>& arranged, bool bits) {
  for (const int64_t reduction : {at::Reduction::None, at::Reduction::Mean, at::Reduction::Sum}) {
    const auto [loss, gradient] = results(in_parts, values, labels, reduction, arranged);
    const auto [expected, expected_gradient] =
        results(by_libtorch, values, labels, reduction, arranged);
    ASSERT_EQ(loss.sizes(), expected.sizes());
    if (bits) {
      EXPECT_TRUE(at::equal(loss, expected)) << reduction;
      EXPECT_TRUE(at::equal(gradient, expected_gradient)) << reduction;
    } else {
      EXPECT_TRUE(at::allclose(loss, expected, 1e-6, 1e-6)) << reduction;
      EXPECT_TRUE(at::allclose(gradient, expected_gradient, 1e-5, 1e-8)) << reduction;
    }
  }
}

TEST(ChunkedCrossEntropy, HasTheBitsOfLibTorchForRows) {
  at::manual_seed(1);
  const auto as_it_is = [](const Tensor& leaf) { return leaf; };
  expect_equal(at::randn({2100, kClasses}), labels_of({2100}), as_it_is, true);
}

TEST(ChunkedCrossEntropy, HasTheBitsOfLibTorchForMapsOfClasses) {
  at::manual_seed(1);
  const auto as_it_is = [](const Tensor& leaf) { return leaf; };
  expect_equal(at::randn({21, kClasses, 10, 10}), labels_of({21, 10, 10}), as_it_is, true);
}

TEST(ChunkedCrossEntropy, EqualsLibTorchWhereClassesAreInnermost) {
  at::manual_seed(1);
  expect_equal(
      at::randn({21, 100, kClasses}), labels_of({21, 100}),
      [](const Tensor& leaf) { return leaf.transpose(1, 2); }, false);
}

TEST(ChunkedCrossEntropy, IsNotANumberWithoutALabelThatCounts) {
  const Tensor labels = at::full({2100}, kIgnoredLabel, at::kLong);
  EXPECT_TRUE(
      std::isnan(in_parts(at::randn({2100, kClasses}), labels, at::Reduction::Mean).item<float>()));
}

TEST(ChunkedCrossEntropy, LeavesToLibTorchWhatItDoesNotKnow) {
  const Tensor logits = at::randn({2100, kClasses}), labels = labels_of({2100});
  const auto is_chunked = [](const Tensor& l, const Tensor& t) {
    return chunked_cross_entropy(l, t, kIgnoredLabel, at::Reduction::Mean).has_value();
  };
  EXPECT_TRUE(is_chunked(logits, labels));
  EXPECT_FALSE(is_chunked(logits.narrow(0, 0, 500), labels.narrow(0, 0, 500))) << "few";
  EXPECT_FALSE(is_chunked(logits.to(at::kDouble), labels));
  EXPECT_FALSE(is_chunked(logits, logits)) << "probabilities";
  EXPECT_FALSE(is_chunked(logits.t(), at::randint(2100, {kClasses}, at::kLong)));
}

TEST(ChunkedCrossEntropy, HasABackwardOfItsBackward) {
  at::manual_seed(1);
  const Tensor labels = labels_of({2100}), values = at::randn({2100, kClasses});
  const auto second = [&](Loss3 loss) {
    const Tensor leaf = values.clone().requires_grad_(true);
    const Tensor result = loss(leaf, labels, at::Reduction::Mean);
    result.backward({}, std::nullopt, /*create_graph=*/true);
    const Tensor gradient = leaf.grad();
    leaf.mutable_grad() = Tensor();
    gradient.square().sum().backward();
    return leaf.grad();
  };
  EXPECT_TRUE(at::allclose(second(in_parts), second(by_libtorch), 1e-5, 1e-12));
}

/// Returns the bytes that a forward and a backward of the loss take beside the logits.
int64_t peak_of(Loss3 loss) {
  const Tensor labels = labels_of({2100}),
               logits = at::randn({2100, kClasses}).requires_grad_(true);
  const memory::PeakScope peak(at::kCPU);
  loss(logits, labels, at::Reduction::Mean).backward();
  return peak.peak_above_start_bytes();
}

TEST(ChunkedCrossEntropy, HoldsLittleBesideTheGradient) {
  const auto logits = static_cast<double>(2100 * kClasses * sizeof(float));
  EXPECT_GT(static_cast<double>(peak_of(by_libtorch)), 2.9 * logits);
  EXPECT_LT(static_cast<double>(peak_of(in_parts)), 1.3 * logits);
}

TEST(ChunkedCrossEntropy, IsWhatTheNamedLossComputes) {
  const auto named = [](const Tensor& logits, const Tensor& labels, int64_t /*reduction*/) {
    return resolve("cross_entropy").mean(logits, labels);
  };
  EXPECT_EQ(peak_of(named), peak_of(in_parts));
  const auto smoothed = [](const Tensor& logits, const Tensor& labels, int64_t /*reduction*/) {
    return resolve({"cross_entropy", CrossEntropyOptions{.label_smoothing = 0.1}})
        .mean(logits, labels);
  };
  EXPECT_GT(peak_of(smoothed), peak_of(in_parts)) << "by LibTorch";
}

}  // namespace
}  // namespace tare::testing

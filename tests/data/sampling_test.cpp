// Weighted sampling, alone and in a loader.
#include "tare/data/sampling.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tare/base/error.h"
#include "tare/data/loader.h"

namespace tare {
namespace {

using ::testing::ElementsAre;

std::map<int64_t, int64_t> counted(const std::vector<int64_t>& indices) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t i : indices) ++counts[i];
  return counts;
}

TEST(Sampling, DrawsEachSampleAsOftenAsItsWeightSays) {
  const std::vector<double> weights{1, 0, 2.5, 0.5, 4, 0};
  double fifth = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const auto indices = weighted_indices(weights, seed);
    ASSERT_EQ(indices.size(), weights.size());
    EXPECT_TRUE(std::ranges::is_sorted(indices));
    auto counts = counted(indices);
    for (size_t i = 0; i < weights.size(); ++i) {
      const double expected = 6 * weights[i] / 8;
      const auto times = static_cast<double>(counts[static_cast<int64_t>(i)]);
      EXPECT_GE(times, std::floor(expected)) << i;
      EXPECT_LE(times, std::ceil(expected)) << i;
    }
    fifth += static_cast<double>(counts[3]);
  }
  EXPECT_NEAR(fifth / 2000, 6 * 0.5 / 8, 0.05) << "the mean over seeds is not the weight's share";
}

TEST(Sampling, WithEqualWeightsDrawsEachOnce) {
  for (const double weight : {1.0, 1.0 / 3, 1e-300, 1e300 / 7}) {
    const auto counts = counted(weighted_indices(std::vector<double>(7, weight), 5));
    EXPECT_EQ(counts.size(), 7U) << weight;
  }
}

TEST(Sampling, RefusesWhatIsNoWeight) {
  const auto check = [](std::vector<double> weights) { check_weights(weights, 2, "test"); };
  check({0, 1});
  EXPECT_THROW(check({1}), ConfigError);
  EXPECT_THROW(check({1, -1}), ConfigError);
  EXPECT_THROW(check({1, std::nan("")}), ConfigError);
  EXPECT_THROW(check({1, INFINITY}), ConfigError);
  EXPECT_THROW(check({0, 0}), ConfigError);
  EXPECT_THROW(check({1e308, 1e308}), ConfigError);
}

TEST(Sampling, BalancesClassesOfVeryDifferentSizes) {
  at::Tensor labels = at::full({100}, 0, at::kLong);
  labels.slice(0, 90, 98).fill_(1);
  labels.slice(0, 98).fill_(-100);  // ignored by the losses
  const DatasetPtr data = tensor_dataset(at::arange(100).view({100, 1}), labels);
  const auto weights = balancing_weights(data, "test");
  EXPECT_EQ(weights->at(0), 1.0 / 90);
  EXPECT_EQ(weights->at(90), 1.0 / 8);
  EXPECT_EQ(weights->at(98), 0);
  Loader loader(data, {.batch = 16, .shuffle = true, .weights = weights, .seed = 3});
  std::map<int64_t, int64_t> counts;
  loader.start(0);
  for (Batch batch; loader.next(batch);)
    for (int64_t i = 0; i < batch.size(); ++i) ++counts[batch.target()[i].item<int64_t>()];
  EXPECT_EQ(counts[-100], 0);
  EXPECT_NEAR(static_cast<double>(counts[0]), 50, 1);
  EXPECT_NEAR(static_cast<double>(counts[1]), 50, 1);
}

TEST(Sampling, NeedsClassLabelsToBalance) {
  const DatasetPtr data = tensor_dataset(at::rand({4, 1}), at::rand({4, 1}));
  EXPECT_THROW((void)balancing_weights(data, "test"), ConfigError);
}

TEST(Sampling, OfALoaderDependsOnSeedAndEpochAlone) {
  const DatasetPtr data = tensor_dataset(at::arange(50).view({50, 1}), at::arange(50));
  auto weights = std::make_shared<std::vector<double>>(50, 1.0);
  for (size_t i = 0; i < 5; ++i) weights->at(i) = 20;
  const auto samples = [&](int64_t workers, int64_t batch, int64_t epoch, int64_t position) {
    Loader loader(
        data, {.batch = batch, .shuffle = true, .weights = weights, .workers = workers, .seed = 9});
    loader.start(epoch, position);
    std::vector<int64_t> all;
    for (Batch next; loader.next(next);)
      for (int64_t i = 0; i < next.size(); ++i) all.push_back(next.target()[i].item<int64_t>());
    return all;
  };
  const auto whole = samples(0, 8, 2, 0);
  EXPECT_EQ(whole.size(), 50U);
  EXPECT_EQ(samples(2, 8, 2, 0), whole);
  EXPECT_EQ(samples(0, 5, 2, 0), whole);
  EXPECT_NE(samples(0, 8, 3, 0), whole);
  EXPECT_EQ(samples(0, 8, 2, 3), std::vector<int64_t>(whole.begin() + 24, whole.end()));
  EXPECT_FALSE(std::ranges::is_sorted(whole));
}

}  // namespace
}  // namespace tare

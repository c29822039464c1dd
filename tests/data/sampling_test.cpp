// Weighted sampling and batches of similar length, alone and in a loader.
#include "tare/data/sampling.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "tare/base/error.h"
#include "tare/data/collate.h"
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

TEST(Sampling, DrawsClassesAsOftenAsTheirWeightsSay) {
  at::Tensor labels = at::tensor({0, 0, 1, 2, -100}, at::kLong);
  const DatasetPtr data = tensor_dataset(at::arange(5).view({5, 1}), labels, {"cat", "dog", "emu"});
  const auto weights = class_weights(data, {{"cat", 3}, {"emu", 0}}, "test");
  EXPECT_THAT(*weights, ElementsAre(3, 3, 1, 0, 0));
  const auto refused = [&](const DatasetPtr& of, std::map<std::string, double> wrong,
                           const char* why) {
    EXPECT_THAT([&] { (void)class_weights(of, wrong, "test"); },
                ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr(why)));
  };
  refused(data, {{"cats", 3}}, "did you mean \"cat\"");
  refused(data, {{"cat", 0}, {"dog", 0}, {"emu", 0}}, "leaves no sample");
  refused(tensor_dataset(at::ones({2, 1}), at::ones({2})), {{"cat", 1}}, "class labels");
  refused(tensor_dataset(at::ones({2, 1}), at::ones({2}, at::kLong)), {{"cat", 1}}, "with names");
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

/// Samples of 1 to 200 elements: most are short, and the target of each is its index.
DatasetPtr texts_of_many_lengths(int64_t count, const PadOptions& options = {}) {
  std::vector<Batch> samples;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t draw = i * 7919 % 200;
    samples.push_back(
        {at::full({1 + draw * draw / 200}, i, at::kLong), at::full({}, i, at::kLong)});
  }
  return sample_dataset(std::move(samples), pad(options));
}

LoaderOptions grouped(int64_t batch) {
  return {.batch = batch, .shuffle = true, .group_by_length = true, .seed = 4};
}

/// The targets of the batches of an epoch, from a position on.
std::vector<std::vector<int64_t>> batches_of(const DatasetPtr& data, const LoaderOptions& options,
                                             int64_t epoch, int64_t position = 0) {
  Loader loader(data, options);
  loader.start(epoch, position);
  std::vector<std::vector<int64_t>> all;
  for (Batch next; loader.next(next);) {
    const at::Tensor labels = next.target().contiguous();
    const auto* first = labels.const_data_ptr<int64_t>();
    all.emplace_back(first, first + labels.numel());
  }
  return all;
}

TEST(GroupedByLength, AnEpochHasEverySampleOnceInBatchesOfSimilarLength) {
  const DatasetPtr data = texts_of_many_lengths(1003);
  const auto batches = batches_of(data, grouped(10), 0);
  ASSERT_EQ(batches.size(), 101U);
  std::set<int64_t> seen;
  int64_t spread = 0;
  for (const auto& batch : batches) {
    const auto [least, most] =
        std::ranges::minmax(batch, {}, [&](int64_t i) { return data->sample_size(i); });
    spread += data->sample_size(most) - data->sample_size(least);
    seen.insert(batch.begin(), batch.end());
  }
  EXPECT_EQ(seen.size(), 1003U);
  EXPECT_EQ(batches.back().size(), 3U);
  EXPECT_LT(static_cast<double>(spread) / 101, 20) << "of lengths from 1 to 200";
  const auto longest = [&](const std::vector<int64_t>& batch) {
    return data->sample_size(batch.front());
  };
  EXPECT_EQ(longest(batches.front()), data->sample_shape()[0]) << "the longest is not in the first";
  std::vector<int64_t> order;
  for (const auto& batch : batches) order.push_back(longest(batch));
  EXPECT_FALSE(std::ranges::is_sorted(order.begin() + 1, order.end()));
  EXPECT_FALSE(std::ranges::is_sorted(order.begin() + 1, order.end(), std::greater<>()));
}

TEST(GroupedByLength, DependsOnSeedAndEpochAlone) {
  const DatasetPtr data = texts_of_many_lengths(203);
  const LoaderOptions options = grouped(8);
  const auto whole = batches_of(data, options, 2);
  LoaderOptions changed = options;
  changed.workers = 2;
  EXPECT_EQ(batches_of(data, changed, 2), whole);
  changed = options;
  changed.seed = 5;
  EXPECT_NE(batches_of(data, changed, 2), whole);
  EXPECT_NE(batches_of(data, options, 3), whole);
  const auto rest = batches_of(data, options, 2, 5);
  EXPECT_EQ(rest, decltype(whole)(whole.begin() + 5, whole.end()));
}

TEST(GroupedByLength, PutsOtherSamplesTogetherInEachEpoch) {
  for (const int64_t count : {20, 60, 203}) {
    const DatasetPtr data = texts_of_many_lengths(count);
    std::set<std::set<int64_t>> one, other;
    for (const auto& batch : batches_of(data, grouped(8), 0))
      one.insert({batch.begin(), batch.end()});
    for (const auto& batch : batches_of(data, grouped(8), 1))
      other.insert({batch.begin(), batch.end()});
    EXPECT_NE(one, other) << count;
  }
}

TEST(GroupedByLength, SkipsSamplesOfEveryLengthWithDropLast) {
  const DatasetPtr data = texts_of_many_lengths(103);
  LoaderOptions options = grouped(10);
  options.drop_last = true;
  int64_t skipped = 0, length = 0;
  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    std::set<int64_t> seen;
    for (const auto& batch : batches_of(data, options, epoch))
      seen.insert(batch.begin(), batch.end());
    EXPECT_EQ(seen.size(), 100U);
    for (int64_t i = 0; i < 103; ++i)
      if (!seen.contains(i)) ++skipped, length += data->sample_size(i);
  }
  double mean = 0;
  for (int64_t i = 0; i < 103; ++i) mean += static_cast<double>(data->sample_size(i)) / 103;
  EXPECT_EQ(skipped, 600);
  EXPECT_NEAR(static_cast<double>(length) / 600, mean, 10)
      << "short samples are skipped more often";
}

TEST(GroupedByLength, TakesBatchesOfAnySize) {
  const DatasetPtr data = texts_of_many_lengths(11);
  for (const int64_t batch : {1, 2, 5, 6, 10, 11, 40}) {
    int64_t count = 0;
    const auto batches = batches_of(data, grouped(batch), 0);
    for (const auto& one : batches) count += std::ssize(one);
    EXPECT_EQ(count, 11) << batch;
    EXPECT_EQ(std::ssize(batches), (10 + batch) / batch) << batch;
    EXPECT_EQ(data->sample_size(batches.front().front()), data->sample_shape()[0]) << batch;
  }
}

TEST(GroupedByLength, GroupsSamplesThatAreDrawnByWeight) {
  const DatasetPtr data = texts_of_many_lengths(200);
  auto weights = std::make_shared<std::vector<double>>(200, 1.0);
  for (size_t i = 0; i < 100; ++i) weights->at(i) = 0;
  LoaderOptions options = grouped(10);
  options.weights = weights;
  std::map<int64_t, int64_t> counts;
  for (const auto& batch : batches_of(data, options, 0))
    for (const int64_t i : batch) ++counts[i];
  EXPECT_EQ(counts.size(), 100U);
  EXPECT_GE(counts.begin()->first, 100);
  LoaderOptions apart = options;
  apart.group_by_length = false;
  EXPECT_LT(Loader(data, options).padding_share(), Loader(data, apart).padding_share() / 2);
}

TEST(GroupedByLength, RefusesSamplesOfOneSizeAndAFixedOrder) {
  const DatasetPtr fixed = tensor_dataset(at::rand({4, 2}));
  EXPECT_THAT([&] { Loader(fixed, grouped(2)); },
              ::testing::ThrowsMessage<ConfigError>(
                  ::testing::HasSubstr("group_by_length needs samples of different lengths")));
  LoaderOptions options = grouped(2);
  options.shuffle = false;
  EXPECT_THAT([&] { Loader(texts_of_many_lengths(4), options); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("set one of them only")));
}

// The share that a batch shows: what `lengths` do not cover of the padded input.
TEST(PaddingShare, IsThatOfTheBatchesOfTheEpoch) {
  const DatasetPtr data = texts_of_many_lengths(103),
                   multiple = texts_of_many_lengths(103, {.multiple = 64}),
                   part = subset(multiple, {0, 1, 2, 3, 50, 51, 52, 90, 91, 92, 93});
  for (const auto& [of, group] : {std::pair(data, false), std::pair(data, true),
                                  std::pair(multiple, false), std::pair(part, true)}) {
    LoaderOptions options = grouped(10);
    options.group_by_length = group;
    Loader loader(of, options);
    for (const int64_t epoch : {0, 3}) {
      double elements = 0, given = 0;
      loader.start(epoch);
      for (Batch batch; loader.next(batch);) {
        elements += static_cast<double>(batch.input().numel());
        given += batch.input("lengths").sum().item<double>();
      }
      EXPECT_NEAR(loader.padding_share(epoch), 1 - given / elements, 1e-12);
    }
  }
  EXPECT_EQ(Loader(tensor_dataset(at::rand({4, 2})), {.batch = 2}).padding_share(), 0);
}

}  // namespace
}  // namespace tare

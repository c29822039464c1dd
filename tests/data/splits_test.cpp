// Splits and folds: disjoint, complete, by class.
#include "tare/data/splits.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "data/numbers.h"
#include "tare/base/error.h"

namespace tare {
namespace {

using testing::numbers;

std::set<int64_t> samples(const DatasetPtr& data) {
  const at::Tensor all = data->targets();
  const int64_t* begin = all.const_data_ptr<int64_t>();
  return {begin, begin + all.numel()};
}

int64_t size_of(const DatasetPtr& data) { return data ? data->size() : 0; }

TEST(Split, PartsAreDisjointAndComplete) {
  const Splits parts = split(numbers(100), {.train = 0.7, .valid = 0.2, .test = 0.1}, 5);
  EXPECT_EQ(parts.train->size(), 70);
  EXPECT_EQ(parts.valid->size(), 20);
  EXPECT_EQ(parts.test->size(), 10);
  std::set<int64_t> all = samples(parts.train);
  all.merge(samples(parts.valid));
  all.merge(samples(parts.test));
  EXPECT_EQ(all.size(), 100U);
}

TEST(Split, DependsOnTheSeed) {
  const auto valid = [](uint64_t seed) { return samples(split(numbers(100), {}, seed).valid); };
  EXPECT_EQ(valid(1), valid(1));
  EXPECT_NE(valid(1), valid(2));
}

TEST(Split, TakesCountsAndLeavesPartsOut) {
  const Splits parts = split(numbers(100), {.train = 30, .valid = 5, .test = 0});
  EXPECT_EQ(size_of(parts.train), 30);
  EXPECT_EQ(size_of(parts.valid), 5);
  EXPECT_EQ(parts.test, nullptr);
  EXPECT_EQ(size_of(split(numbers(10), {.train = 1, .valid = 0}).train), 10);
}

TEST(Split, FractionsThatFillTheSetFillItForEverySize) {
  for (int64_t count = 5; count < 60; ++count) {
    const Splits parts = split(numbers(count), {.train = 0.5, .valid = 0.25, .test = 0.25});
    EXPECT_LE(std::abs(size_of(parts.train) + size_of(parts.valid) + size_of(parts.test) - count),
              1)
        << count;
    EXPECT_LE(size_of(parts.train) + size_of(parts.valid) + size_of(parts.test), count);
  }
}

TEST(Split, WrongSizesAreRefused) {
  EXPECT_THROW((void)split(nullptr), ConfigError);
  EXPECT_THROW((void)split(numbers(10), {.train = -0.1}), ConfigError);
  EXPECT_THROW((void)split(numbers(10), {.train = 11, .valid = 0}), ConfigError);
  EXPECT_THROW((void)split(numbers(10), {.train = 8, .valid = 3}), ConfigError);
  EXPECT_THROW((void)split(numbers(10), {.train = 2.5}), ConfigError);
  EXPECT_THROW((void)split(numbers(10), {.train = 0.9, .valid = 0.3}), ConfigError);
  EXPECT_THROW((void)split(numbers(10), {.train = 0.9, .valid = 0.01}), ConfigError);
}

// Labels whose classes have `sizes` samples, in an order that mixes them.
DatasetPtr classes(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> labels;
  for (size_t round = 0, left = 1; left > 0; ++round) {
    left = 0;
    for (size_t c = 0; c < sizes.size(); ++c)
      if (round < static_cast<size_t>(sizes[c])) {
        labels.push_back(static_cast<int64_t>(c));
        ++left;
      }
  }
  const auto count = static_cast<int64_t>(labels.size());
  return tensor_dataset(at::arange(count).view({count, 1}), at::tensor(labels));
}

int64_t count_of(const DatasetPtr& data, int64_t label) {
  return data ? (data->targets() == label).sum().item<int64_t>() : 0;
}

TEST(Stratified, PartsHaveEveryClassInProportionToWithinOneSample) {
  const std::vector<int64_t> sizes{200, 50, 31, 7};
  const DatasetPtr data = classes(sizes);
  for (const SplitSizes parts : {SplitSizes{.7, .2, .1}, SplitSizes{.5, .25, 0},
                                 SplitSizes{100, 60, 20}, SplitSizes{1, 0, 0}}) {
    const Splits plain = split(data, parts, 3), even = split(data, parts, 3, {.stratify = true});
    EXPECT_EQ(size_of(even.train), size_of(plain.train));
    EXPECT_EQ(size_of(even.valid), size_of(plain.valid));
    EXPECT_EQ(size_of(even.test), size_of(plain.test));
    for (size_t c = 0; c < sizes.size(); ++c)
      for (const auto& part : {even.train, even.valid, even.test}) {
        const double share = static_cast<double>(sizes[c]) * static_cast<double>(size_of(part)) /
                             static_cast<double>(data->size());
        // Each of the three other parts is rounded to within one.
        EXPECT_NEAR(static_cast<double>(count_of(part, static_cast<int64_t>(c))), share, 2) << c;
      }
  }
}

TEST(Stratified, ClassesOfOneSampleStayInTheTrainingSplit) {
  const Splits parts = split(classes({40, 1, 1, 1}), {}, 5, {.stratify = true});
  for (const int64_t label : {1, 2, 3}) EXPECT_EQ(count_of(parts.train, label), 1) << label;
  EXPECT_EQ(parts.train->size(), 34);
  EXPECT_EQ(parts.valid->size(), 9);
}

TEST(Stratified, PartsAreDisjointAndDependOnTheSeed) {
  const auto inputs = [](const DatasetPtr& data) {
    std::vector<int64_t> all(static_cast<size_t>(data->size()));
    std::iota(all.begin(), all.end(), int64_t{0});
    const at::Tensor input = data->get({all}).input().contiguous();
    const int64_t* begin = input.const_data_ptr<int64_t>();
    return std::set<int64_t>{begin, begin + input.numel()};
  };
  const auto parts = [&](uint64_t seed) {
    return split(classes({30, 20, 10}), {}, seed, {.stratify = true});
  };
  std::set<int64_t> all = inputs(parts(1).train);
  all.merge(inputs(parts(1).valid));
  EXPECT_EQ(all.size(), 60U);
  EXPECT_EQ(inputs(parts(1).valid), inputs(parts(1).valid));
  EXPECT_NE(inputs(parts(1).valid), inputs(parts(2).valid));
}

TEST(Stratified, FoldsHaveEveryClassAndAreComplete) {
  const DatasetPtr data = classes({22, 11, 7});
  int64_t seen = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const Splits parts = fold(data, 3, i, 2, {.stratify = true});
    EXPECT_EQ(parts.valid->size(), size_of(fold(data, 3, i, 2).valid));
    EXPECT_NEAR(static_cast<double>(count_of(parts.valid, 0)), 22 / 3., 1);
    EXPECT_NEAR(static_cast<double>(count_of(parts.valid, 2)), 7 / 3., 1);
    EXPECT_EQ(parts.train->size() + parts.valid->size(), 40);
    seen += parts.valid->size();
  }
  EXPECT_EQ(seen, 40);
}

TEST(Stratified, NeedsClassLabels) {
  const DatasetPtr values = tensor_dataset(at::arange(10).view({10, 1}), at::arange(10.));
  EXPECT_FALSE(has_class_labels(values));
  EXPECT_THROW((void)split(values, {}, 0, {.stratify = true}), ConfigError);
  EXPECT_THROW((void)fold(values, 2, 0, 0, {.stratify = true}), ConfigError);
}

TEST(Split, OnlyTrainingSeesRandomTransforms) {
  const DatasetPtr images =
      tensor_dataset(at::randint(0, 256, {20, 1, 6, 6}, at::kByte), at::arange(20));
  const Splits parts =
      split(transformed(images, {Flip{1}}), {.train = 0.5, .valid = 0.25, .test = 0.25});
  const std::vector<int64_t> indices{0, 1, 2};
  const auto changes = [&](const DatasetPtr& data) {
    return !at::equal(data->get({indices, 1, true}).input(),
                      data->get({indices, 1, false}).input());
  };
  EXPECT_TRUE(changes(parts.train));
  EXPECT_FALSE(changes(parts.valid));
  EXPECT_FALSE(changes(parts.test));
}

TEST(Fold, EverySampleIsValidatedOnce) {
  std::multiset<int64_t> validated;
  for (int64_t i = 0; i < 4; ++i) {
    const Splits parts = fold(numbers(11), 4, i, 3);
    const std::set<int64_t> train = samples(parts.train), valid = samples(parts.valid);
    EXPECT_EQ(train.size() + valid.size(), 11U);
    for (const int64_t sample : valid) EXPECT_FALSE(train.contains(sample));
    validated.insert(valid.begin(), valid.end());
  }
  EXPECT_EQ(validated.size(), 11U);
  EXPECT_EQ(std::set(validated.begin(), validated.end()).size(), 11U);
}

TEST(Fold, WrongCountsAreRefused) {
  EXPECT_THROW((void)fold(numbers(5), 1, 0), ConfigError);
  EXPECT_THROW((void)fold(numbers(5), 6, 0), ConfigError);
  EXPECT_THROW((void)fold(numbers(5), 3, 3), ConfigError);
  EXPECT_THROW((void)fold(nullptr, 3, 0), ConfigError);
}

}  // namespace
}  // namespace tare

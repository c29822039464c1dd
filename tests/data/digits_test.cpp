// Generated digits: their bits, classes, styles and sizes.
#include "tare/data/digits.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tare/base/error.h"

namespace tare {
namespace {

// FNV-1a, 64 bits.
uint64_t hash(const at::Tensor& bytes) {
  uint64_t value = 0xcbf29ce484222325U;
  const uint8_t* p = bytes.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < bytes.numel(); ++i) value = (value ^ p[i]) * 0x100000001b3U;
  return value;
}

TEST(Digits, AreTheSameBitsEverywhere) {
  // The values themselves: a change of the generator changes every pretrained result and belongs in
  // the changelog.
  EXPECT_EQ(hash(generate_digits({.count = 100, .seed = 1}).images), 18409275600214565882U);
  EXPECT_EQ(hash(generate_digits({.count = 100, .style = "written", .seed = 1}).images),
            9529140995834988342U);
  EXPECT_EQ(hash(generate_digits({.count = 20, .size = 45, .style = "written", .seed = 7}).images),
            12369574392982652116U);
}

TEST(Digits, SampleDoesNotDependOnTheCount) {
  const DigitImages few = generate_digits({.count = 15, .seed = 4}),
                    many = generate_digits({.count = 40, .seed = 4});
  EXPECT_TRUE(at::equal(few.images, many.images.narrow(0, 0, 15)));
  EXPECT_TRUE(at::equal(few.labels, many.labels.narrow(0, 0, 15)));
}

TEST(Digits, ClassesAreEvenAndMixed) {
  const at::Tensor labels = generate_digits({.count = 1000}).labels;
  EXPECT_TRUE(at::equal(at::bincount(labels), at::full({10}, 100, at::kLong)));
  EXPECT_FALSE(at::equal(labels.narrow(0, 0, 10), labels.narrow(0, 10, 10)));
}

TEST(Digits, SeedsAndStylesDiffer) {
  const at::Tensor one = generate_digits({.count = 10, .seed = 1}).images;
  EXPECT_FALSE(at::equal(one, generate_digits({.count = 10, .seed = 2}).images));
  EXPECT_FALSE(
      at::equal(one, generate_digits({.count = 10, .style = "written", .seed = 1}).images));
}

class DigitStyle : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Both, DigitStyle, ::testing::Values("printed", "written"));

TEST_P(DigitStyle, InkIsThereAndStaysInsideAtEverySize) {
  for (const int64_t size : {8, 28, 41, 96}) {
    const at::Tensor images =
        generate_digits({.count = 200, .size = size, .style = GetParam()}).images;
    ASSERT_EQ(images.sizes(), at::IntArrayRef({200, 1, size, size}));
    const at::Tensor ink = (images > 60).to(at::kFloat).mean({1, 2, 3});
    EXPECT_GT(ink.min().item<float>(), 0.01F) << size;
    EXPECT_LT(ink.max().item<float>(), 0.6F) << size;
    if (size < 28) continue;  // there the edge of a stroke is as wide as the margin
    const at::Tensor inner = images.narrow(2, 1, size - 2).narrow(3, 1, size - 2);
    EXPECT_EQ((images > 128).sum().item<int64_t>(), (inner > 128).sum().item<int64_t>())
        << "ink on the border, " << size;
  }
}

TEST_P(DigitStyle, NearestClassMeanTellsTheDigitsApart) {
  // Chance is 0.1; a mean image a class is a weak classifier, so this only shows that labels and
  // drawings agree.
  const DigitImages train = generate_digits({.count = 2000, .style = GetParam(), .seed = 1});
  const DigitImages test = generate_digits({.count = 500, .style = GetParam(), .seed = 2});
  std::vector<at::Tensor> means;
  for (int64_t c = 0; c < 10; ++c)
    means.push_back(
        train.images.to(at::kFloat).view({2000, 784}).index({train.labels == c}).mean(0));
  int64_t right = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const at::Tensor image = test.images[i].to(at::kFloat).view(784);
    int64_t best = 0;
    double nearest = 1e300;
    for (int64_t c = 0; c < 10; ++c) {
      const double distance = (image - means[static_cast<size_t>(c)]).square().sum().item<double>();
      if (distance < nearest) nearest = distance, best = c;
    }
    right += best == test.labels[i].item<int64_t>();
  }
  EXPECT_GT(right, 300);
}

TEST(Digits, AsDatasetTheyHaveNamesAndOneChannel) {
  const DatasetPtr data = generated_digits({.count = 30});
  EXPECT_EQ(data->size(), 30);
  EXPECT_EQ(data->sample_shape(), (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(data->labels().at(7), "7");
  check_labels(data->targets(), 10);
}

TEST(Digits, WrongOptionsAreRefused) {
  EXPECT_THROW((void)generate_digits({.count = 0}), ConfigError);
  EXPECT_THROW((void)generate_digits({.size = 7}), ConfigError);
  EXPECT_THROW((void)generate_digits({.style = "cursive"}), ConfigError);
  EXPECT_THROW((void)generate_digits({.seed = -1}), ConfigError);
}

}  // namespace
}  // namespace tare

// Data sets in memory and their decorators.
#include "tare/data/dataset.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tare/base/error.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

Batch get(const DatasetPtr& data, const std::vector<int64_t>& indices, uint64_t seed = 0,
          bool training = false) {
  return data->get({indices, seed, training});
}

DatasetPtr numbered(int64_t count = 10) {
  return tensor_dataset(at::arange(count).view({count, 1}).to(at::kFloat), at::arange(count) * 10);
}

DatasetPtr images(int64_t count = 40) {
  return tensor_dataset(at::randint(0, 256, {count, 1, 8, 8}, at::kByte), at::arange(count) % 10,
                        {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

TEST(TensorDataset, GathersRowsInTheOrderAskedFor) {
  const DatasetPtr data = numbered();
  const Batch batch = get(data, {7, 0, 7});
  EXPECT_EQ(batch.size(), 3);
  EXPECT_TRUE(at::equal(batch.input(), at::tensor({7.F, 0.F, 7.F}).view({3, 1})));
  EXPECT_TRUE(at::equal(batch.target(), at::tensor({70, 0, 70}, at::kLong)));
  EXPECT_EQ(data->sample_shape(), std::vector<int64_t>{1});
}

TEST(TensorDataset, TakesAnyTypeAndStridesAndNoTarget) {
  const at::Tensor source = at::rand({3, 5}, at::kDouble).t();
  const DatasetPtr data = tensor_dataset(source);
  const Batch batch = get(data, {4, 1});
  EXPECT_TRUE(at::equal(batch.input()[0], source[4]));
  EXPECT_TRUE(at::equal(batch.input()[1], source[1]));
  EXPECT_FALSE(batch.target().defined());
  EXPECT_FALSE(data->targets().defined());
}

TEST(TensorDataset, BatchesAreCopies) {
  const DatasetPtr data = numbered();
  get(data, {1}).input().fill_(99);
  EXPECT_EQ(get(data, {1}).input().item<float>(), 1);
}

TEST(TensorDataset, WrongInputIsRefused) {
  EXPECT_THROW((void)tensor_dataset({}), ConfigError);
  EXPECT_THROW((void)tensor_dataset(at::empty({0, 3})), ConfigError);
  EXPECT_THROW((void)tensor_dataset(at::scalar_tensor(1)), ShapeError);
  EXPECT_THROW((void)tensor_dataset(at::rand({3, 2}), at::arange(4)), ShapeError);
  EXPECT_THROW((void)tensor_dataset(at::empty({3, 2}, at::TensorOptions().device(at::kMeta))),
               DeviceError);
}

TEST(TensorDataset, IndexOutOfRangeIsRefused) {
  const DatasetPtr data = numbered();
  EXPECT_THROW((void)get(data, {3, 10}), ConfigError);
  EXPECT_THROW((void)get(data, {-1}), ConfigError);
}

TEST(Transformed, OnePassEqualsTwo) {
  const DatasetPtr base = images();
  const Transforms transforms{Flip{0.5}, Shift{2}, Normalise{{0.5}, {0.2}}};
  // A map that changes nothing hides the tensors, so that gather and transforms are two passes.
  const DatasetPtr one = transformed(base, transforms);
  const DatasetPtr two =
      transformed(map(base, [](Batch b) { return b; }), transforms.deterministic());
  EXPECT_TRUE(at::equal(get(one, {3, 1}).input(), get(two, {3, 1}).input()));
  EXPECT_EQ(*one->transforms(), transforms);
  EXPECT_EQ(one->labels(), base->labels());
}

TEST(Transformed, IsRandomInTrainingOnlyAndBySeedAndIndex) {
  const DatasetPtr data = transformed(images(), {Shift{3}});
  const at::Tensor batch = get(data, {5, 6, 7, 8}, 1, true).input();
  EXPECT_TRUE(at::equal(batch, get(data, {5, 6, 7, 8}, 1, true).input()));
  EXPECT_TRUE(at::equal(batch[2], get(data, {7}, 1, true).input()[0]));
  EXPECT_FALSE(at::equal(batch, get(data, {5, 6, 7, 8}, 2, true).input()));
  EXPECT_TRUE(at::equal(get(data, {5}, 1, false).input(), get(data, {5}, 2, false).input()));
}

TEST(Transformed, PipelinesAddUp) {
  const Normalise first{{0.5}, {0.5}};
  const Resize second{4, 6};
  for (const bool fused : {true, false}) {
    DatasetPtr base = transformed(images(), {first});
    if (!fused) base = subset(base, {0, 1, 2});
    const DatasetPtr both = transformed(base, {second});
    EXPECT_EQ(*both->transforms(), (Transforms{first, second}));
    EXPECT_EQ(both->sample_shape(), (std::vector<int64_t>{1, 4, 6}));
    EXPECT_EQ(get(both, {2, 1}).input().sizes(), at::IntArrayRef({2, 1, 4, 6}));
  }
}

TEST(Transformed, RandomStepsOfTwoLayersAreUnrelated) {
  // Equal seeds would make both layers flip the same images: always twice, so never.
  const DatasetPtr base = images();
  const DatasetPtr once = subset(transformed(base, {Flip{0.5}}),
                                 {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  const DatasetPtr twice = transformed(once, {Flip{0.5}});
  std::vector<int64_t> all(16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  EXPECT_FALSE(at::equal(get(twice, all, 1, true).input(), get(twice, all, 1, false).input()));
}

TEST(Transformed, NonImagesAreRefused) {
  EXPECT_THROW((void)transformed(numbered(), {Flip{}}), ShapeError);
  EXPECT_THROW((void)transformed(images(), {Normalise{{0, 0, 0}, {1, 1, 1}}}), ConfigError);
  EXPECT_THROW((void)transformed(nullptr, {}), ConfigError);
}

TEST(Transformed, MovesMasksWithTheirPictures) {
  const at::Tensor pictures = at::randint(0, 2, {30, 1, 8, 8}).mul(255).to(at::kByte);
  const at::Tensor masks = pictures.squeeze(1).gt(0).to(at::kLong);
  const DatasetPtr base = tensor_dataset(pictures, masks);
  const Transforms transforms{Flip{0.5}, Shift{2, "edge"}, Resize{16, 16}};
  std::vector<int64_t> all(30);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  // In one pass, and as a decorator of another data set.
  for (const DatasetPtr& data :
       {transformed(base, transforms), transformed(subset(base, all), transforms)}) {
    const Batch batch = get(data, all, 3, true);
    ASSERT_EQ(batch.target().sizes(), at::IntArrayRef({30, 16, 16}));
    const at::Tensor bright = batch.input().squeeze(1).gt(0.5).to(at::kLong);
    EXPECT_TRUE(at::equal(bright, batch.target()));
    EXPECT_EQ(data->targets().sizes(), at::IntArrayRef({30, 16, 16}));
    EXPECT_FALSE(at::equal(batch.target(), data->targets())) << "nothing moved";
  }
}

std::string refusal_of(const at::Tensor& target, const Transforms& transforms, bool decorated) {
  const DatasetPtr raw = tensor_dataset(at::rand({8, 1, 12, 12}), target);
  const DatasetPtr base = decorated ? map(
                                          raw, [](Batch b) { return b; }, {}, Transforms{})
                                    : raw;
  try {
    (void)get(transformed(base, transforms), {0, 1}, 3, true);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(Transformed, RefusesMasksOfAnotherSizeThatWouldNotMove) {
  for (const bool decorated : {false, true})
    for (const Transforms& moving :
         {Transforms{Normalise{{0.5}, {1}}, Flip{0.5}}, Transforms{Shift{2}}, Transforms{Affine{}}})
      for (const auto& shape : std::vector<std::vector<int64_t>>{
               {8, 6, 6}, {8, 1, 12, 12, 1}, {8, 3, 24, 24}, {8, 12, 11}}) {
        const std::string refusal = refusal_of(at::ones(shape, at::kLong), moving, decorated);
        EXPECT_THAT(refusal, HasSubstr("would move the images ["));
        EXPECT_THAT(refusal, HasSubstr(", 1, 12, 12] but not the target 'target' ["));
        EXPECT_THAT(refusal, HasSubstr("give masks of the images' height and width"));
      }
  EXPECT_THAT(refusal_of(at::ones({8, 6, 6}), {Flip{}}, false),
              HasSubstr("[transform.flip] would move the images [8, 1, 12, 12] but not the target "
                        "'target' [8, 6, 6]"));
}

TEST(Transformed, LeavesTargetsThatAreNoImages) {
  const Transforms moving{Flip{0.5}, Shift{2}};
  for (const bool decorated : {false, true}) {
    for (const auto& shape : std::vector<std::vector<int64_t>>{
             {8}, {8, 1}, {8, 40}, {8, 1, 40}, {8, 40, 1}, {8, 1, 1, 1}, {8, 12, 12}})
      EXPECT_EQ(refusal_of(at::ones(shape, at::kLong), moving, decorated), "");
    EXPECT_EQ(refusal_of(at::ones({8, 6, 6}), {Normalise{{0.5}, {1}}}, decorated), "");
  }
}

TEST(Subset, SelectsAndRepeats) {
  const DatasetPtr data = subset(numbered(), {9, 2, 2});
  EXPECT_EQ(data->size(), 3);
  EXPECT_TRUE(at::equal(get(data, {0, 1, 2}).target(), at::tensor({90, 20, 20}, at::kLong)));
  EXPECT_TRUE(at::equal(data->targets(), at::tensor({90, 20, 20}, at::kLong)));
  EXPECT_THROW((void)get(data, {3}), ConfigError);
  EXPECT_THROW((void)subset(numbered(), {}), ConfigError);
  EXPECT_THROW((void)subset(numbered(), {10}), ConfigError);
}

TEST(Subset, MayHoldRandomTransformsBack) {
  const DatasetPtr data = subset(transformed(images(), {Flip{1}}), {4, 5}, false);
  EXPECT_TRUE(at::equal(get(data, {0, 1}, 3, true).input(), get(data, {0, 1}, 3, false).input()));
}

TEST(Map, ActsOnWholeBatches) {
  std::atomic<int> calls = 0;
  const DatasetPtr data = map(numbered(),
                              [&](Batch batch) {
                                ++calls;
                                batch.set_input(batch.input().expand({-1, 3}).contiguous());
                                return batch;
                              },
                              {3});
  EXPECT_EQ(get(data, {4, 5}).input().sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(data->sample_shape(), std::vector<int64_t>{3});
  EXPECT_TRUE(at::equal(data->targets(), numbered()->targets()));
}

TEST(Map, LosingSamplesIsAnError) {
  const DatasetPtr data = map(numbered(), [](Batch b) {
    return Batch{b.input().slice(0, 1), b.target()};
  });
  EXPECT_THROW((void)get(data, {1, 2}), ShapeError);
  EXPECT_THROW((void)map(numbered(), {}), ConfigError);
}

TEST(Cache, ReadsTheBaseOnce) {
  std::atomic<int64_t> samples = 0;
  const DatasetPtr slow = map(numbered(600), [&](Batch b) {
    samples += b.size();
    return b;
  });
  const DatasetPtr data = cache(slow);
  EXPECT_EQ(samples, 600);
  EXPECT_TRUE(at::equal(get(data, {599, 300}).target(), at::tensor({5990, 3000}, at::kLong)));
  EXPECT_EQ(samples, 600);
}

TEST(Cache, IsWhatIsInMemoryAlready) {
  const DatasetPtr tensors = numbered(10);
  EXPECT_EQ(cache(tensors), tensors);
  const DatasetPtr cached = cache(transformed(images(), {Flip{1}}));
  EXPECT_EQ(cache(cached), cached);
  const DatasetPtr some = subset(cached, {3, 1});
  EXPECT_EQ(cache(some), some);
  for (const DatasetPtr& other :
       {map(tensors, [](Batch b) { return b; }), transformed(images(), {Flip{1}}),
        subset(transformed(images(), {Flip{1}}), {1})})
    EXPECT_NE(cache(other), other);
  EXPECT_THROW((void)cache(nullptr), ConfigError);
}

TEST(Cache, KeepsWhatTheBundleNeeds) {
  const Normalise normalise{{0.5}, {0.5}};
  const DatasetPtr base = transformed(images(), {Flip{1}, normalise});
  const DatasetPtr data = cache(base);
  EXPECT_EQ(*data->transforms(), Transforms{normalise});
  EXPECT_EQ(data->labels(), base->labels());
  EXPECT_TRUE(at::equal(get(data, {3}, 1, true).input(), get(base, {3}, 1, false).input()));
}

TEST(CheckLabels, NamesTheFirstWrongSample) {
  check_labels(at::arange(10), 10);
  try {
    check_labels(at::tensor({0, 2, 7, -1}, at::kLong), 3);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("7"), HasSubstr("sample 2"), HasSubstr("[0, 3)")));
  }
  EXPECT_THROW(check_labels(at::tensor({-1}, at::kLong), 3), ConfigError);
  EXPECT_THROW(check_labels(at::rand({3}), 3), ShapeError);
  EXPECT_THROW(check_labels({}, 3), ShapeError);
}

TEST(Map, IsDescribedByTheTransformsThatItIsGiven) {
  const auto same = [](Batch b) { return b; };
  const DatasetPtr base = transformed(images(), {Normalise{{0.5}, {0.5}}});
  EXPECT_TRUE(base->described());
  const DatasetPtr unknown = map(base, same);
  for (const DatasetPtr& data :
       {unknown, subset(unknown, {1, 2}), transformed(unknown, {Resize{4, 4}}), cache(unknown),
        map(unknown, same, {}, Transforms{})})
    EXPECT_FALSE(data->described());
  const DatasetPtr kept = map(base, same, {}, Transforms{});
  const DatasetPtr resized = map(base, same, {}, Transforms{Resize{4, 4}});
  EXPECT_TRUE(kept->described());
  EXPECT_EQ(*kept->transforms(), *base->transforms());
  EXPECT_TRUE(cache(resized)->described());
  EXPECT_EQ(*resized->transforms(), (Transforms{Normalise{{0.5}, {0.5}}, Resize{4, 4}}));
}

}  // namespace
}  // namespace tare

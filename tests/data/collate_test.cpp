// Batches of several tensors, and samples of different lengths that a collate function joins.
#include "tare/data/collate.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/outcome.h"
#include "tare/data/loader.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const NamedTensors& all) {
  std::vector<std::string> names;
  for (const NamedTensor& one : all) names.push_back(one.name);
  return names;
}

Batch row(std::vector<int64_t> numbers, int64_t label) {
  return {{{"text", at::tensor(numbers, at::kLong)}},
          {{"label", at::scalar_tensor(label, at::kLong)}}};
}

Batch batch_of(const DatasetPtr& data, const std::vector<int64_t>& indices, bool training = false) {
  return data->get({.indices = indices, .seed = 1, .training = training});
}

TEST(Batch, KeepsNamesInViewsAndLists) {
  const at::Tensor a = at::arange(6).view({3, 2}), b = at::arange(3), y = at::arange(3);
  const Batch batch({{"a", a}, {"b", b}}, {{"y", y}});
  const Batch part = batch.narrow(1, 2);
  EXPECT_EQ(part.size(), 2);
  EXPECT_THAT(names_of(part.inputs), ElementsAre("a", "b"));
  EXPECT_TRUE(at::equal(part.input("b"), at::tensor({1, 2}, at::kLong)));
  EXPECT_EQ(part.input().storage().data(), a.storage().data()) << "a view";
  const std::vector<at::Tensor> tensors{y, y, a};
  const Batch other = batch.with(tensors);
  EXPECT_TRUE(other.target("y").is_same(a));
  EXPECT_THAT(names_of(other.inputs), ElementsAre("a", "b"));
  EXPECT_EQ(Batch().size(), 0);
  EXPECT_FALSE(Batch().target().defined());
  EXPECT_TRUE(Batch(a).targets.empty());
}

TEST(Batch, DecoratorsHandleEveryTensor) {
  const at::Tensor pictures = at::rand({6, 1, 8, 8}), others = at::rand({6, 1, 4, 4});
  const at::Tensor numbers = at::arange(6).to(at::kFloat).unsqueeze(1);
  const DatasetPtr raw =
      tensor_dataset({{"left", pictures}, {"right", pictures}, {"small", others}, {"row", numbers}},
                     {{"label", at::arange(6)}, {"mask", at::ones({6, 8, 8}, at::kLong)}});
  const Transforms steps{Normalise{.mean = {1}, .std = {2}}, Shift{.pixels = 3}};
  for (const DatasetPtr& data :
       {transformed(raw, steps), transformed(map(
                                                 raw, [](Batch b) { return b; }, {}, Transforms{}),
                                             steps)}) {
    const Batch plain = batch_of(data, {4, 1});
    EXPECT_THAT(names_of(plain.inputs), ElementsAre("left", "right", "small", "row"));
    EXPECT_TRUE(at::allclose(plain.input("right")[0], (pictures[4] - 1) / 2));
    EXPECT_TRUE(at::allclose(plain.input("small")[0], (others[4] - 1) / 2));
    EXPECT_TRUE(at::equal(plain.input("row"), at::tensor({4.F, 1.F}).unsqueeze(1)));
    EXPECT_TRUE(at::equal(plain.target("label"), at::tensor({4, 1}, at::kLong)));
    const Batch moved = batch_of(data, {0, 1, 2, 3, 4, 5}, true);
    EXPECT_FALSE(at::equal(moved.input("left"), moved.input("right"))) << "each has its own shift";
    EXPECT_TRUE(
        at::equal(moved.input("right"), batch_of(data, {0, 1, 2, 3, 4, 5}, true).input("right")));
    EXPECT_FALSE(
        at::equal(moved.target("mask"), batch_of(data, {0, 1, 2, 3, 4, 5}).target("mask")));
    // Pixels that move in are 0, which the normalise before made of 1; those of the mask are -100.
    EXPECT_TRUE(at::equal(moved.target("mask").eq(1), moved.input("left").squeeze(1).ne(0)))
        << "the mask moves with the first image";
  }
  const DatasetPtr kept = cache(subset(map(
                                           raw, [](Batch b) { return b; }, {}, Transforms{}),
                                       {5, 2}));
  EXPECT_TRUE(at::equal(batch_of(kept, {1}).input("row"), numbers.narrow(0, 2, 1)));
  Ledger ledger;
  kept->account(ledger);
  EXPECT_EQ(ledger.entries().size(), 6U);
}

TEST(Batch, ATensorDatasetRefusesWhatIsNotAlike) {
  const at::Tensor two = at::zeros({2}), three = at::zeros({3});
  EXPECT_THAT(outcome_of([&] {
                (void)tensor_dataset({{"a", two}, {"a", two}}, {});
              }),
              HasSubstr("each tensor needs a name of its own, got 'a' twice"));
  EXPECT_THAT(outcome_of([&] {
                (void)tensor_dataset({{"a", two}, {"b", three}}, {});
              }),
              HasSubstr("3 of b"));
  EXPECT_THAT(outcome_of([&] {
                (void)tensor_dataset({{"a", two}}, {{"y", at::Tensor()}});
              }),
              HasSubstr("y is undefined"));
}

TEST(Collate, PadsToTheLongestWithLengths) {
  const DatasetPtr data = sample_dataset({row({1, 2}, 0), row({3, 4, 5}, 1), row({6}, 2)}, pad());
  const Batch batch = batch_of(data, {2, 1});
  EXPECT_THAT(names_of(batch.inputs), ElementsAre("text", "lengths"));
  EXPECT_TRUE(at::equal(batch.input(), at::tensor({6, 0, 0, 3, 4, 5}, at::kLong).view({2, 3})));
  EXPECT_TRUE(at::equal(batch.input("lengths"), at::tensor({1, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.target(), at::tensor({2, 1}, at::kLong)));
  EXPECT_EQ(batch_of(data, {2, 0}).input().size(1), 2) << "only as long as the batch needs";
  EXPECT_THAT(data->sample_shape(), ElementsAre(3));
  EXPECT_TRUE(at::equal(data->targets(), at::arange(3)));
  EXPECT_THAT(largest_samples(*data), ElementsAre(1));
  EXPECT_THAT(largest_samples(*subset(data, {2, 0, 1})), ElementsAre(2));
}

TEST(Collate, FindsTheLargestOfEachTensor) {
  const auto pair = [](int64_t left, int64_t right) {
    return Batch({{"left", at::ones({left})}, {"right", at::ones({right})}}, {});
  };
  const DatasetPtr data = sample_dataset({pair(1, 4), pair(3, 2), pair(2, 4)}, pad());
  EXPECT_THAT(largest_samples(*data), ElementsAre(0, 1));
  EXPECT_THAT(largest_samples(*tensor_dataset(at::ones({3, 2}))), ElementsAre(0));
}

TEST(Collate, MarksPaddingByAMaskAndLeavesPaddedLabelsOut) {
  const auto tagged = [](std::vector<int64_t> words, std::vector<int64_t> tags) {
    return Batch({{"words", at::tensor(words, at::kLong)}},
                 {{"tags", at::tensor(tags, at::kLong)}});
  };
  const DatasetPtr data = sample_dataset({tagged({1, 2, 3}, {0, 1, 0}), tagged({4}, {1})},
                                         pad({.value = 9, .with = "mask", .multiple = 4}));
  const Batch batch = batch_of(data, {0, 1});
  EXPECT_TRUE(at::equal(batch.input()[1], at::tensor({4, 9, 9, 9}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.input("mask")[0], at::tensor({1, 1, 1, 0}).to(at::kBool)));
  EXPECT_TRUE(at::equal(batch.target()[1], at::tensor({1, -100, -100, -100}, at::kLong)));
  EXPECT_EQ(data->targets().sizes(), at::IntArrayRef({2, 4}));
}

TEST(Collate, PadsRowsOfVectorsInALoader) {
  std::vector<Batch> samples;
  for (int64_t i = 0; i < 9; ++i)
    samples.push_back({{{"x", at::full({i % 4 + 1, 2}, i, at::kFloat)}}, {}});
  const DatasetPtr data = sample_dataset(std::move(samples), pad({.with = "none"}));
  Loader loader(data, {.batch = 4, .workers = 2});
  loader.start(0);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.input().sizes(), at::IntArrayRef({4, 4, 2}));
  EXPECT_EQ(batch.inputs.size(), 1U);
  EXPECT_EQ(batch.input()[1][2].sum().item<float>(), 0);
  EXPECT_EQ(get_all(*data).input().sizes(), at::IntArrayRef({9, 4, 2}));
}

TEST(Collate, IsAnOpenSetWithOptions) {
  collates::registry().add("first_of_test", "the first sample alone",
                           [] { return Collate([](const auto& all) { return all.front(); }); });
  const Collate first = collates::registry().make("first_of_test");
  EXPECT_TRUE(at::equal(first({row({1}, 0), row({2}, 0)}).input(), at::tensor({1}, at::kLong)));
  EXPECT_THAT(outcome_of([] {
                (void)collates::registry().make(
                    {.name = "pad", .options = config::parse_text("{with: lenghts}", "test")});
              }),
              HasSubstr("lengths"));
}

TEST(Collate, RefusesWhatDoesNotFit) {
  const std::vector<Batch> uneven{row({1, 2}, 0), row({3}, 1)};
  EXPECT_THAT(outcome_of([&] {
                (void)batch_of(sample_dataset(uneven, stack), {0, 1});
              }),
              HasSubstr("text of one shape, [2], or a collate function such as pad"));
  EXPECT_THAT(outcome_of([&] { (void)sample_dataset({}, stack); }), HasSubstr("is empty"));
  EXPECT_THAT(outcome_of([&] { (void)sample_dataset(uneven, {}); }), HasSubstr("is empty"));
  EXPECT_THAT(outcome_of([&] {
                (void)sample_dataset({row({1}, 0), Batch(at::zeros({1}))}, pad());
              }),
              HasSubstr("others in sample 1"));
  EXPECT_THAT(outcome_of([&] {
                (void)batch_of(
                    sample_dataset({Batch(at::zeros({1, 2})), Batch(at::zeros({1, 3}))}, pad()),
                    {0, 1});
              }),
              HasSubstr("input of one shape"));
}

}  // namespace
}  // namespace tare::testing

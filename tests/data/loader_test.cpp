// Batches in order, whatever the workers, and their account.
#include "tare/data/loader.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "data/numbers.h"
#include "tare/base/error.h"

namespace tare {
namespace {

using testing::numbers;

// All inputs from here to the end of the epoch.
std::vector<at::Tensor> rest(Loader& loader) {
  std::vector<at::Tensor> inputs;
  Batch batch;
  while (loader.next(batch)) inputs.push_back(batch.input());
  EXPECT_FALSE(batch.input().defined());
  return inputs;
}

std::vector<at::Tensor> epoch(Loader& loader, int64_t number, int64_t position = 0) {
  loader.start(number, position);
  return rest(loader);
}

void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << "batch " << i;
}

class LoaderWorkers : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, LoaderWorkers, ::testing::Values(0, 1, 2, 5));

TEST_P(LoaderWorkers, GivesTheSameBatchesAsOneThread) {
  const DatasetPtr images = transformed(
      tensor_dataset(at::randint(0, 256, {103, 1, 9, 9}, at::kByte)), {Flip{0.5}, Shift{2}});
  LoaderOptions options{.batch = 10, .shuffle = true, .seed = 3, .training = true};
  Loader plain(images, options);
  options.workers = GetParam();
  Loader threaded(images, options);
  for (int64_t e = 0; e < 3; ++e) expect_equal(epoch(plain, e), epoch(threaded, e));
}

TEST_P(LoaderWorkers, GoesOnFromAPosition) {
  Loader loader(numbers(50), {.batch = 7, .shuffle = true, .workers = GetParam(), .seed = 1});
  const auto whole = epoch(loader, 4);
  loader.start(4);
  Batch batch;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(loader.next(batch));
  const int64_t position = loader.position();
  EXPECT_EQ(position, 3);
  Loader resumed(numbers(50), {.batch = 7, .shuffle = true, .workers = GetParam(), .seed = 1});
  expect_equal(epoch(resumed, 4, position), {whole.begin() + 3, whole.end()});
  EXPECT_TRUE(epoch(resumed, 4, resumed.batches()).empty());
}

TEST_P(LoaderWorkers, MakesNoBatchFromTheEndOn) {
  Loader loader(numbers(50), {.batch = 7, .workers = GetParam()});
  const auto whole = epoch(loader, 0);
  loader.start(0, 2, 4);
  Batch batch;
  std::vector<at::Tensor> given;
  while (loader.next(batch)) given.push_back(batch.input().clone());
  expect_equal(given, {whole.begin() + 2, whole.begin() + 4});
  loader.start(0, 2, 3);
  ASSERT_TRUE(loader.next(batch));
  Ledger ahead;
  loader.account(ahead);
  EXPECT_EQ(ahead.bytes().total(), 0);
  loader.start(0, 2, 2);
  EXPECT_FALSE(loader.next(batch));
}

TEST_P(LoaderWorkers, MayEndInTheMiddleOfAnEpoch) {
  for (int i = 0; i < 20; ++i) {
    Loader loader(numbers(1000), {.batch = 3, .workers = GetParam(), .prefetch = 4});
    loader.start(0);
    Batch batch;
    for (int k = 0; k < i; ++k) ASSERT_TRUE(loader.next(batch));
    if (i % 2) loader.stop();
    if (i % 3 == 0) expect_equal(epoch(loader, 1, 300), epoch(loader, 1, 300));
  }
}

TEST_P(LoaderWorkers, AnErrorComesOutAtItsBatchAndTheLoaderGoesOnWorking) {
  const DatasetPtr broken = map(numbers(60), [](Batch batch) {
    if ((batch.input() == 42).any().item<bool>()) throw std::domain_error("sample 42");
    return batch;
  });
  Loader loader(broken, {.batch = 5, .workers = GetParam(), .prefetch = 3});
  for (int round = 0; round < 3; ++round) {
    loader.start(0);
    Batch batch;
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(loader.next(batch));
    EXPECT_THROW((void)loader.next(batch), std::domain_error);
    EXPECT_FALSE(batch.input().defined());
    EXPECT_THROW((void)loader.next(batch), StateError);
  }
  EXPECT_EQ(epoch(loader, 0, 9).size(), 3U);
}

TEST_P(LoaderWorkers, LetsTheTensorsOfTheLastBatchGoFirst) {
  Loader loader(numbers(6), {.batch = 3, .workers = GetParam()});
  loader.start(0);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.input().use_count(), 1U);
  EXPECT_EQ(batch.target().use_count(), 1U);
}

TEST(Loader, ShuffleHoldsEverySampleOnceAndChangesWithEpochAndSeed) {
  Loader loader(numbers(101), {.batch = 10, .shuffle = true, .seed = 1});
  Loader other(numbers(101), {.batch = 10, .shuffle = true, .seed = 2});
  const at::Tensor first = at::cat(epoch(loader, 0)), second = at::cat(epoch(loader, 1));
  EXPECT_TRUE(at::equal(std::get<0>(first.sort(0)), at::arange(101).view({101, 1})));
  EXPECT_FALSE(at::equal(first, second));
  EXPECT_FALSE(at::equal(first, at::cat(epoch(other, 0))));
  EXPECT_TRUE(at::equal(first, at::cat(epoch(loader, 0))));
}

TEST(Loader, BatchSizeDoesNotChangeOrderOrRandomness) {
  const DatasetPtr images =
      transformed(tensor_dataset(at::randint(0, 256, {40, 1, 9, 9}, at::kByte)), {Shift{3}});
  Loader small(images, {.batch = 3, .shuffle = true, .seed = 9, .training = true});
  Loader large(images, {.batch = 40, .shuffle = true, .seed = 9, .training = true});
  EXPECT_TRUE(at::equal(at::cat(epoch(small, 2)), at::cat(epoch(large, 2))));
}

TEST(Loader, LastBatchIsKeptOrDropped) {
  Loader kept(numbers(10), {.batch = 4});
  EXPECT_EQ(kept.batches(), 3);
  EXPECT_EQ(epoch(kept, 0).back().size(0), 2);
  Loader dropped(numbers(10), {.batch = 4, .drop_last = true});
  EXPECT_EQ(dropped.batches(), 2);
  EXPECT_EQ(epoch(dropped, 0).size(), 2U);
  Loader larger(numbers(10), {.batch = 64});
  EXPECT_EQ(epoch(larger, 0).at(0).size(0), 10);
}

TEST(Loader, WrongOptionsAreRefused) {
  EXPECT_THROW(Loader(nullptr, {}), ConfigError);
  EXPECT_THROW(Loader(numbers(10), {.batch = 0}), ConfigError);
  EXPECT_THROW(Loader(numbers(10), {.workers = -1}), ConfigError);
  EXPECT_THROW(Loader(numbers(10), {.workers = 257}), ConfigError);
  EXPECT_THROW(Loader(numbers(10), {.prefetch = 0}), ConfigError);
  EXPECT_THROW(Loader(numbers(10), {.batch = 11, .drop_last = true}), ConfigError);
  Loader loader(numbers(10), {.batch = 5});
  EXPECT_THROW(loader.start(-1), ConfigError);
  EXPECT_THROW(loader.start(0, 3), ConfigError);
  EXPECT_THROW(loader.start(0, 1, 0), ConfigError);
  EXPECT_THROW(loader.start(0, 1, 3), ConfigError);
  Batch batch;
  EXPECT_THROW((void)loader.next(batch), StateError);
}

TEST(Loader, AccountListsTheBatchesMadeAheadExactly) {
  std::atomic<int64_t> made = 0;
  const DatasetPtr counted = map(numbers(100), [&](Batch batch) {
    ++made;
    return batch;
  });
  Loader loader(counted, {.batch = 10, .workers = 2, .prefetch = 3});
  loader.start(0);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  Ledger ledger;
  loader.account(ledger);
  EXPECT_EQ(ledger.entries().size(), 6U);  // input and target of three batches
  EXPECT_EQ(ledger.bytes()[Category::batch], 3 * 10 * (8 + 8));
  EXPECT_EQ(made, 4);
  Ledger again;
  loader.account(again);
  EXPECT_EQ(again.bytes().total(), ledger.bytes().total());
  EXPECT_EQ(made, 4);
  loader.stop();
  Ledger empty;
  loader.account(empty);
  EXPECT_TRUE(empty.entries().empty());
}

TEST(Loader, AccountIsRightAtTheEndOfAnEpoch) {
  Loader loader(numbers(20), {.batch = 10, .workers = 2, .prefetch = 5});
  loader.start(0);
  Batch batch;
  ASSERT_TRUE(loader.next(batch));
  Ledger ledger;
  loader.account(ledger);
  EXPECT_EQ(ledger.bytes().total(), 10 * 16);
}

TEST(Loader, WorkersUseOneThreadEachAndLeaveTheCallersNumberAlone) {
  const int before = at::get_num_threads();
  const auto caller = std::this_thread::get_id();
  std::atomic<int> largest = 0;
  std::atomic<bool> elsewhere = true;
  const DatasetPtr data = map(numbers(20), [&](Batch batch) {
    largest = std::max<int>(largest, at::get_num_threads());
    if (std::this_thread::get_id() == caller) elsewhere = false;
    return batch;
  });
  Loader loader(data, {.batch = 2, .workers = 2});
  EXPECT_EQ(epoch(loader, 0).size(), 10U);
  EXPECT_EQ(largest, 1);
  EXPECT_TRUE(elsewhere);
  EXPECT_EQ(at::get_num_threads(), before);
}

}  // namespace
}  // namespace tare

// Threads that share tasks.
#include "tare/lite/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <set>
#include <vector>

namespace tare::lite {
namespace {

using ::testing::Each;

TEST(WorkersTest, DoEachTaskOnceInEveryRound) {
  for (const int64_t threads : {1, 2, 5}) {
    Workers workers(threads);
    EXPECT_EQ(workers.count(), threads);
    for (int round = 0; round < 300; ++round) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(round % 9));
      std::atomic<bool> known = true;
      workers.run(static_cast<int64_t>(done.size()), [&](int64_t task, int64_t worker) {
        ++done[static_cast<size_t>(task)];
        if (worker < 0 || worker >= threads) known = false;
      });
      for (const auto& times : done) ASSERT_EQ(times, 1);
      EXPECT_TRUE(known);
    }
  }
}

TEST(WorkersTest, ComputeOnTheCallersThreadWhereThereIsOneTask) {
  Workers workers(3);
  std::set<std::thread::id> seen;
  workers.run(1, [&](int64_t, int64_t) { seen.insert(std::this_thread::get_id()); });
  EXPECT_THAT(seen, Each(std::this_thread::get_id()));
}

TEST(WorkersTest, RethrowAnExceptionAndWorkOn) {
  for (const int64_t threads : {1, 3}) {
    Workers workers(threads);
    for (int round = 0; round < 50; ++round) {
      EXPECT_THROW(workers.run(20,
                               [](int64_t task, int64_t) {
                                 if (task % 7 == 3) throw std::bad_alloc();
                               }),
                   std::bad_alloc);
      std::atomic<int> done = 0;
      workers.run(20, [&](int64_t, int64_t) { ++done; });
      EXPECT_EQ(done, 20);
    }
  }
}

TEST(WorkersTest, EndWithoutWork) {
  for (int i = 0; i < 100; ++i) Workers(4);
}

}  // namespace
}  // namespace tare::lite

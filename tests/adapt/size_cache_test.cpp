// Sizes that are remembered, in a process and in a file.
#include "tare/adapt/size_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::adapt {
namespace {

using ::testing::HasSubstr;

StepSize shrunken(int64_t limit, int64_t size) {
  StepSize step(limit, {}, "test");
  step.start_at(size);
  return step;
}
StepSize fresh(int64_t limit) { return {limit, {}, "test"}; }

int64_t found(SizeCache& cache, const std::string& key, int64_t limit = 64) {
  return cache.resume(key, fresh(limit)).get();
}

TEST(SizeCache, StartsAtWhatWasFound) {
  SizeCache cache;
  cache.store("a", shrunken(64, 8));
  EXPECT_EQ(found(cache, "a"), 8);
  EXPECT_EQ(found(cache, "b"), 64);
  EXPECT_EQ(found(cache, "a", 4), 4);  // never above the limit of the call
}

TEST(SizeCache, KeepsHowLongASizeWasClean) {
  SizeCache cache;
  StepSize step(64, {.regrow_after = 2}, "test");
  ASSERT_TRUE(step.shrink(64));
  step.clean(32, 1);
  cache.store("a", step);
  StepSize later = cache.resume("a", StepSize(64, {.regrow_after = 2}, "test"));
  later.clean(32, 1);
  EXPECT_TRUE(later.due());
}

TEST(SizeCache, HasNoEntryForASizeThatNeverShrank) {
  SizeCache cache;
  cache.store("a", fresh(64));
  EXPECT_EQ(cache.entries(), 0u);
  cache.store("a", shrunken(64, 8));
  cache.store("a", fresh(64));  // grown again
  EXPECT_EQ(found(cache, "a"), 64);
}

TEST(SizeCache, ForgetsWhatWasNotUsedForLongest) {
  SizeCache cache(2);
  cache.store("a", shrunken(64, 8));
  cache.store("b", shrunken(64, 4));
  EXPECT_EQ(found(cache, "a"), 8);
  cache.store("c", shrunken(64, 2));
  EXPECT_EQ(cache.entries(), 2u);
  EXPECT_EQ(found(cache, "a"), 8);
  EXPECT_EQ(found(cache, "b"), 64);
  EXPECT_EQ(found(cache, "c"), 2);
}

TEST(SizeCache, HandsItsSizesToTheNextProcess) {
  const testing::TempDir dir;
  const auto file = dir.path() / "sizes.txt";
  SizeCache before;
  before.store("train.cpp:12:3 Float x* x784 cpu@138", shrunken(64, 8));
  before.store("b", shrunken(64, 4));
  before.save(file);

  SizeCache after;
  after.store("b", shrunken(64, 2));
  after.load(file);
  EXPECT_EQ(found(after, "train.cpp:12:3 Float x* x784 cpu@138"), 8);
  EXPECT_EQ(found(after, "b"), 2);  // its own is newer
}

TEST(SizeCache, KeepsTheNewestOfALargerFile) {
  const testing::TempDir dir;
  SizeCache before;
  for (const char* key : {"old", "b", "c"}) before.store(key, shrunken(64, 8));
  before.save(dir.path() / "sizes.txt");
  SizeCache after(2);
  after.load(dir.path() / "sizes.txt");
  EXPECT_EQ(found(after, "old"), 64);
  EXPECT_EQ(found(after, "c"), 8);
}

TEST(SizeCache, RefusesAnyOtherFileAndTakesNothingFromIt) {
  const testing::TempDir dir;
  const auto file = dir.path() / "sizes.txt";
  for (const char* text :
       {"", "\n", "tare step sizes 2\n8 a\n", "tare step sizes 1\n8 a\nx b\n",
        "tare step sizes 1\n8 a\n0 b\n", "tare step sizes 1\n8 a\n-4 b\n",
        "tare step sizes 1\n8 a\n99999999999999999999 b\n", "tare step sizes 1\n8 a\n8\n",
        "tare step sizes 1\n8 a\n8 \n", "tare step sizes 1\n8 a\n8b\n"}) {
    io::write_atomically(file, text);
    SizeCache cache;
    EXPECT_THROW(cache.load(file), FormatError) << text;
    EXPECT_EQ(cache.entries(), 0u) << text;
  }
  SizeCache cache;
  EXPECT_THROW(cache.load(dir.path() / "none.txt"), IoError);
}

TEST(SizeCache, NamesTheLine) {
  const testing::TempDir dir;
  io::write_atomically(dir.path() / "s.txt", "tare step sizes 1\n8 a\nnine b\n");
  try {
    SizeCache cache;
    cache.load(dir.path() / "s.txt");
    FAIL() << "was taken";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 3"));
  }
}

TEST(SizeCache, IsSafeAcrossThreads) {
  SizeCache cache(16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 2000; ++i) {
        const auto key = std::to_string((i * 7 + t) % 32);
        cache.store(key, shrunken(64, 1 + i % 63));
        EXPECT_GE(found(cache, key), 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cache.entries(), 16u);
}

}  // namespace
}  // namespace tare::adapt

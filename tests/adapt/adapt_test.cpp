// Adaptive calls: batches, ranges and chunks that shrink until they fit.
#include "tare/adapt/adapt.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/budget.h"
#include "support/empty_device.h"
#include "tare/adapt/size_cache.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"

namespace tare::adapt {
namespace {

using testing::BudgetScope;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Sizes = std::vector<int64_t>;

constexpr int64_t kItem = 1_KiB;

/// Allocates so many items for a moment.
void use(int64_t items) { static_cast<void>(at::empty({items * kItem}, c10::kByte)); }

class Adapt : public ::testing::Test {
 protected:
  void SetUp() override { sizes().clear(); }
  void TearDown() override {
    set_default_cache(Cache::stack);
    sizes().clear();
  }
};

TEST_F(Adapt, BatchShrinksUntilItFitsAndReturnsTheValue) {
  const BudgetScope budget(20 * kItem);
  Sizes tried;
  const int64_t found = batch(64, [&](int64_t size) {
    tried.push_back(size);
    use(size);
    return size;
  });
  EXPECT_EQ(found, 16);
  EXPECT_THAT(tried, ElementsAre(64, 32, 16));
}

TEST_F(Adapt, RangeRepeatsOnlyTheFailedPiece) {
  const BudgetScope budget(20 * kItem);
  std::vector<Sizes> done;
  range(10, 60, 32, [&](int64_t from, int64_t to) {
    use(to - from);
    done.push_back({from, to});
  });
  EXPECT_THAT(done, ElementsAre(Sizes{10, 26}, Sizes{26, 42}, Sizes{42, 58}, Sizes{58, 60}));

  bool once = true;
  done.clear();
  range(0, 32, 16, [&](int64_t from, int64_t to) {
    done.push_back({from, to});
    if (from == 16 && std::exchange(once, false)) use(64);
  });
  EXPECT_THAT(done, ElementsAre(Sizes{0, 16}, Sizes{16, 32}, Sizes{16, 24}, Sizes{24, 32}));
}

TEST_F(Adapt, RangeReturnsTheValuesInOrder) {
  EXPECT_THAT(range(0, 5, 2, [](int64_t from, int64_t to) { return 10 * from + to; }),
              ElementsAre(2, 24, 45));
  int calls = 0;
  range(3, 3, 2, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST_F(Adapt, ChunksAreViewsAlongAnyDimension) {
  const auto whole = at::arange(24, c10::kFloat).view({2, 12});
  const BudgetScope budget(20 * kItem);
  for (const int64_t dim : {1, -1}) {
    Sizes bounds;
    const auto parts = chunked(
        whole, 8,
        [&](const at::Tensor& chunk, int64_t from, int64_t to) {
          if (to - from > 5) use(64);
          EXPECT_TRUE(chunk.is_alias_of(whole));
          bounds.insert(bounds.end(), {from, to});
          return chunk;
        },
        dim);
    EXPECT_TRUE(at::cat(parts, dim).equal(whole));
    EXPECT_THAT(bounds, ElementsAre(0, 4, 4, 8, 8, 12));
  }
}

TEST_F(Adapt, ChunksOfMetaTensorsHaveNoDevice) {
  const auto shapes = at::empty({5, 2}, c10::Device(c10::kMeta));
  EXPECT_EQ(
      chunked(shapes, 2, [](const at::Tensor& chunk, int64_t, int64_t) { return chunk.size(0); })
          .size(),
      3u);
}

TEST_F(Adapt, ExecuteIsTheSameAtOnce) {
  const BudgetScope budget(20 * kItem);
  EXPECT_EQ(execute::batch(32, [](int64_t size) { return use(size), size; }), 16);
  const auto size = [](int64_t from, int64_t to) { return use(to - from), to - from; };
  EXPECT_THAT(execute::range(0, 40, 32, size), ElementsAre(16, 16, 8));
  const auto rows = at::empty({40});
  EXPECT_THAT(
      execute::chunked(rows, 32,
                       [&](const at::Tensor&, int64_t from, int64_t to) { return size(from, to); }),
      ElementsAre(16, 16, 8));
}

TEST_F(Adapt, WrappersTakeFurtherArguments) {
  Batch add(8, [](int64_t size, int64_t a, int64_t& count) {
    ++count;
    return size + a;
  });
  int64_t count = 0;
  EXPECT_EQ(add(int64_t{5}, count), 13);
  EXPECT_EQ(count, 1);
  Range scan(4, [](int64_t from, int64_t to, const std::string& text) {
    return text.substr(static_cast<size_t>(from), static_cast<size_t>(to - from));
  });
  EXPECT_THAT(scan(0, 6, std::string("abcdef")), ElementsAre("abcd", "ef"));
  Chunked sum(2, [](const at::Tensor& chunk, int64_t, int64_t, double factor) {
    return chunk.sum().item<double>() * factor;
  });
  EXPECT_THAT(sum(at::arange(3, c10::kDouble), 10.0), ElementsAre(10.0, 20.0));
}

TEST_F(Adapt, ReturnsReferencesAsSuch) {
  int64_t value = 7;
  int64_t& result = batch(4, [&](int64_t) -> int64_t& { return value; });
  EXPECT_EQ(&result, &value);
}

TEST_F(Adapt, OtherErrorsPassThroughAfterOneCall) {
  int calls = 0;
  EXPECT_THROW(batch(8, [&](int64_t) { ++calls, throw std::logic_error("no"); }), std::logic_error);
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(range(0, 9, 4, [&](int64_t, int64_t) { ++calls, throw StateError("a", "b"); }),
               StateError);
  EXPECT_EQ(calls, 2);
}

TEST_F(Adapt, TellsEverySizeWhenNothingFits) {
  const BudgetScope budget(kItem / 2);
  try {
    batch(8, [](int64_t size) { use(size); });
    FAIL() << "was done";
  } catch (const NothingFits& error) {
    EXPECT_THAT(error.tried(), ElementsAre(8, 4, 2, 1));
    EXPECT_EQ(error.asked_bytes(), kItem);
    EXPECT_TRUE(error.budget_bytes());
    EXPECT_THAT(
        error.what_without_backtrace(),
        HasSubstr(
            "not even the smallest part fits (sizes that failed: 8, 4, 2, 1): raise the budget"));
    EXPECT_THROW(std::rethrow_if_nested(error), OutOfMemory);
  }
}

// Not even what Tare itself does between two attempts may need memory.
TEST_F(Adapt, TellsThatNothingFitsIntoAFewBytes) {
  for (const int64_t budget : {0, 1, 10}) {
    memory::set_host_budget(budget);
    EXPECT_THROW(batch(8, [](int64_t size) { use(size); }), NothingFits) << budget;
    EXPECT_THROW(range(0, 8, 4, [](int64_t from, int64_t to) { use(to - from); }), NothingFits);
    memory::set_host_budget({});
  }
}

TEST_F(Adapt, StopsForAnFThatKeepsFailingWhateverItsSize) {
  int calls = 0;
  const auto fail = [&](int64_t) { ++calls, throw std::bad_alloc(); };
  EXPECT_THROW(batch(8, fail), NothingFits);
  EXPECT_EQ(calls, 4);
}

TEST_F(Adapt, KnowsOutOfMemoryOfOtherLibraries) {
  for (const char* text : {"CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
                           "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8",
                           "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED."}) {
    const int64_t found = batch(4, [&](int64_t size) {
      if (size > 2) throw std::runtime_error(text);
      return size;
    });
    EXPECT_EQ(found, 2) << text;
    sizes().clear();
  }
}

TEST_F(Adapt, WhatOnlyMayBeOutOfMemoryIsThrownAsItIsWhenNothingFits) {
  const auto fail = [](int64_t) { throw std::runtime_error("CUDNN_STATUS_NOT_SUPPORTED"); };
  const auto not_supported = [&](int64_t) {
    throw std::runtime_error("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.");
  };
  EXPECT_THROW(batch(4, fail), std::runtime_error);
  try {
    batch(4, not_supported);
    FAIL() << "was done";
  } catch (const OutOfMemory&) {
    FAIL() << "was taken for out-of-memory";
  } catch (const std::runtime_error&) {
  }
}

TEST_F(Adapt, NestedCallsShrinkTheOuterOneWhenNothingFitsInside) {
  const BudgetScope budget(10 * kItem);
  Sizes outer;
  batch(16, [&](int64_t size) {
    outer.push_back(size);
    const auto held = at::empty({size * kItem}, c10::kByte);
    batch(4, [&](int64_t inner) { use(inner + 2); });
  });
  EXPECT_THAT(outer, ElementsAre(16, 8, 4));
}

TEST_F(Adapt, RefusesWhatIsOutOfRangeBeforeACall) {
  const auto fail = [](auto&&...) { ADD_FAILURE() << "was called"; };
  EXPECT_THROW(batch(0, fail), ConfigError);
  EXPECT_THROW(batch(4, fail, {.policy = {.shrink = 1}}), ConfigError);
  EXPECT_THROW(range(0, 8, 0, fail), ConfigError);
  EXPECT_THROW(range(8, 7, 4, fail), ConfigError);
  EXPECT_THROW(chunked(at::empty({4}), 0, fail), ConfigError);
  EXPECT_THROW(chunked(at::empty({4}), 2, fail, 1), ShapeError);
  EXPECT_THROW(chunked(at::empty({}), 2, fail), ShapeError);
  EXPECT_THROW(chunked(at::Tensor(), 2, fail), ShapeError);
}

TEST_F(Adapt, TellsEveryChange) {
  std::vector<Change> changes;
  const Options options{.policy = {.regrow_after = 2},
                        .on_change = [&](const Change& change) { changes.push_back(change); }};
  BudgetScope budget(20 * kItem);
  range(
      0, 128, 32,
      [&](int64_t from, int64_t to) {
        use(to - from);
        if (from == 16) BudgetScope::allow(64 * kItem);
      },
      options);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].from, 32);
  EXPECT_EQ(changes[0].to, 16);
  EXPECT_THAT(changes[0].reason, HasSubstr("out of memory on cpu"));
  EXPECT_EQ(changes[1].from, 16);
  EXPECT_EQ(changes[1].to, 32);
  EXPECT_EQ(changes[1].reason, "");
}

TEST_F(Adapt, GrowsIntoWhatFitsWithoutAnotherFailure) {
  const BudgetScope budget(20 * kItem);
  int failures = 0;
  int64_t largest_done = 0;
  range(0, 1024, 32,
        [&](int64_t from, int64_t to) {
          ++failures;
          use(to - from);
          --failures;
          if (from > 64) largest_done = std::max(largest_done, to - from);
        },
        {.policy = {.regrow_after = 2}});
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(largest_done, 20);
}

TEST_F(Adapt, RemembersASizeForALineOfCode) {
  const BudgetScope budget(20 * kItem);
  Sizes tried;
  const auto once = [&](int64_t size) {
    tried.push_back(size);
    use(size);
  };
  for (int i = 0; i < 3; ++i) batch(64, once);
  EXPECT_THAT(tried, ElementsAre(64, 32, 16, 16, 16));
  tried.clear();
  batch(64, once);  // another line
  EXPECT_THAT(tried, ElementsAre(64, 32, 16));
}

TEST_F(Adapt, RemembersNothingWithoutACache) {
  const BudgetScope budget(20 * kItem);
  int calls = 0;
  for (int i = 0; i < 2; ++i)
    batch(32, [&](int64_t size) { ++calls, use(size); }, {.cache = Cache::none});
  EXPECT_EQ(calls, 4);
  set_default_cache(Cache::none);
  EXPECT_EQ(default_cache(), Cache::none);
  for (int i = 0; i < 2; ++i) batch(32, [&](int64_t size) { ++calls, use(size); });
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(sizes().entries(), 0u);
}

/// A helper, as both models of a program use it.
[[gnu::noinline]] int64_t first_size(int64_t bytes_of_item) {
  int64_t first = 0;
  batch(32, [&](int64_t size) {
    if (first == 0) first = size;
    static_cast<void>(at::empty({size * bytes_of_item}, c10::kByte));
  });
  return first;
}
[[gnu::noinline]] int64_t of_a_dear_model() { return first_size(kItem) + 0; }
[[gnu::noinline]] int64_t of_a_cheap_model() { return first_size(kItem / 64) + 0; }

TEST_F(Adapt, RemembersASizeForEachCallerOfAHelper) {
  const BudgetScope budget(20 * kItem);
  int rounds = 2;
  asm volatile("" : "+r"(rounds));  // a loop of a known length may become two calls in two places
  for (int i = 0; i < rounds; ++i) {
    EXPECT_EQ(of_a_dear_model(), 32 >> i);
    EXPECT_EQ(of_a_cheap_model(), 32) << "it has never failed";
  }
  EXPECT_EQ(sizes().entries(), 1u);
  EXPECT_THAT(sizes().found().at(0).key, HasSubstr(" stack="));
  set_default_cache(Cache::shapes);
  sizes().clear();
  EXPECT_EQ(of_a_dear_model(), 32);
  EXPECT_EQ(of_a_cheap_model(), 16) << "by the line of code alone";
}

TEST_F(Adapt, RemembersByShapesWithoutTheBatchByDtypeAndByFreeMemory) {
  set_default_cache(Cache::shapes);
  BudgetScope budget(20 * kItem);
  Sizes tried;
  Batch touch(32, [&](int64_t size, const at::Tensor&) {
    tried.push_back(size);
    use(size);
  });
  const auto first_try = [&](const at::Tensor& argument) {
    tried.clear();
    touch(argument);
    return tried.front();
  };
  const auto rows = at::empty({3, 4});
  BudgetScope::allow(20 * kItem);
  EXPECT_EQ(first_try(rows), 32);
  EXPECT_EQ(first_try(rows), 16);
  EXPECT_EQ(first_try(rows.narrow(0, 0, 2)), 16);  // another batch
  EXPECT_EQ(first_try(rows.narrow(1, 0, 2)), 32);
  EXPECT_EQ(first_try(rows.view(c10::kInt)), 32);
  BudgetScope::allow(64 * kItem);
  EXPECT_EQ(first_try(rows), 32);
}

TEST_F(Adapt, RemembersOneSizeForACallIfAsked) {
  const BudgetScope budget(20 * kItem);
  Sizes tried;
  Batch touch(32,
              [&](int64_t size, const at::Tensor&) {
                tried.push_back(size);
                use(size);
              },
              {.cache = Cache::call});
  const auto rows = at::empty({3, 4}, c10::kByte);
  touch(rows);
  touch(rows.narrow(1, 0, 2));
  EXPECT_THAT(tried, ElementsAre(32, 16, 16));
}

/// A stand-in for a card, whose allocator gives its cache back on demand.
class Card final : public testing::EmptyDevice {
 public:
  explicit Card(int64_t& retries) : EmptyDevice({c10::kXPU, 0}, "a card"), retries_(retries) {}
  memory::Usage usage() const override { return {.retries = retries_}; }
  memory::MemoryInfo memory_info() const override { return {.available_bytes = 1_GiB}; }

 private:
  int64_t& retries_;
};

class AdaptOnACard : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { memory::add_backend(std::make_unique<Card>(retries)); }
  /// Returns the size of an attempt in which the allocator gives its cache back so often.
  int64_t attempt(Search& search, int64_t more) {
    return search.attempt(32, [&](int64_t size) {
      retries += more;
      return size;
    });
  }
  static inline int64_t retries = 0;
  SizeCache cache_;
};

TEST_F(AdaptOnACard, ShrinksAfterTwoAttemptsInARowThatNeededTheCache) {
  std::vector<std::string> reasons;
  const Options options{.policy = {.regrow_after = 3}, .on_change = [&](const Change& change) {
                          reasons.push_back(change.reason);
                        }};
  Search search(32, options, cache_, "key", {c10::kXPU, 0});
  for (const int64_t more : {5, 0, 1, 0, 0, 2}) EXPECT_EQ(attempt(search, more), 32);
  EXPECT_EQ(attempt(search, 1), 32);  // the second in a row
  for (int i = 0; i < 3; ++i) EXPECT_EQ(attempt(search, 0), 16);
  EXPECT_EQ(attempt(search, 0), 32);  // after three clean ones
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_THAT(reasons[0], HasSubstr("had to return its cache in two consecutive attempts"));
  EXPECT_EQ(reasons[1], "");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(attempt(search, 1), 32);
  EXPECT_EQ(attempt(search, 0), 16) << "it has grown meanwhile";
}

TEST_F(AdaptOnACard, DoesNotShrinkFurtherWhereThatHasNotHelped) {
  const Options options{.policy = {.regrow_after = 3}};
  Search search(32, options, cache_, "key", {c10::kXPU, 0});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(attempt(search, 1), 32);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(attempt(search, 1), 16);
}

TEST_F(AdaptOnACard, ShrinksToTheSizeThatIsSuggested) {
  for (const int64_t suggested : {24, 0}) {
    Options options{.policy = {.regrow_after = 3}};
    options.suggest = [&](int64_t failed) {
      EXPECT_EQ(failed, 32);
      return suggested > 0 ? std::optional(suggested) : std::nullopt;
    };
    Search search(32, options, cache_, "key of " + std::to_string(suggested), {c10::kXPU, 0});
    for (int i = 0; i < 2; ++i) EXPECT_EQ(attempt(search, 1), 32);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(attempt(search, 1), suggested > 0 ? suggested : 32);
  }
}

}  // namespace
}  // namespace tare::adapt

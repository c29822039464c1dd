// CudaCache against LibTorch's allocator: random requests on one stream and on three through both,
// with the settings of this process (PYTORCH_CUDA_ALLOC_CONF), allocated and reserved bytes equal
// after each. Of free blocks of one size the allocator takes that with the lowest address. The
// model has a later segment behind an earlier one, as the stand-in has with
// STAND_IN_RISING_ADDRESSES; what the driver of a card does is not known, so that sequences in
// which segments are returned may differ there.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "contract/traits.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/trace/cuda_cache.h"

namespace tare::plan {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// The capacity that the allocator works with under a budget, which it keeps as a share of the
/// card.
int64_t capacity_of(int64_t budget, int64_t total) {
  const auto all = static_cast<double>(total);
  return static_cast<int64_t>(static_cast<double>(budget) / all * all);
}

class CudaAllocator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = memory::CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    if (IsSkipped()) return;
    backend().set_budget({});
    (void)backend().reclaim();
  }
  static memory::DeviceBackend& backend() { return memory::backend(memory::CudaTraits::device()); }

  /// Returns the default stream of the card and two others.
  static const std::vector<c10::Stream>& three_streams() {
    static const std::vector<c10::Stream> all = [] {
      const c10::Device card = memory::CudaTraits::device();
      const c10::impl::VirtualGuardImpl cuda(card.type());
      return std::vector{cuda.getDefaultStream(card), cuda.getStreamFromGlobalPool(card),
                         cuda.getStreamFromGlobalPool(card)};
    }();
    return all;
  }

  /// Plays one sequence of requests on the first so many of the three streams and returns the first
  /// difference; empty: there is none.
  static std::string difference(uint64_t seed, uint64_t streams) {
    std::mt19937_64 draw(seed);
    (void)backend().reclaim();
    const int64_t total = backend().memory_info().total_bytes;
    int64_t capacity = CudaCache::kUnlimited;
    backend().set_budget({});
    if (seed % 2 == 1) {
      const int64_t budget = (100 + static_cast<int64_t>(draw() % 300)) * kMiB;
      backend().set_budget(budget);
      capacity = capacity_of(budget, total);
    }
    const int64_t retries = backend().retries();
    CudaCache model(capacity, backend().traits().planner->cache);
    std::map<int64_t, at::Tensor> live;
    for (int64_t i = 0; i < 600; ++i) {
      if (live.empty() || draw() % 100 < 52) {
        const int64_t bytes = size(draw);
        const uint64_t stream = draw() % streams;
        const c10::StreamGuard current(three_streams()[stream]);
        const bool expected = model.allocate(i, bytes, static_cast<int>(stream));
        const auto place = live.end();
        try {
          live.emplace_hint(
              place, i,
              at::empty({bytes}, at::TensorOptions(memory::CudaTraits::device()).dtype(at::kByte)));
          if (!expected) return text(i, "the model refuses what the allocator gives", bytes);
        } catch (const c10::OutOfMemoryError&) {
          if (expected) return text(i, "the allocator refuses what the model gives", bytes);
        }
      } else {
        const auto chosen = std::next(live.begin(), static_cast<int64_t>(draw() % live.size()));
        model.release(chosen->first);
        live.erase(chosen);
      }
      const memory::Usage now = backend().usage();
      if (now.allocated_bytes != model.allocated_bytes())
        return text(i, "allocated", now.allocated_bytes, model.allocated_bytes());
      if (now.reserved_bytes != model.reserved_bytes())
        return text(i, "reserved", now.reserved_bytes, model.reserved_bytes());
    }
    if (backend().retries() - retries != model.retries())
      return text(600, "retries", backend().retries() - retries, model.retries());
    return {};
  }

  static void expect_no_difference(uint64_t streams) {
    const uint64_t sequences = std::getenv("TARE_DEEP") ? 2000 : 200;
    // Of equal free blocks the allocator takes that of the lowest address. The model gives a new
    // segment an address above all others, as the stand-in does, and a driver now and then another.
    const uint64_t most_different = memory::is_stand_in() ? 0 : sequences / 10;
    uint64_t different = 0;
    for (uint64_t seed = 0; seed < sequences && different < 5 + most_different; ++seed) {
      const std::string found = difference(seed, streams);
      if (!found.empty() && ++different > most_different)
        ADD_FAILURE() << "sequence " << seed << ": " << found;
    }
  }

 private:
  static int64_t size(std::mt19937_64& draw) {
    constexpr std::array<int64_t, 9> kMost{600,       60'000,    kMiB,       1'100'000, 3'000'000,
                                           9'900'000, 10 * kMiB, 12'000'000, 30'000'000};
    const int64_t most = kMost[draw() % kMost.size()];
    return 1 + static_cast<int64_t>(draw() % static_cast<uint64_t>(most));
  }
  static std::string text(int64_t event, const std::string& what, int64_t real,
                          int64_t model = -1) {
    return "event " + std::to_string(event) + ": " + what + ' ' + std::to_string(real) +
           (model < 0 ? "" : ", the model " + std::to_string(model));
  }
};

TEST_F(CudaAllocator, SettingsAreThoseOfTheEnvironment) {
  const char* const given = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  const std::string text = given == nullptr ? "" : given;
  const auto has = [&](const char* setting) { return text.find(setting) != std::string::npos; };
  const memory::CacheSettings settings = backend().traits().planner->cache, standard;
  EXPECT_EQ(settings.expandable_segments, has("expandable_segments:True"));
  EXPECT_EQ(settings.max_split_bytes != standard.max_split_bytes, has("max_split_size_mb"));
  EXPECT_EQ(settings.max_rounding_bytes != standard.max_rounding_bytes,
            has("max_non_split_rounding_mb"));
  EXPECT_EQ(settings.collects_garbage_above > 0, has("garbage_collection_threshold"));
  const auto& divisions = settings.roundup_divisions;
  EXPECT_EQ(std::ranges::any_of(divisions, [](int64_t each) { return each > 1; }),
            has("roundup_power2_divisions"));
}

TEST_F(CudaAllocator, GivesAndHoldsWhatTheModelDoes) { expect_no_difference(1); }

TEST_F(CudaAllocator, GivesAndHoldsWhatTheModelDoesOnThreeStreams) {
  const std::set<c10::StreamId> ids{three_streams()[0].id(), three_streams()[1].id(),
                                    three_streams()[2].id()};
  EXPECT_EQ(ids.size(), three_streams().size());
  expect_no_difference(three_streams().size());
}

}  // namespace
}  // namespace tare::plan

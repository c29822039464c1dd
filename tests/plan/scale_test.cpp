// Compares the model of many devices with values computed by hand.
#include "tare/plan/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tare/base/error.h"

namespace tare::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kRoomy = int64_t{1} << 60;
constexpr Link kLink{.bytes_per_s = 1000, .latency_s = 0.5};

/// Four units of one parameter of 1,000 bytes, 100 bytes of output and a quarter of the work each.
ScaleWork work_of(int64_t ranks) {
  ScaleWork work{.ranks = ranks,
                 .batch = 64,
                 .bytes = 20'000,  // 4,000 parameters, 4,000 gradients, 8,000 optimizer, 4,000 else
                 .sample_s = 3,
                 .bucket_bytes = 1'000};
  for (const char* name : {"a", "b", "c", "d"}) {
    work.parameters.push_back({.name = name,
                               .bytes = 1'000,
                               .trained_bytes = 1'000,
                               .state_bytes = 2'000,
                               .unit = work.units.size()});
    work.units.push_back({.name = name, .is_block = true, .share = 0.25, .output_bytes = 100});
  }
  return work;
}

Cluster cluster_of(const Link& link) { return {.per_machine = 8, .inside = link, .between = link}; }

ScaleRow row(const ScaleWork& work, Strategy strategy, const Link& link = kLink) {
  for (const ScaleRow& one : scale(work, cluster_of(link), kRoomy))
    if (one.strategy == strategy) return one;
  ADD_FAILURE() << "no row for " << to_string(strategy);
  return {};
}

TEST(Scale, OfOneRankIsThePlan) {
  const auto rows = scale(work_of(1), cluster_of(kLink), 20'000);
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].bytes, 20'000);
  EXPECT_TRUE(rows[0].fits);
  EXPECT_DOUBLE_EQ(rows[0].step_s, 64 * 3);
  EXPECT_EQ(rows[0].exchange_s, 0);
  EXPECT_DOUBLE_EQ(rows[0].efficiency, 1);
  EXPECT_FALSE(scale(work_of(1), cluster_of(kLink), 19'999)[0].fits);
}

TEST(Scale, BytesAreWithoutWhatARankDoesNotKeep) {
  const ScaleWork work = work_of(4);
  EXPECT_EQ(row(work, Strategy::data_parallel).bytes, 20'000);
  EXPECT_EQ(row(work, Strategy::zero1).bytes, 20'000 - 8'000 + 2'000);
  EXPECT_EQ(row(work, Strategy::zero2).bytes, 14'000 - 4'000 + 1'000 + 2 * 1'000);
  EXPECT_EQ(row(work, Strategy::zero3).bytes, 13'000 - 4'000 + 1'000 + 1'000);
  // Half of the parameters, gradients and state, and half of the activations of twice the samples.
  EXPECT_EQ(row(work_of(2), Strategy::pipeline).bytes, 8'000 + 4'000);
  ScaleWork in_parts = work_of(2);
  in_parts.parts = 4;  // whose activations a pipeline keeps together
  EXPECT_EQ(row(in_parts, Strategy::pipeline).bytes, 8'000 + 4 * 4'000);
}

TEST(Scale, PlannedBytesTakeThePlaceOfComputedOnes) {
  ScaleWork work = work_of(4);
  EXPECT_TRUE(row(work, Strategy::data_parallel).is_planned);
  EXPECT_FALSE(row(work, Strategy::zero2).is_planned);
  work.planned_bytes[Strategy::zero2] = 12'345;
  EXPECT_EQ(row(work, Strategy::zero2).bytes, 12'345);
  EXPECT_TRUE(row(work, Strategy::zero2).is_planned);
  EXPECT_EQ(row(work, Strategy::zero1).bytes, 14'000);
}

TEST(Scale, ParametersOutsideOfBlocksAreOnAllRanks) {
  ScaleWork work = work_of(4);
  const int64_t before = row(work, Strategy::zero3).bytes;
  work.units[0].is_block = false;
  EXPECT_EQ(row(work, Strategy::zero3).bytes, before + 1'000);
  EXPECT_EQ(row(work, Strategy::zero2).bytes, row(work_of(4), Strategy::zero2).bytes);
  for (ScaleUnit& unit : work.units) unit.is_block = false;
  EXPECT_EQ(row(work, Strategy::zero3).bytes, row(work, Strategy::zero1).bytes)
      << "a model without blocks";
}

TEST(Scale, BytesDependOnTheLargestParameter) {
  ScaleWork work = work_of(64);
  const int64_t before = row(work, Strategy::zero3).bytes;
  work.ranks = 1024;
  EXPECT_EQ(row(work, Strategy::zero3).bytes, before) << "whole parameters have owners";
  work.parameters.back().trained_bytes = 0;  // frozen
  work.parameters.back().state_bytes = 0;
  work.bytes -= 3'000;
  EXPECT_EQ(row(work, Strategy::zero1).bytes, 17'000 - 6'000 + 2'000);
}

TEST(Scale, BucketsAreSentWhileTheBackwardComputes) {
  // 16 samples of a rank: forward 16 s, backward 32 s, 8 s for each bucket of one unit.
  const ScaleWork work = work_of(4);
  const double bucket = all_reduce_s(4, 1'000, kLink);  // 4.5 s, less than a unit's backward
  const double agree = agree_s(4, kLink);
  const ScaleRow found = row(work, Strategy::data_parallel);
  EXPECT_DOUBLE_EQ(found.compute_s, 48);
  EXPECT_DOUBLE_EQ(found.exchange_s, 4 * bucket + 2 * agree);
  EXPECT_DOUBLE_EQ(found.step_s, 48 + bucket + agree) << "the last bucket waits for nothing";
  EXPECT_DOUBLE_EQ(found.samples_per_s, 64 / found.step_s);
  EXPECT_DOUBLE_EQ(found.efficiency, 64 * 3 / (4 * found.step_s));

  const Link slow{.bytes_per_s = 100, .latency_s = 0.5};  // 18 s for a bucket
  EXPECT_DOUBLE_EQ(row(work, Strategy::data_parallel, slow).step_s,
                   16 + 8 + 4 * all_reduce_s(4, 1'000, slow) + agree);
}

TEST(Scale, GradientsOfMicroBatchesAreSentWithTheLastOne) {
  ScaleWork work = work_of(4);
  work.parts = 4;  // the last backward takes 8 s
  const Link slow{.bytes_per_s = 100, .latency_s = 0.5};
  EXPECT_DOUBLE_EQ(row(work, Strategy::data_parallel, slow).step_s,
                   16 + 24 + 2 + 4 * all_reduce_s(4, 1'000, slow) + agree_s(4, slow));
}

TEST(Scale, Zero1AlsoGivesTheParameters) {
  const ScaleWork work = work_of(4);
  const double all = 4 * broadcast_s(4, 1'000, kLink);  // each rank owns a parameter
  EXPECT_DOUBLE_EQ(row(work, Strategy::zero1).step_s,
                   row(work, Strategy::data_parallel).step_s + all);
}

TEST(Scale, Zero2ReducesToOwners) {
  EXPECT_DOUBLE_EQ(
      row(work_of(4), Strategy::zero2).step_s,
      48 + reduce_s(4, 1'000, kLink) + agree_s(4, kLink) + 4 * broadcast_s(4, 1'000, kLink));
}

TEST(Scale, Zero2SendsTheGradientsOfEachMicroBatch) {
  ScaleWork work = work_of(4);
  const double once = row(work, Strategy::zero2).exchange_s;
  work.parts = 3;
  EXPECT_DOUBLE_EQ(row(work, Strategy::zero2).exchange_s, once + 2 * 4 * reduce_s(4, 1'000, kLink));
}

TEST(Scale, ABucketHasPiecesOfItsOwners) {
  ScaleWork work = work_of(4);
  work.bucket_bytes = 2'000;                            // two parameters of two owners
  EXPECT_EQ(row(work, Strategy::zero2).bytes, 14'000);  // all four gradients: 1,000 + 2 * 2,000
  EXPECT_DOUBLE_EQ(
      row(work, Strategy::zero2).step_s,
      48 + 2 * reduce_s(4, 1'000, kLink) + agree_s(4, kLink) + 4 * broadcast_s(4, 1'000, kLink));
}

TEST(Scale, Zero3GathersTwice) {
  const ScaleRow found = row(work_of(4), Strategy::zero3);
  const double gather = broadcast_s(4, 1'000, kLink);
  EXPECT_DOUBLE_EQ(found.exchange_s,
                   8 * gather + 4 * reduce_s(4, 1'000, kLink) + 2 * agree_s(4, kLink));
  // A gather waits for the reduction of the unit behind, which is in the way.
  EXPECT_DOUBLE_EQ(found.step_s,
                   48 + 8 * gather + 4 * reduce_s(4, 1'000, kLink) + agree_s(4, kLink));
  ScaleWork work = work_of(4);
  work.units[0].is_block = false;  // it is gathered once
  EXPECT_DOUBLE_EQ(row(work, Strategy::zero3).exchange_s, found.exchange_s - gather);
}

TEST(Scale, APipelineIsIdleAtItsEnds) {
  ScaleWork work = work_of(2);
  const ScaleRow found = row(work, Strategy::pipeline, {.bytes_per_s = 1e30, .latency_s = 0});
  EXPECT_EQ(found.stages, 2);
  EXPECT_EQ(found.micro_batches, 8);
  // Half of 64 samples' work for each stage, of which 1 of 9 slots is idle.
  EXPECT_DOUBLE_EQ(found.step_s, 96 * (8 + 2 - 1) / 8.0);
  EXPECT_NEAR(1 - found.compute_s / found.step_s, (2 - 1) / (8 + 2 - 1.0), 1e-12);
  // Both ways of 800 bytes of a micro-batch in each slot.
  EXPECT_DOUBLE_EQ(row(work, Strategy::pipeline).step_s,
                   9 * (96 / 8.0 + 2 * kLink.seconds(800)) + agree_s(2, kLink));
}

TEST(Scale, APipelineIsCutWhereItsStagesAreEven) {
  ScaleWork work = work_of(2);
  const double shares[] = {0.1, 0.1, 0.2, 0.6};
  for (size_t i = 0; i < 4; ++i) work.units[i].share = shares[i];
  const Link fast{.bytes_per_s = 1e30, .latency_s = 0};
  EXPECT_DOUBLE_EQ(row(work, Strategy::pipeline, fast).compute_s, 0.6 * 64 * 3);
  work.units[2].output_bytes = 0;  // no stage ends there
  EXPECT_DOUBLE_EQ(row(work, Strategy::pipeline, fast).compute_s, 0.8 * 64 * 3);
  for (ScaleUnit& unit : work.units) unit.output_bytes = 0;
  EXPECT_EQ(scale(work, cluster_of(kLink), kRoomy).size(), 4) << "and no pipeline";
}

TEST(Scale, SeveralPipelinesShareABatch) {
  const ScaleRow found = row(work_of(8), Strategy::pipeline);
  EXPECT_EQ(8 % found.stages, 0);
  EXPECT_LE(found.stages, 4);
}

TEST(Scale, StepsTakeNoLessWithASlowerLink) {
  for (const int64_t ranks : {2, 3, 8, 64, 1024}) {
    const auto fast = scale(work_of(ranks), cluster_of({1e6, 1e-3}), kRoomy);
    for (const Link& slower : {Link{1e5, 1e-3}, Link{1e6, 1e-1}}) {
      const auto slow = scale(work_of(ranks), cluster_of(slower), kRoomy);
      ASSERT_EQ(slow.size(), fast.size());
      for (size_t i = 0; i < slow.size(); ++i)
        EXPECT_GT(slow[i].step_s, fast[i].step_s) << ranks << ' ' << to_string(fast[i].strategy);
    }
  }
}

TEST(Scale, MoreRanksNeedNoMoreBytesAndAreNoMoreEfficient) {
  std::vector<ScaleRow> before;
  for (int64_t ranks = 2; ranks <= 1024; ranks *= 2) {
    const auto now = scale(work_of(ranks), cluster_of(kLink), kRoomy);
    for (size_t i = 0; i < before.size(); ++i) {
      if (now[i].strategy == Strategy::pipeline) continue;  // its activations grow with its stages
      EXPECT_LE(now[i].bytes, before[i].bytes) << ranks << ' ' << to_string(now[i].strategy);
      EXPECT_LE(now[i].efficiency, before[i].efficiency) << ranks << to_string(now[i].strategy);
    }
    for (const ScaleRow& one : now) {
      EXPECT_GE(one.step_s, one.compute_s);
      EXPECT_LE(one.efficiency, 1);
    }
    before = now;
  }
}

TEST(Scale, WithoutATimeThereAreBytesOnly) {
  ScaleWork work = work_of(4);
  work.sample_s.reset();
  const auto rows = scale(work, cluster_of(kLink), kRoomy);
  EXPECT_EQ(rows.size(), 5);
  for (const ScaleRow& one : rows) {
    EXPECT_GT(one.bytes, 0);
    EXPECT_EQ(one.step_s, 0);
    EXPECT_EQ(one.samples_per_s, 0);
  }
  EXPECT_EQ(fastest(rows), nullptr);
}

TEST(Scale, TheFastestIsOneThatFits) {
  const ScaleWork work = work_of(4);
  const auto fit = [&](int64_t capacity) {
    const auto rows = scale(work, cluster_of(kLink), capacity);
    const ScaleRow* best = fastest(rows);
    return std::string(best ? to_string(best->strategy) : "none");
  };
  EXPECT_EQ(fit(20'000), "data parallel");
  EXPECT_NE(fit(19'999), "data parallel");
  EXPECT_EQ(fit(7'999), "none");
  ScaleWork cached = work;
  cached.cached_bytes = 1;
  EXPECT_FALSE(scale(cached, cluster_of(kLink), 20'000).front().fits);
}

TEST(Scale, RefusesWhatIsNoTraining) {
  ScaleWork work = work_of(4);
  for (int64_t* number : {&work.ranks, &work.batch, &work.parts}) {
    const int64_t before = std::exchange(*number, 0);
    EXPECT_THROW((void)scale(work, cluster_of(kLink), kRoomy), ConfigError);
    *number = before;
  }
  EXPECT_THROW((void)scale(work, {.per_machine = 0}, kRoomy), ConfigError);
}

TEST(Scale, OfAModelWithoutParametersIsOfItsBytes) {
  ScaleWork work = work_of(4);
  work.parameters.clear();
  work.units.clear();
  for (const ScaleRow& one : scale(work, cluster_of(kLink), kRoomy)) EXPECT_EQ(one.bytes, 20'000);
}

}  // namespace
}  // namespace tare::plan

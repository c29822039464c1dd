// A fit on several ranks gives the figures and weights of a fit on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "parallel/figures.h"
#include "parallel/job.h"
#include "support/temp_dir.h"

namespace tare::testing {
namespace {

using nlohmann::json;

void expect_equal_to_one(const json& options, const std::vector<int64_t>& sizes = {2, 3}) {
  json alone = options;
  alone["alone"] = true;
  const json expected = results_of(1, "fit", alone).front();
  for (const int64_t size : sizes) {
    const auto all = results_of(size, "fit", options);
    for (const json& one : all) {
      expect_near(one["rows"], expected["rows"],
                  options.dump() + " rows of " + std::to_string(size));
      expect_near(one["norm"], expected["norm"], options.dump() + " norm");
      expect_near(one["validated"], expected["validated"], options.dump() + " validated");
      EXPECT_EQ(one["norm"], all.front()["norm"]) << "the ranks have the same weights";
      EXPECT_EQ(one["held"], all.front()["held"]);
      EXPECT_EQ(one["left"], 0) << options.dump() << ": bytes after destroy()";
    }
  }
}

TEST(Ranks, TrainAsOneProcessDoes) { expect_equal_to_one({{"epochs", 3}}, {1, 2, 3, 4}); }

TEST(Ranks, DivideLastBatchesThatAreSmallerThanTheirNumber) {
  expect_equal_to_one({{"samples", 98}, {"batch", 24}}, {2, 4});  // the last one has 2 samples
}

TEST(Ranks, WeighTheirPartsByTheLabelsThatCount) { expect_equal_to_one({{"ignored", true}}); }

TEST(Ranks, AddUpMicroBatches) { expect_equal_to_one({{"micro_batch", 3}}); }

TEST(Ranks, TrainWithThreadsOfTheLoader) { expect_equal_to_one({{"workers", 2}}); }

TEST(Ranks, MakeTheirBucketsAnewWhereLayersAreFrozen) { expect_equal_to_one({{"freeze", true}}); }

TEST(Ranks, NormaliseOverTheWholeBatch) {
  expect_equal_to_one({{"pictures", true}, {"sync_batch_norm", true}, {"samples", 108}});
}

TEST(Ranks, SendGradientsInBucketsOfAnySize) {
  expect_equal_to_one({{"bucket_mib", 1e-4}});
  expect_equal_to_one({{"bucket_mib", 1e-4}, {"static_graph", true}});
}

TEST(Ranks, LeaveOutWhatABackwardDoesNotUse) { expect_equal_to_one({{"find_unused", true}}); }

TEST(Ranks, SendGradientsInHalfPrecision) {
  const double exact = results_of(2, "fit").front()["norm"];
  const auto half = results_of(2, "fit", {{"compression", "fp16"}});
  EXPECT_EQ(half[0]["norm"], half[1]["norm"]);
  EXPECT_NE(half[0]["norm"], exact);
  EXPECT_NEAR(half[0]["norm"], exact, 1e-2 * exact);
}

TEST(Ranks, TakeSmallerPartsTogetherWhereOneRunsOutOfMemory) {
  json options{{"samples", 192}, {"batch", 96}, {"hidden", 2000}};
  json alone = options;
  alone["alone"] = true;
  const json expected = results_of(1, "fit", alone).front();
  const auto free = results_of(3, "fit", options);
  for (const double share : {0.8, 0.65, 0.5}) {
    options["budget"] = static_cast<int64_t>(share * free[1]["peak"].get<double>());
    const auto all = results_of(3, "fit", options);
    for (const json& one : all) {
      EXPECT_GT(one["changes"], 0) << share;
      expect_near(one["rows"], expected["rows"], "rows");
      expect_near(one["norm"], expected["norm"], "norm");
    }
    EXPECT_LE(all[1]["peak"], options["budget"]) << share;
  }
}

TEST(Ranks, TakeSmallerPartsTogetherWhereTheyKeepParts) {
  for (const char* shard : {"gradients", "parameters"}) {
    json options{{"shard", shard}, {"pictures", true}, {"blocks", true},
                 {"samples", 192}, {"batch", 96},      {"bucket_mib", 0.01}};
    json alone = options;
    alone["alone"] = true;
    const json expected = results_of(1, "fit", alone).front();
    const auto free = results_of(3, "fit", options);
    options["budget"] = static_cast<int64_t>(0.6 * free[1]["peak"].get<double>());
    for (const json& one : results_of(3, "fit", options)) {
      EXPECT_GT(one["changes"], 0) << shard;
      expect_near(one["rows"], expected["rows"], "rows");
      expect_near(one["norm"], expected["norm"], "norm");
    }
  }
}

TEST(Ranks, EndWithTheOthersWhereTheyKeepParts) {
  for (const char* shard : {"gradients", "parameters"})
    for (const char* how : {"kill", "throw"}) {
      const auto all = Job(3, "end", {{"how", how}, {"shard", shard}}).wait();
      for (const size_t rank : {0U, 2U}) {
        EXPECT_EQ(all[rank].status, 1) << shard << ' ' << how;
        EXPECT_THAT(all[rank].err, ::testing::HasSubstr("rank 1 of 3"));
      }
    }
}

TEST(Ranks, KeepTheirPartsOfTheOptimizersState) {
  for (const char* kind : {"sgd", "adamw"})
    expect_equal_to_one({{"shard", "optimizer"}, {"optimizer", kind}, {"hidden", 40}});
  const json options{{"optimizer", "adamw"}, {"hidden", 40}};
  const auto whole = results_of(1, "fit", options).front()["state_bytes"].get<int64_t>();
  json sharded = options;
  sharded["shard"] = "optimizer";
  int64_t all = 0;
  for (const json& one : results_of(3, "fit", sharded)) {
    EXPECT_LT(one["state_bytes"], whole);
    all += one["state_bytes"].get<int64_t>();
  }
  EXPECT_EQ(all, whole);
}

TEST(Ranks, KeepTheirPartsOfTheGradients) {
  json options{{"shard", "gradients"}, {"optimizer", "adamw"}, {"hidden", 40}};
  expect_equal_to_one(options, {2, 4});
  options["bucket_mib"] = 1e-4;  // each parameter is a bucket
  options["samples"] = 98;       // the last batch has 2 samples
  options["micro_batch"] = 5;    // and the ranks have another number of parts
  options["ignored"] = true;
  options["clip"] = 0.05;
  expect_equal_to_one(options, {3, 4});
  expect_equal_to_one({{"shard", "gradients"}, {"freeze", true}, {"find_unused", true}});
}

TEST(Ranks, KeepTheirPartsOfTheParameters) {
  json options{{"shard", "parameters"}, {"pictures", true}, {"blocks", true}};
  expect_equal_to_one(options, {2, 4});
  options["recompute"] = true;
  options["samples"] = 98;
  options["micro_batch"] = 5;
  options["clip"] = 0.05;
  options["freeze"] = true;
  expect_equal_to_one(options, {3});
  expect_equal_to_one({{"shard", "parameters"}});  // of a model without blocks
}

TEST(Ranks, TakeLessMemoryTheMoreOfItIsDivided) {
  json options{{"hidden", 3000}, {"optimizer", "adamw"}, {"batch", 8}, {"samples", 16}};
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const char* shard : {"none", "optimizer", "gradients"}) {
    options["shard"] = shard;
    int64_t largest = 0;
    for (const json& one : results_of(3, "fit", options))
      largest = std::max(largest, one["peak"].get<int64_t>());
    EXPECT_LT(largest, before) << shard;
    before = largest;
  }
}

TEST(Ranks, LoadWhatAnyNumberOfThemHasSaved) {
  const std::vector<int64_t> sizes{2, 4, 3, 1, 4, 2};
  for (const auto& [shard, count] : {std::pair("parameters", 6U), std::pair("optimizer", 2U)}) {
    const TempDir folder;
    json options{{"shard", shard},      {"pictures", true},        {"blocks", true},
                 {"epochs", 1},         {"folder", folder.path()}, {"save", "first"},
                 {"optimizer", "adamw"}};
    (void)results_of(1, "fit", options);
    options["epochs"] = 0;
    options["load"] = "first";
    options["save"] = "again";
    const json expected = results_of(1, "fit", options).front();
    ASSERT_GT(expected["optimizer"].size(), 30);
    for (const int64_t size : std::span(sizes).first(count)) {
      options["load"] = options["save"];
      options["save"] = "by_" + std::to_string(size);
      EXPECT_EQ(results_of(size, "fit", options).front(), expected) << shard << ", " << size;
    }
  }
}

TEST(Ranks, SendGradientsWhileTheBackwardComputesOthers) {
  for (const json& one : results_of(2, "times")) {
    EXPECT_GE(one["steps"], 10);
    EXPECT_GT(one["overlap"], 0) << "by the time stamps of LibTorch's reducer";
    EXPECT_LE(one["overlap"], one["communication"]);
    EXPECT_LE(one["overlap"], one["backward"]);
    EXPECT_THAT(one["text"].get<std::string>(), ::testing::HasSubstr("while the backward"));
  }
}

TEST(Ranks, StopTogether) {
  for (const ProgramResult& one : Job(3, "end", {{"how", "stop"}}).wait()) {
    ASSERT_EQ(one.status, 0) << one.err;
    EXPECT_EQ(json::parse(one.out)["steps"], 6) << "what rank 1 wants is known a step later";
  }
}

}  // namespace
}  // namespace tare::testing

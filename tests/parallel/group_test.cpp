// Tests the exchanges between the ranks of a job, and the errors where a rank is missing.
#include "tare/parallel/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "parallel/job.h"

namespace tare::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(Group, ExchangesTensorsNumbersAndTexts) {
  for (const int64_t size : {1, 2, 4}) {
    const auto all = results_of(size, "exchange");
    for (const json& one : all) {
      EXPECT_EQ(one["sum"], size * (size + 1) / 2);
      EXPECT_EQ(one["given"], size - 1);
      for (int64_t rank = 0; rank < size; ++rank) {
        const auto at = static_cast<size_t>(rank);
        EXPECT_EQ(one["texts"][at], 3 * rank);
        EXPECT_EQ(one["numbers"][at], json({rank, -rank}));
        EXPECT_EQ(one["tensors"][at], json({rank > 0 ? 2 : 1, 2 * rank * rank}));
      }
    }
  }
}

TEST(Group, NamesTheRanksThatDoNotCome) {
  Job job(4, "exchange", json::object(), {"TEST_MEETING_SECONDS=1"}, {1, 3});
  for (const ProgramResult& one : job.wait()) {
    EXPECT_EQ(one.status, 1);
    EXPECT_THAT(one.err, HasSubstr("of 4 has waited 1 s for ranks 1, 3: start all ranks"));
  }
}

/// Returns the words that start a rank by hand, for env.
Variables rank_by_hand(const parallel::StoreServer& store, const std::string& number,
                       const std::string& size) {
  return {"RANK=" + number,
          "WORLD_SIZE=" + size,
          "MASTER_ADDR=127.0.0.1",
          "MASTER_PORT=" + std::to_string(store.port()),
          "TORCHELASTIC_USE_AGENT_STORE=True",
          "TEST_MEETING_SECONDS=2",
          std::filesystem::absolute(program_path("rank_program")).string(),
          "exchange"};
}

TEST(Group, RefusesARankThatIsThereTwice) {
  const parallel::StoreServer store;
  const Variables words = rank_by_hand(store, "1", "2");
  Program first("/usr/bin/env", words), second("/usr/bin/env", words);
  EXPECT_THAT(first.wait().err + second.wait().err,
              AllOf(HasSubstr("rank 1 is there twice"), HasSubstr("for rank 0: start all ranks")));
}

TEST(Group, RefusesRanksOfDifferentJobs) {
  const parallel::StoreServer store;
  Program first("/usr/bin/env", rank_by_hand(store, "0", "2")),
      second("/usr/bin/env", rank_by_hand(store, "1", "3"));
  EXPECT_THAT(first.wait().err, HasSubstr("and rank 1 of 3 ranks"));
  EXPECT_THAT(second.wait().err, HasSubstr("and rank 0 of 2 ranks"));
}

TEST(Group, SaysWhereNoStoreIsServed) {
  Program rank(
      "/usr/bin/env",
      {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=9", "TEST_MEETING_SECONDS=1",
       std::filesystem::absolute(program_path("rank_program")).string(), "exchange"});
  const ProgramResult result = rank.wait();
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1 cannot reach the store at 127.0.0.1:9"),
                                HasSubstr("check MASTER_ADDR and MASTER_PORT")));
}

TEST(Group, SaysWhichRankWasKilled) {
  for (const int64_t victim : {0, 1, 2}) {
    const auto start = Clock::now();
    Job job(3, "end", {{"how", "kill"}, {"rank", victim}});
    const auto all = job.wait();
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (std::cmp_equal(rank, victim)) continue;
      EXPECT_EQ(all[rank].status, 1);
      EXPECT_THAT(all[rank].err,
                  HasSubstr("rank " + std::to_string(victim) + " of 3 has ended without a word"));
    }
    EXPECT_LT(seconds_since(start), 20) << "no rank waits for its timeout";
  }
}

TEST(Group, DoesNotNameARankThatComputesBesideOneThatWasKilled) {
  Job job(3, "end", {{"how", "kill"}, {"rank", 1}, {"computing_rank", 2}});
  const auto all = job.wait();
  for (const size_t rank : {0U, 2U})
    EXPECT_THAT(all[rank].err, HasSubstr("rank 1 of 3 has ended without a word")) << rank;
}

TEST(Group, SaysWhichRankDoesNotAnswer) {
  Job job(2, "end", {{"how", "hang"}}, {"TEST_ANSWER_SECONDS=2"});
  const auto all = job.wait();
  EXPECT_EQ(all[0].status, 1);
  EXPECT_THAT(all[0].err, HasSubstr("rank 1 of 2 has ended without a word, or does not answer"));
}

TEST(Group, SaysWhyARankHasFailed) {
  Job job(3, "end", {{"how", "throw"}});
  const auto all = job.wait();
  EXPECT_THAT(all[1].err, HasSubstr("[test] not possible: out of order"));
  for (const size_t rank : {0U, 2U})
    EXPECT_THAT(all[rank].err,
                HasSubstr("rank 1 of 3 has failed: [test] not possible: out of order"));
}

}  // namespace
}  // namespace tare::testing

// Ranks on cards: by NCCL where each has a card of its own, else by Gloo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "parallel/figures.h"
#include "parallel/job.h"

namespace tare::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

#ifdef TARE_HAS_NCCL
constexpr bool kHasNccl = true;
#else
constexpr bool kHasNccl = false;
#endif

bool is_stand_in() { return std::getenv("TARE_STAND_IN") != nullptr; }

class CardRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    const ProgramResult result = Program(path(), {"cards"}).wait();
    if (result.status != 0) GTEST_SKIP() << "there is no card: " << result.err;
    cards_ = json::parse(result.out).get<int64_t>();
  }
  static std::string path() {
    return std::filesystem::absolute(program_path("rank_program")).string();
  }
  /// Returns why NCCL cannot connect ranks on so many cards; empty: it can.
  [[nodiscard]] std::string why_no_nccl(int64_t cards) const {
    if (!kHasNccl) return "Tare was built without nccl.h";
    if (cards <= cards_) return {};
    return "this needs " + std::to_string(cards) + " cards, and here are " + std::to_string(cards_);
  }

  int64_t cards_ = 0;
};

/// Expects that a rank has left nothing on its card, and has held nothing on the others.
void expect_clean_cards(const json& rank, size_t own, const std::string& what) {
  for (size_t card = 0; card < rank["before"].size(); ++card) {
    const std::string where = what + ", card " + std::to_string(card);
    json before = rank["before"][card], during = rank["during"][card], after = rank["after"][card];
    // A driver keeps a little more after the first kernels. Threads of Gloo make a context on the
    // first card.
    const bool counts_process = is_stand_in() && (card == own || rank["backend"] != "gloo");
    if (!counts_process) before.erase(2), during.erase(2), after.erase(2);
    EXPECT_EQ(after, before) << where;
    if (card != own) {
      EXPECT_EQ(during, before) << where;
    }
  }
}

/// Expects of each rank the figures of a process that trains alone on a card, and that
/// the cards are as they were behind it.
void expect_equal_to_one(int64_t size, json options, const std::string& backend) {
  json alone = options;
  alone["alone"] = true;
  alone["device"] = "cuda:0";
  const json expected = results_of(1, "card", alone).front();
  const auto all = results_of(size, "card", options);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const json& one = all[rank];
    const std::string what = options.dump() + " rank " + std::to_string(rank);
    ASSERT_FALSE(one.is_null()) << what;
    EXPECT_EQ(one["backend"], backend) << what;
    expect_near(one["fit"]["rows"], expected["fit"]["rows"], what + " rows");
    expect_near(one["fit"]["norm"], expected["fit"]["norm"], what + " norm");
    EXPECT_EQ(one["fit"]["norm"], all.front()["fit"]["norm"]) << what;
    expect_clean_cards(one, static_cast<size_t>(options["device"] == "own card" ? rank : 0), what);
  }
}

TEST_F(CardRanks, TrainByNcclAsOneProcessDoes) {
  if (const std::string why = why_no_nccl(1); !why.empty()) GTEST_SKIP() << why;
  expect_equal_to_one(1, {{"device", "own card"}, {"backend", "nccl"}}, "nccl");
}

TEST_F(CardRanks, TrainByGlooOnOneCardAsOneProcessDoes) {
  expect_equal_to_one(2, {{"device", "cuda:0"}}, "gloo");
}

TEST_F(CardRanks, HaveACardEach) {
  if (const std::string why = why_no_nccl(2); !why.empty()) GTEST_SKIP() << why;
  const json options{{"device", "own card"}};
  for (int64_t size = 2; size <= cards_; size *= 2) expect_equal_to_one(size, options, "nccl");
  json by_gloo = options;
  by_gloo["backend"] = "gloo";
  expect_equal_to_one(2, by_gloo, "gloo");
}

TEST_F(CardRanks, ExchangeByNcclWhateverTheyExchange) {
  if (const std::string why = why_no_nccl(2); !why.empty()) GTEST_SKIP() << why;
  const json options{{"device", "own card"}};
  for (const json& more : {json{{"shard", "optimizer"}, {"optimizer", "adamw"}, {"hidden", 40}},
                           json{{"micro_batch", 3}, {"freeze", true}},
                           json{{"bucket_mib", 1e-4}, {"static_graph", true}},
                           json{{"pictures", true}, {"sync_batch_norm", true}, {"samples", 108}}}) {
    json all = options;
    all.update(more);
    expect_equal_to_one(2, all, "nccl");
  }
}

TEST_F(CardRanks, TakeSmallerPartsTogetherWhereOneRunsOutOfMemory) {
  if (!is_stand_in()) GTEST_SKIP() << "what fits a budget is known for the stand-in's segments";
  // Without workspaces, beside which little would fit.
  const Variables variables{"CUBLAS_WORKSPACE_CONFIG=:0:0", "CUBLASLT_WORKSPACE_SIZE=0"};
  json options{
      {"device", "own card"}, {"samples", 96}, {"batch", 48}, {"hidden", 200'000}, {"lr", 1e-4}};
  json alone = options;
  alone["alone"] = true;
  alone["device"] = "cuda:0";
  const json expected = results_of(1, "card", alone, variables).front();
  options["budget"] = 80'000'000;
  for (const json& one : results_of(2, "card", options, variables)) {
    ASSERT_FALSE(one.is_null());
    EXPECT_EQ(one["backend"], "nccl");
    EXPECT_GT(one["fit"]["changes"], 0);
    expect_near(one["fit"]["rows"], expected["fit"]["rows"], "rows");
    EXPECT_EQ(one["after"], one["before"]);
  }
}

TEST_F(CardRanks, SayThatNcclTakesOneRankPerCard) {
  if (const std::string why = why_no_nccl(1); !why.empty()) GTEST_SKIP() << why;
  const auto all = Job(2, "card", {{"device", "cuda:0"}, {"backend", "nccl"}}).wait();
  for (const ProgramResult& one : all) {
    EXPECT_EQ(one.status, 1);
    EXPECT_THAT(one.err, AllOf(HasSubstr("[ranks] ranks 0, 1 are on one card, 0000:"),
                               HasSubstr(": nccl takes one rank per card; take --backend gloo")));
    EXPECT_EQ(one.err, all.front().err);
  }
}

// The second card has memory for a context, and not for what NCCL takes.
TEST_F(CardRanks, GoThroughTheHostWhereNcclCannotConnectThem) {
  if (!is_stand_in()) GTEST_SKIP() << "only a card of the stand-in is as full as the test asks";
  const Variables variables{"STAND_IN_BYTES=17179869184,337641472"};  // and 66 MiB for the fit
  const Variables taken{"STAND_IN_BYTES=17179869184,337641472", "STAND_IN_NCCL_BYTES=134217728"};
  json options{{"device", "own card"}};
  for (const json& one : results_of(2, "card", options, taken)) {
    ASSERT_FALSE(one.is_null());
    EXPECT_EQ(one["backend"], "gloo");
    EXPECT_EQ(one["after"][0][0], one["before"][0][0]);
  }
  options["backend"] = "nccl";
  EXPECT_EQ(results_of(2, "card", options, variables).front()["backend"], "nccl");
  const auto all = Job(2, "card", options, taken).wait();
  for (const ProgramResult& one : all) {
    EXPECT_EQ(one.status, 1);
    EXPECT_THAT(one.err, AllOf(HasSubstr("[ranks] nccl cannot connect the cards (rank 0: "),
                               HasSubstr("; rank 1: "), HasSubstr("; take --backend gloo")));
    EXPECT_EQ(one.err, all.front().err);
  }
}

TEST_F(CardRanks, SayWhichRankWasKilled) {
  if (const std::string why = why_no_nccl(2); !why.empty()) GTEST_SKIP() << why;
  for (const size_t victim : {0U, 1U}) {
    const auto all =
        Job(2, "end", {{"how", "kill"}, {"rank", victim}, {"device", "own card"}}).wait();
    const ProgramResult& other = all[1 - victim];
    EXPECT_EQ(other.status, 1);
    EXPECT_THAT(other.err,
                HasSubstr("rank " + std::to_string(victim) + " of 2 has ended without a word"));
  }
}

TEST_F(CardRanks, SayWhichRankDoesNotAnswerOrWhyItHasFailed) {
  if (const std::string why = why_no_nccl(2); !why.empty()) GTEST_SKIP() << why;
  const auto hanging =
      Job(2, "end", {{"how", "hang"}, {"device", "own card"}}, {"TEST_ANSWER_SECONDS=2"}).wait();
  EXPECT_EQ(hanging[0].status, 1);
  EXPECT_THAT(hanging[0].err,
              HasSubstr("rank 1 of 2 has ended without a word, or does not answer"));
  const auto failing = Job(2, "end", {{"how", "throw"}, {"device", "own card"}}).wait();
  EXPECT_EQ(failing[0].status, 1);
  EXPECT_THAT(failing[0].err,
              HasSubstr("rank 1 of 2 has failed: [test] not possible: out of order"));
}

}  // namespace
}  // namespace tare::testing

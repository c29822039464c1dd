// A training over a slow network gives the figures of one within the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parallel/job.h"
#include "support/slow_network.h"

namespace tare::testing {
namespace {

using nlohmann::json;

/// Returns what ranks have printed that train in the places of a network.
std::vector<json> results_over(SlowNetwork& network, int64_t size, const json& options) {
  std::deque<Program> ranks;
  for (int64_t rank = 0; rank < size; ++rank) {
    std::vector<std::string> words = network.command_in(rank);
    const std::string program = words.front();
    words.erase(words.begin());
    words.emplace_back("/usr/bin/env");
    for (const std::string& one : network.variables(rank)) words.push_back(one);
    words.emplace_back("OMP_NUM_THREADS=1");
    words.push_back(std::filesystem::absolute(program_path("rank_program")).string());
    words.emplace_back("fit");
    words.push_back(options.dump());
    ranks.emplace_back(program, words);
  }
  std::vector<json> all;
  for (Program& one : ranks) {
    const ProgramResult result = one.wait();
    EXPECT_EQ(result.status, 0) << result.err;
    all.push_back(result.status == 0 ? json::parse(result.out) : json());
  }
  return all;
}

TEST(Network, OfHundredMegabitsAndTwentyMillisecondsChangesNoFigure) {
  if (const std::string why = SlowNetwork::unavailable(); !why.empty()) GTEST_SKIP() << why;
  for (const char* shard : {"none", "optimizer"}) {
    const json options{{"epochs", 2}, {"optimizer", "adamw"}, {"hidden", 200}, {"shard", shard}};
    const auto expected = results_of(2, "fit", options);
    SlowNetwork network(2, {.bits_per_s = 100e6, .delay_s = 0.010});
    const auto got = results_over(network, 2, options);
    EXPECT_GT(network.carried_bytes(), 100'000) << "the gradients went another way";
    ASSERT_EQ(got.size(), expected.size());
    for (size_t rank = 0; rank < got.size(); ++rank) {
      EXPECT_EQ(got[rank]["rows"], expected[rank]["rows"]) << shard << ", rank " << rank;
      EXPECT_EQ(got[rank]["norm"], expected[rank]["norm"]) << shard << ", rank " << rank;
      EXPECT_EQ(got[rank]["validated"], expected[rank]["validated"]) << shard;
    }
  }
}

}  // namespace
}  // namespace tare::testing

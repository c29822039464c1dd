// A program that starts ranks again after one was killed, as torchrun does, gets to the same end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "parallel/job.h"
#include "support/deep.h"
#include "support/files.h"
#include "support/seed.h"
#include "support/temp_dir.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kRecipe = R"(name: again
batch: 48
save_every: 5
data: {name: generated_digits, count: 500, size: 12}
model: {name: mlp, hidden: [16]}
phases: [{name: only, epochs: 30, lr: 3.0e-3}]
)";

/// Is one agent of torchrun: its store outlives the attempts, of which it has so many.
class Agent {
 public:
  explicit Agent(fs::path folder) : folder_(std::move(folder)) {
    std::ofstream(folder_ / "recipe.yaml") << kRecipe;
  }

  /// Starts the ranks. Kills one of them after `milliseconds`; 0: none.
  std::vector<ProgramResult> attempt(int64_t size, size_t victim, int64_t milliseconds) {
    std::deque<Program> ranks;
    for (int64_t rank = 0; rank < size; ++rank)
      ranks.emplace_back(
          "/usr/bin/env",
          Variables{
              "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
              "LOCAL_RANK=" + std::to_string(rank), "LOCAL_WORLD_SIZE=" + std::to_string(size),
              "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(store_.port()),
              "TORCHELASTIC_USE_AGENT_STORE=True",
              "TORCHELASTIC_RESTART_COUNT=" + std::to_string(attempts_), "OMP_NUM_THREADS=1",
              fs::absolute(program_path("tare")).string(), "run", "recipe.yaml", "--resume=auto"},
          folder_);
    ++attempts_;
    if (milliseconds > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      ::kill(ranks[victim].pid(), SIGKILL);
    }
    std::vector<ProgramResult> results;
    for (Program& rank : ranks) results.push_back(rank.wait());
    return results;
  }
  [[nodiscard]] json report() const {
    return json::parse(content_of(folder_ / "runs/again/report.json"));
  }

 private:
  fs::path folder_;
  parallel::StoreServer store_;
  int64_t attempts_ = 0;
};

std::vector<double> losses(const json& report) {
  std::vector<double> all;
  for (const json& epoch : report["phases"][0]["epochs"]) {
    all.push_back(epoch["train_loss"]);
    all.push_back(epoch["valid_loss"]);
  }
  return all;
}

TEST(Restart, EndsWithTheLossesOfAnUninterruptedJob) {
  const TempDir whole;
  Agent once(whole.path());
  for (const ProgramResult& rank : once.attempt(3, 0, 0)) ASSERT_EQ(rank.status, 0) << rank.err;
  const std::vector<double> expected = losses(once.report());
  ASSERT_EQ(expected.size(), 60);
  std::mt19937 random(test_seed());
  for (int64_t kill = 0; kill < reduced<int64_t>(1, 20); ++kill) {
    const TempDir folder;
    Agent agent(folder.path());
    bool ended = false;
    for (int64_t left = 2; !ended; --left) {
      ASSERT_GE(left, 0) << "an attempt without a kill comes to the end";
      const size_t victim = random() % 3;
      const auto milliseconds = static_cast<int64_t>(left > 0 ? 400 + random() % 1200 : 0);
      const auto ranks = agent.attempt(3, victim, milliseconds);
      ended = std::ranges::all_of(ranks, [](const ProgramResult& one) { return one.status == 0; });
    }
    const std::vector<double> got = losses(agent.report());
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)  // sums have another order until buckets are made anew
      EXPECT_NEAR(got[i], expected[i], 1e-6 * std::max(1.0, expected[i])) << "kill " << kill;
  }
}

}  // namespace
}  // namespace tare::testing

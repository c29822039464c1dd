// Whatever is killed, nothing of a sweep is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "support/deep.h"
#include "support/seed.h"
#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/error.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

using search::TrialState;
using sweep::SweepReport;
using sweep::Trial;
using ::testing::ElementsAre;

using KilledSweepTest = ShellSweepTest;

/// run_data.csv is whole at any moment: as many fields in each row as in the first.
void expect_whole_table(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return;
  std::istringstream rows(io::read_text(path));
  std::string row;
  std::getline(rows, row);
  const auto commas = std::ranges::count(row, ',');
  EXPECT_GT(commas, 3);
  while (std::getline(rows, row)) EXPECT_EQ(std::ranges::count(row, ','), commas) << row;
}

// Children and the coordinator are killed at random moments; another coordinator continues.
TEST_F(KilledSweepTest, NothingIsLostOrCompleteTwiceWhateverIsKilled) {
  const int rounds = reduced(6, 50), cells = 4 * rounds;
  const std::string text = "parameters: {a: {min: 1, max: " + std::to_string(cells) +
                           "}}\nresources: {jobs: 3}\non_failure: {max_retries: 100}\n";
  const auto sweep = read(text);
  const auto host = host_of(sweep, "sleep 0.03; echo $a >> $folder/../ended; finish 1 1");
  const auto store = this->store();
  std::mt19937_64 random(test_seed());
  const auto up_to = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
  int killed = 0;
  for (int round = 0; round < rounds; ++round) {
    const pid_t coordinator = fork();
    if (coordinator == 0) {
      try {
        (void)sweep::run_sweep(sweep, host);
      } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        _exit(1);
      }
      _exit(0);
    }
    for (int child = up_to(2); child > 0; --child) {
      std::this_thread::sleep_for(std::chrono::milliseconds(up_to(60)));
      if (!std::filesystem::exists(store)) continue;
      try {
        for (const Trial& trial : sweep::read_store(store, "s").trials)
          if (trial.state == TrialState::running && launch::is_alive(trial.child) && up_to(2) == 0)
            killed += kill(static_cast<pid_t>(trial.child.pid), SIGKILL) == 0;
      } catch (const Error&) {  // the first coordinator is making the tables
      }
      expect_whole_table(files_.log_dir() / "run_data.csv");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(up_to(60)));
    kill(coordinator, SIGKILL);
    int status = 0;
    waitpid(coordinator, &status, 0);
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    expect_whole_table(files_.log_dir() / "run_data.csv");
  }
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.complete, cells);
  EXPECT_EQ(report.failed, 0);
  const std::string ended = file("ended");
  EXPECT_LE(std::ranges::count(ended, '\n'), cells + rounds * 3 + killed)
      << "those under way, again";
  std::map<std::string, int> complete;
  for (const Trial& trial : sweep::read_store(store, "s").trials)
    if (trial.state == TrialState::complete) ++complete[trial.identity];
  EXPECT_EQ(complete.size(), static_cast<size_t>(cells));
  for (const auto& [identity, times] : complete) EXPECT_EQ(times, 1);
  EXPECT_THAT(rows(store, "PRAGMA integrity_check"), ElementsAre("ok"));
}

}  // namespace
}  // namespace tare::testing

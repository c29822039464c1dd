// The coordinator with runs that are shell scripts: they write the files of a run and end as they
// say.
#include "tare/sweep/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

using search::TrialState;
using sweep::Store;
using sweep::SweepHost;
using sweep::SweepReport;
using sweep::Trial;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CoordinatorTest : public ShellSweepTest {
 protected:
  [[nodiscard]] std::vector<Trial> trials(const std::string& text) {
    const auto sweep = read(text);
    return Store(store(), sweep).trials();
  }
};

constexpr const char* kTwoByTwo = "parameters: {a: [1, 2], c: [3, 4]}\nresources: {jobs: 2}\n";

TEST_F(CoordinatorTest, AFunctionMayReportARunInPlaceOfItsFiles) {
  const auto sweep = read("parameters: {a: [1, 2]}\nresources: {jobs: 1}\n");
  SweepHost host = host_of(sweep, "echo 0.5 > \"$folder/mine\"; exit $((a - 1))");
  host.outcome = [](const std::filesystem::path& folder, const launch::ChildEnd& end) {
    sweep::Outcome outcome{.reason = "reported", .exit_code = end.exit_code};
    if (end.exit_code != 0) return outcome;
    outcome.state = TrialState::complete;
    outcome.values = {std::stod(io::read_text(folder / "mine"))};
    outcome.seconds = 2;
    return outcome;
  };
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.complete, 1);
  EXPECT_EQ(report.failed, 1);
  EXPECT_THAT(out_.str(), HasSubstr("s0_a1  acc 0.5, peak unknown, 2 s"));
  EXPECT_THAT(out_.str(), HasSubstr("s1_a2  failed: reported"));
}

TEST_F(CoordinatorTest, RunsEveryCellOnce) {
  const SweepReport first = run(kTwoByTwo, "echo said; echo wrong >&2; finish 0.$a$c 1000");
  EXPECT_EQ(first.complete, 4);
  EXPECT_EQ(first.started, 4);
  EXPECT_THAT(out_.str(), HasSubstr("s3_a2_c4  acc 0.24, peak 1000 B, 500 ms"));
  EXPECT_EQ(file("s0_a1_c3/s0_a1_c3.log"), "said\n");
  EXPECT_EQ(file("s0_a1_c3/s0_a1_c3.err"), "wrong\n");
  EXPECT_EQ(file("run_data.csv"),
            "trial,name,state,a,c,run_acc,run_peak_bytes,run_seconds\n"
            "0,s0_a1_c3,COMPLETE,1,3,0.13,1000,0.5\n1,s1_a1_c4,COMPLETE,1,4,0.14,1000,0.5\n"
            "2,s2_a2_c3,COMPLETE,2,3,0.23,1000,0.5\n3,s3_a2_c4,COMPLETE,2,4,0.24,1000,0.5\n");
  const SweepReport second = run(kTwoByTwo, "exit 1");
  EXPECT_EQ(second.started, 0);
  EXPECT_EQ(second.complete, 4);
  const SweepReport more = run("parameters: {a: [1, 2, 5], c: [3]}\n", "finish 1 1");
  EXPECT_EQ(more.started, 1) << "only what is new";
}

TEST_F(CoordinatorTest, TakesAtMostSoManyTrials) {
  EXPECT_EQ(run(std::string(kTwoByTwo) + "trials: 3\n", "finish 1 1").complete, 3);
  EXPECT_EQ(run(kTwoByTwo, "finish 1 1").started, 1);
}

TEST_F(CoordinatorTest, AFailureIsKeptAndTheOthersGoOn) {
  const SweepReport report =
      run(kTwoByTwo, "case $a$c in 13) exit 2;; 14) finish nan 1;; 23) exit 0;; esac; finish 1 1");
  EXPECT_EQ(report.complete, 1);
  EXPECT_EQ(report.failed, 3);
  std::vector<std::string> reasons;
  for (const Trial& trial : trials(kTwoByTwo)) reasons.push_back(trial.reason);
  EXPECT_THAT(reasons, ElementsAre("exit 2", "acc is NaN", "no report", ""));
  EXPECT_THAT(out_.str(), HasSubstr("s0_a1_c3  failed: exit 2; see "));
}

TEST_F(CoordinatorTest, AFailedRunStartsAgainOnlyIfAsked) {
  EXPECT_EQ(run(kTwoByTwo, "test $a = 1 && exit 2; finish 1 1").failed, 2);
  const SweepReport again = run(kTwoByTwo, "finish 1 1");
  EXPECT_EQ(again.started, 0);
  EXPECT_EQ(again.failed, 2);
  EXPECT_EQ(run("parameters: {a: [2], c: [3, 4]}\n", "finish 1 1").failed, 0) << "not wanted now";
  const auto sweep = read(kTwoByTwo);
  auto host = host_of(sweep, "finish 1 1");
  host.retry_failed = true;
  const SweepReport retried = sweep::run_sweep(sweep, host);
  EXPECT_EQ(retried.started, 2);
  EXPECT_EQ(retried.complete, 4);
  EXPECT_EQ(trials(kTwoByTwo).back().run_name, "s1_a1_c4") << "in its folder";
}

// The card of a run may be lost before the run has opened it.
TEST_F(CoordinatorTest, ARunThatFindsNoCardWaitsForAnother) {
  const auto sweep = read("parameters: {a: [1, 2, 3]}\n");
  SweepHost host = host_of(sweep, "test $CUDA_VISIBLE_DEVICES = GPU-1 && exit 2; finish 1 1");
  std::vector<launch::DeviceSlot> cards;
  for (const char* name : {"GPU-1", "GPU-2"})
    cards.push_back({.name = name, .total_bytes = 1_GiB, .kind = launch::SlotKind::gpu});
  host.slots = [&](const sweep::Resources&) { return cards; };
  host.is_lost = [](const auto& slot) { return slot.name == "GPU-1"; };
  ::testing::internal::CaptureStderr();
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("waits for another card"));
  EXPECT_EQ(report.complete, 3);
  EXPECT_EQ(report.failed, 0);
  host.is_lost = [](const auto&) { return true; };  // no card is left: the runs wait
  const auto more = read("parameters: {a: [4, 5]}\n");
  cards.pop_back();
  const SweepReport without = sweep::run_sweep(more, host);
  EXPECT_EQ(without.failed, 0);
  EXPECT_EQ(without.waiting, 2);
}

TEST_F(CoordinatorTest, ACellThatCannotBePlannedHasFailedAndTheOthersGoOn) {
  const auto sweep = read(kTwoByTwo);
  auto host = host_of(sweep, "finish 1 1");
  host.predict = [](const std::vector<std::string>& settings) -> std::optional<int64_t> {
    if (settings[0] == "a=2" && settings[1] == "c=3") throw ConfigError("recipe", "no such c");
    return 1;
  };
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.complete, 3);
  EXPECT_EQ(report.failed, 1);
  EXPECT_THAT(out_.str(), HasSubstr("s2_a2_c3  failed: [recipe] no such c\n"));
}

TEST_F(CoordinatorTest, WhatNoPlanPredictsIsKnownFromARunOfItsKind) {
  const std::string text = "parameters: {a: [1, 2, 3, 4]}\nresources: {jobs: 1, total: 1000MiB}\n";
  const auto sweep = read(text);
  auto host = host_of(sweep, "finish 1 $((a % 2 * 100 + 100))000000");
  host.predict = [](const auto&) { return std::nullopt; };
  host.signature = [](const std::vector<std::string>& settings) {
    return std::stoi(settings[0].substr(2)) % 2 == 0 ? "even" : "odd";
  };
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 4);
  // The first alone; the second as the only one that is known; then each as the one of its kind.
  EXPECT_THAT(rows(store(), "SELECT reserved_bytes FROM sweep_runs ORDER BY trial_id"),
              ElementsAre("1048576000", "220000000", "220000000", "110000000"));
  // The next coordinator knows it from the store.
  const auto more =
      read("parameters: {a: [1, 2, 3, 4, 6]}\nresources: {jobs: 1, total: 1000MiB}\n");
  EXPECT_EQ(sweep::run_sweep(more, host).started, 1);
  EXPECT_THAT(rows(store(), "SELECT reserved_bytes FROM sweep_runs ORDER BY trial_id DESC LIMIT 1"),
              ElementsAre("110000000"));
}

TEST_F(CoordinatorTest, NothingStartsOnceTheRecipeHasChanged) {
  const auto sweep = read("parameters: {a: [1, 2, 3]}\nresources: {jobs: 1}\n");
  const auto recipe = sweep.recipe.string();
  const SweepReport report =
      sweep::run_sweep(sweep, host_of(sweep, "echo 'b: {c: 7}' > " + recipe + "; finish 1 1"));
  EXPECT_EQ(report.complete, 1);
  EXPECT_EQ(report.waiting, 2);
  EXPECT_EQ(run("parameters: {a: [1, 2, 3]}\n", "finish 1 1").started, 3) << "other runs now";
}

TEST_F(CoordinatorTest, AFolderIsOfOneSweep) {
  (void)run(kTwoByTwo, "finish 1 1");
  auto other = read(kTwoByTwo);
  other.name = "t";
  EXPECT_THROW((void)sweep::run_sweep(other, host_of(other, "finish 1 1")), ConfigError);
}

TEST_F(CoordinatorTest, StopsStartingAfterTooManyFailures) {
  const char* text =
      "parameters: {a: {min: 1, max: 20}}\nresources: {jobs: 1}\non_failure: {max_failed: 3}\n";
  const SweepReport report = run(text, "exit 2");
  EXPECT_EQ(report.failed, 3);
  EXPECT_EQ(report.waiting, 17);
}

TEST_F(CoordinatorTest, ARunOutOfMemoryGetsMore) {
  const char* text =
      "parameters: {a: [1]}\nresources: {total: 1GiB, memory: 100MiB}\non_failure: {max_retries: "
      "9}\n";
  const SweepReport report = run(text, "test $budget -ge 300000000 && finish 1 $budget; exit 3");
  EXPECT_EQ(report.complete, 1);
  std::vector<int64_t> asked;
  for (const Trial& trial : trials(text)) asked.push_back(trial.asked_bytes);
  EXPECT_THAT(asked, ElementsAre(0, 150_MiB, 225_MiB, 225_MiB * 3 / 2));
}

TEST_F(CoordinatorTest, OutOfMemoryWithAllThereIsIsTheEnd) {
  const char* text =
      "parameters: {a: [1]}\nresources: {total: 120MiB, memory: 100MiB}\non_failure: {max_retries: "
      "9}\n";
  const SweepReport report = run(text, "exit 3");
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.started, 2) << "as asked, then alone";
}

TEST_F(CoordinatorTest, AKilledRunIsTriedAgainSoManyTimes) {
  const char* text = "parameters: {a: [1]}\non_failure: {max_retries: 2}\n";
  EXPECT_EQ(run(text,
                "test -e $folder/third && finish 1 1; test -e $folder/second && touch "
                "$folder/third; touch $folder/second; echo half > $folder/report.json; "
                "kill -9 $$")
                .complete,
            1);
  EXPECT_EQ(trials(text).size(), 3U);
  EXPECT_EQ(trials(text).front().reason, "signal 9") << "not what is wrong with its report";
}

TEST_F(CoordinatorTest, NeverHoldsMoreThanThereIs) {
  const auto sweep =
      read("parameters: {a: {min: 1, max: 12}}\nresources: {jobs: 8, total: 1000MiB}\n");
  auto host = host_of(sweep,
                      "echo + $budget >> $folder/../held; sleep 0.05; "
                      "echo - $budget >> $folder/../held; finish 1 1");
  host.predict = [](const std::vector<std::string>& settings) -> std::optional<int64_t> {
    return std::stoll(settings.front().substr(2)) * 40_MiB;
  };
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 12);
  std::istringstream lines(file("held"));
  int64_t held = 0, most = 0, bytes = 0;
  for (char sign = 0; lines >> sign >> bytes;) {
    held += sign == '+' ? bytes : -bytes;
    most = std::max(most, held);
  }
  EXPECT_EQ(held, 0);
  EXPECT_LE(most, 1000_MiB);
  EXPECT_GT(most, 500_MiB) << "several at a time";
}

TEST_F(CoordinatorTest, ARunOfWhichNothingIsKnownRunsAloneUntilOneHasBeenMeasured) {
  const auto sweep =
      read("parameters: {a: {min: 1, max: 4}}\nresources: {jobs: 4, total: 1000MiB}\n");
  const auto host = host_of(sweep, "echo $budget >> $folder/../budgets; finish 1 104857600");
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 4);
  EXPECT_EQ(file("budgets").substr(0, 11), "1048576000\n");
  EXPECT_THAT(file("budgets"), HasSubstr("\n115343360\n")) << "100 MiB and a tenth";
}

// Three cards of other sizes, which are not there.
TEST_F(CoordinatorTest, RunsOnGpusSeeOneEachAndNeverHoldMoreThanIt) {
  const auto sweep = read("parameters: {a: {min: 1, max: 12}}\nresources: {jobs: 6}\n");
  auto host = host_of(sweep, "");
  host.command = [&](const std::vector<std::string>& settings, const launch::DeviceSlot& slot,
                     int64_t budget) {
    const std::string total = std::to_string(budget + slot.context_bytes);
    return shell_run(sweep, settings, budget,
                     "at=$CUDA_VISIBLE_DEVICES; echo + $at " + total + " >> $folder/../held; " +
                         "sleep 0.05; echo - $at " + total + " >> $folder/../held; finish 1 1");
  };
  host.slots = [](const sweep::Resources& resources) {
    const auto card = [&](const char* name, int64_t bytes) {
      return launch::DeviceSlot{.name = name,
                                .total_bytes = bytes,
                                .jobs = resources.max_per_gpu,
                                .context_bytes = 100_MiB,
                                .kind = launch::SlotKind::gpu};
    };
    return std::vector{card("GPU-a", 1000_MiB), card("GPU-b", 500_MiB), card("GPU-c", 700_MiB)};
  };
  host.predict = [](const std::vector<std::string>& settings) -> std::optional<int64_t> {
    return std::stoll(settings.front().substr(2)) * 40_MiB;
  };
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 12);
  std::istringstream lines(file("held"));
  std::map<std::string, int64_t> held, most;
  std::string card;
  int64_t bytes = 0;
  for (char sign = 0; lines >> sign >> card >> bytes;) {
    held[card] += sign == '+' ? bytes : -bytes;
    most[card] = std::max(most[card], held[card]);
  }
  ASSERT_EQ(most.size(), 3U) << "all cards were used";
  EXPECT_LE(most["GPU-a"], 1000_MiB);
  EXPECT_LE(most["GPU-b"], 500_MiB);
  EXPECT_LE(most["GPU-c"], 700_MiB);
}

/// Cards of one run at a time, which are not there.
std::vector<launch::DeviceSlot> cards_named(const std::vector<std::string>& names) {
  std::vector<launch::DeviceSlot> cards;
  for (const auto& name : names)
    cards.push_back({.name = "GPU-" + name,
                     .total_bytes = 1000_MiB,
                     .context_bytes = 100_MiB,
                     .kind = launch::SlotKind::gpu,
                     .device = "cuda:" + std::to_string(cards.size())});
  return cards;
}

TEST_F(CoordinatorTest, ARunOfSeveralRanksTakesSoManyCardsAtOnce) {
  const auto sweep = read("parameters: {a: {min: 1, max: 6}}\nresources: {ranks: 2}\n");
  auto host = host_of(sweep,
                      "for card in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do "
                      "mkdir $folder/../busy-$card || exit 9; done; sleep 0.05; "
                      "rmdir $folder/../busy-${CUDA_VISIBLE_DEVICES%,*} "
                      "$folder/../busy-${CUDA_VISIBLE_DEVICES#*,}; "
                      "echo $CUDA_VISIBLE_DEVICES $budget >> $folder/../placed; finish 1 1000");
  host.slots = [](const sweep::Resources&) { return cards_named({"a", "b", "c", "d", "e"}); };
  host.predict = [](const auto&) { return std::optional<int64_t>(100_MiB); };
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.complete, 6) << "no card was in two runs: " << out_.str();
  std::istringstream lines(file("placed"));
  std::string cards;
  for (int64_t budget = 0; lines >> cards >> budget;) {
    EXPECT_EQ(std::ranges::count(cards, ','), 1) << cards;
    EXPECT_EQ(budget, 110_MiB) << "of each rank, without what a context takes";
  }
  const auto ended = trials("parameters: {a: [1]}\n");
  EXPECT_EQ(ended.front().placed(), "2 ranks on cuda:0, cuda:1");
  EXPECT_THAT(rows(store(), "SELECT reserved_bytes FROM sweep_runs LIMIT 1"),
              ElementsAre(std::to_string(2 * 210_MiB)));
}

TEST_F(CoordinatorTest, ARunWaitsWhereTooFewCardsAreLeftForItsRanks) {
  const auto sweep = read("parameters: {a: [1, 2, 3]}\nresources: {ranks: 2}\n");
  auto host = host_of(sweep, "test $a = 1 && finish 1 1; exit 2");
  host.slots = [](const sweep::Resources&) { return cards_named({"a", "b"}); };
  host.is_lost = [](const auto& slot) { return slot.name == "GPU-b"; };
  ::testing::internal::CaptureStderr();
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Too few are left for a run"));
  EXPECT_EQ(report.complete, 1);
  EXPECT_EQ(report.waiting, 2);
}

TEST_F(CoordinatorTest, RanksOnTheHostShareWhatTheirRunReserves) {
  const std::string text =
      "parameters: {a: [1, 2]}\nresources: {ranks: 4, jobs: 2, total: 900MiB, memory: 100MiB}\n";
  const SweepReport report = run(text, "echo $budget >> $folder/../budgets; finish 1 1");
  EXPECT_EQ(report.complete, 2);
  EXPECT_EQ(file("budgets"), "104857600\n104857600\n") << "of each rank";
  EXPECT_THAT(rows(store(), "SELECT reserved_bytes FROM sweep_runs"),
              ElementsAre("419430400", "419430400"));
  EXPECT_EQ(trials(text).front().placed(), "4 ranks on host");
  EXPECT_EQ(run("parameters: {a: [3]}\n", "finish 1 1").started, 1);
  EXPECT_EQ(trials(text).back().placed(), "") << "of one rank";
}

// The program that starts the ranks ends as a shell does.
TEST_F(CoordinatorTest, ARunOfWhichARankWasKilledIsTriedAgain) {
  const char* text = "parameters: {a: [1, 2]}\nresources: {ranks: 2, jobs: 1}\n";
  const SweepReport report =
      run(text, "test $a = 2 -o -e $folder/again && finish 1 1; touch $folder/again; exit 137");
  EXPECT_EQ(report.complete, 2);
  EXPECT_EQ(trials(text).front().reason, "signal 9");
  EXPECT_EQ(run("parameters: {a: [3]}\n", "exit 143").failed, 1) << "it was asked to end";
  EXPECT_EQ(trials(text).back().reason, "exit 143");
}

TEST_F(CoordinatorTest, AnInterruptAsksRunsToEndAndLeavesThemWaiting) {
  const auto sweep = read(kTwoByTwo);
  auto host = host_of(sweep, "trap 'exit 143' TERM; touch $folder/../up$a$c; sleep 20 & wait");
  host.interrupted = [&] { return std::filesystem::exists(files_.log_dir() / "up13"); };
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.waiting, 4);
  EXPECT_EQ(report.failed, 0);
  EXPECT_EQ(run(kTwoByTwo, "finish 1 1").complete, 4);
}

TEST_F(CoordinatorTest, OnlyOneSweepsInAFolder) {
  const auto sweep = read(kTwoByTwo);
  auto host = host_of(sweep, "finish 1 1");
  host.interrupted = [&, asked = false]() mutable {
    if (std::exchange(asked, true)) return false;
    EXPECT_THROW((void)sweep::run_sweep(sweep, host_of(sweep, "finish 1 1")), StateError);
    return false;
  };
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 4);
}

TEST_F(CoordinatorTest, AProgramThatIsNotThereIsAnError) {
  const auto sweep = read(kTwoByTwo);
  SweepHost host;
  host.command = [](const auto&, const auto&, int64_t) {
    return std::vector<std::string>{"/no/such"};
  };
  EXPECT_THROW((void)sweep::run_sweep(sweep, host), IoError);
}

TEST_F(CoordinatorTest, AnEditIsInForceAtOnce) {
  auto sweep = read("parameters: {a: [1, 2, 3, 4]}\nresources: {jobs: 1}\n");
  auto host = host_of(
      sweep, "test $a = 2 && while ! test -e $folder/../edited; do sleep 0.01; done; finish 1 1");
  host.edited = [&]() -> std::optional<sweep::SweepOptions> {
    const auto now = sweep::read_store(files_.log_dir() / "s.sqlite", "s").trials;
    const auto mark = files_.log_dir() / "edited";
    if (std::filesystem::exists(mark) || now[1].state != TrialState::running) return {};
    io::write_atomically(mark, "");
    return read("parameters: {a: [1, 4, 5]}\nresources: {jobs: 2}\n");
  };
  const SweepReport report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.complete, 3) << "of those that are wanted now";
  EXPECT_EQ(report.started, 4) << "the one that was running ended by itself";
  std::map<std::string, std::string> ends;
  for (const Trial& trial : trials("parameters: {a: [1]}\n"))
    ends[trial.run_name] = to_string(trial.state) + trial.reason;
  EXPECT_EQ(ends["s1_a2"], "COMPLETE");
  EXPECT_EQ(ends["s2_a3"], "FAILdropped");
  EXPECT_EQ(ends["s4_a5"], "COMPLETE");
}

TEST_F(CoordinatorTest, AnEditOfWhatIsFixedIsRefusedWhole) {
  const auto sweep = read("parameters: {a: [1, 2]}\nresources: {jobs: 1}\n");
  const std::vector<std::string> edits{"metric: {name: loss}",
                                       "metric: {name: acc, goal: minimize}",
                                       "parameters: {a: {min: 1, max: 9000000}}",
                                       "parameters: {b.c.d: [1]}",
                                       "set: {device: cpu}\nparameters: {a: [7]}",
                                       "resources: {ranks: 2}\nparameters: {a: [7]}"};
  size_t next = 0;
  auto host = host_of(sweep, "sleep 0.3; finish 1 1");
  host.edited = [&]() -> std::optional<sweep::SweepOptions> {
    if (next == edits.size()) return {};
    const bool metric = edits[next].starts_with("metric");
    const std::string text = edits[next++] + '\n';
    return files_.read(metric ? text + "parameters: {a: [7]}\n"
                              : "metric: {name: acc, goal: maximize}\n" + text);
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 2);
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr("metric cannot change while the sweep runs"));
  EXPECT_THAT(output, HasSubstr("set.device cannot change while the sweep runs"));
  EXPECT_THAT(output, HasSubstr("resources.ranks cannot change while the sweep runs"));
  EXPECT_THAT(output, HasSubstr("has too many values"));
  EXPECT_EQ(trials("parameters: {a: [1]}\n").size(), 2U);
}

TEST_F(CoordinatorTest, ReportsItsProgress) {
  const auto sweep = read("parameters: {a: [1, 2]}\nresources: {jobs: 1, memory: 1MiB}\n");
  auto host = host_of(sweep,
                      "mkdir -p $folder; echo 'phases: [{name: all}]' > $folder/recipe.yaml; "
                      "printf 'epoch,train_loss,valid_loss,acc,seconds\\n"
                      "0,1,2,0.5,0.1\\n1,1,2,0.75,0.1\\n' > $folder/all.csv; "
                      "while ! test -e $folder/../seen$a; do sleep 0.01; done; "
                      "finish 0.$a 1");
  sweep::SweepProgress last;
  host.progress = [&](const sweep::SweepProgress& now) {
    last = now;
    if (now.running.at(0).epochs == 2)
      io::write_atomically(files_.log_dir() / ("seen" + std::to_string(now.complete + 1)), "");
  };
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 2);
  EXPECT_EQ(last.complete, 1);
  EXPECT_EQ(last.best, "s0_a1");
  EXPECT_EQ(last.best_value, 0.1);
  ASSERT_EQ(last.running.size(), 1U);
  EXPECT_EQ(last.running[0].name, "s1_a2");
  EXPECT_EQ(last.running[0].value, 0.75);
  EXPECT_EQ(last.running[0].bytes, 1_MiB);
}

}  // namespace
}  // namespace tare::testing

// `tare sweep` whose runs are in jobs of a real Slurm of one node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <sstream>

#include "cli/tiny_recipe.h"
#include "support/files.h"
#include "support/program.h"
#include "support/slurm.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr int kWaitS = 90;

/// Returns the rows of a table of epochs without their last column.
std::string without_seconds(const std::string& table) {
  std::istringstream lines(table);
  std::string all;
  for (std::string line; std::getline(lines, line);) all += line.substr(0, line.find_last_of(','));
  return all;
}

class SlurmTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<SlurmCluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override {
    if (!cluster_->problem().empty()) GTEST_SKIP() << cluster_->problem();
    write("recipe.yaml", kTinyRecipe);
    sweep("parameters: {phases.0.lr: [1.0e-3, 1.0e-2], model.width: [4, 8]}\n");
  }
  void TearDown() override {
    if (!cluster_->problem().empty()) return;
    SlurmCluster::call("scancel", {"--user=root"});
    wait_until([] { return SlurmCluster::jobs().empty(); });
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  void sweep(const std::string& text, const std::string& options = "") const {
    write("sweep.yaml",
          "name: tiny\nrecipe: recipe.yaml\nresources: {jobs: 2}\n"
          "metric: {name: accuracy, goal: maximize}\nexecutor: {type: slurm" +
              options + "}\n" + text);
  }
  /// Two runs of some seconds.
  void long_sweep() const {
    sweep(
        "parameters: {phases.0.lr: [1.0e-3, 1.0e-2]}\nset: {phases.0.epochs: 60}\n"
        "on_failure: {max_retries: 0}\n");
  }
  using Words = std::vector<std::string>;
  [[nodiscard]] std::unique_ptr<Program> start(const Words& more = {}) const {
    Words words{"sweep", "run", "sweep.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Program>("tare", words, folder_.path());
  }
  [[nodiscard]] ProgramResult run(const Words& more = {}) const { return start(more)->wait(); }

  static ::testing::AssertionResult wait_until(const std::function<bool()>& is_so) {
    for (int tries = 0; tries < kWaitS * 5; ++tries) {
      if (is_so()) return ::testing::AssertionSuccess();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return ::testing::AssertionFailure()
           << "not in " << kWaitS << " s; jobs: " << SlurmCluster::jobs();
  }
  /// Returns the output of all agents.
  [[nodiscard]] std::string agents() const {
    std::string text;
    for (const auto& entry : fs::directory_iterator(folder_ / "runs/tiny/slurm"))
      if (entry.path().extension() == ".log") text += content_of(entry.path());
    return text;
  }
  /// How often each run was begun.
  [[nodiscard]] std::map<std::string, int> begun() const {
    std::map<std::string, int> runs;
    std::istringstream lines(agents());
    for (std::string line; std::getline(lines, line);)
      if (const size_t at = line.find("] runs "); at != std::string::npos)
        ++runs[line.substr(at + 7)];
    return runs;
  }
  /// Runs that have done some epochs.
  [[nodiscard]] int runs_that_are_on() const {
    int runs = 0;
    const fs::path place = folder_ / "runs/tiny";
    if (!fs::exists(place)) return 0;
    for (const auto& entry : fs::directory_iterator(place))
      if (fs::exists(entry.path() / "all.csv"))
        runs += content_of(entry.path() / "all.csv").size() > 150 ? 1 : 0;
    return runs;
  }
  [[nodiscard]] bool both_are_on() const { return runs_that_are_on() == 2; }
  /// The first task that is on.
  static std::string a_task() {
    const std::string jobs = SlurmCluster::jobs();
    const size_t at = jobs.find(" RUNNING");
    return at == std::string::npos
               ? ""
               : jobs.substr(jobs.rfind('\n', at) + 1, at - jobs.rfind('\n', at) - 1);
  }
  [[nodiscard]] std::string data() const { return content_of(folder_ / "runs/tiny/run_data.csv"); }
  void expect_complete(const ProgramResult& result, const std::string& counts) const {
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("tiny: " + counts))
        << result.err << agents() << SlurmCluster::call("scontrol", {"show", "job"}).out
        << cluster_->log();
    EXPECT_THAT(data(), Not(HasSubstr("FAIL")));
  }
  /// Every epoch of a run once, whoever has done it.
  void expect_whole_epochs(int64_t epochs) const {
    for (const auto& entry : fs::directory_iterator(folder_ / "runs/tiny")) {
      if (!fs::exists(entry.path() / "all.csv")) continue;
      const std::string table = content_of(entry.path() / "all.csv");
      EXPECT_EQ(std::ranges::count(table, '\n'), epochs + 1) << table;
    }
  }

  TempDir folder_;
  static inline std::unique_ptr<SlurmCluster> cluster_;
};

TEST_F(SlurmTest, RunsEachCellOnceInAnArrayOfAgents) {
  sweep("parameters: {phases.0.lr: [1.0e-3, 1.0e-2], model.width: [4, 8]}\n",
        ", options: ['--gres=gpu:1', --cpus-per-task=1], setup: [echo card $CUDA_VISIBLE_DEVICES]");
  expect_complete(run(), "4 complete, 0 failed, 0 waiting; 4 started");
  EXPECT_THAT(begun(), AllOf(SizeIs(4), Each(Pair(::testing::_, 1))));
  EXPECT_THAT(agents(), AllOf(HasSubstr("card 0"), HasSubstr("card 1")));
  EXPECT_TRUE(wait_until([] { return SlurmCluster::jobs().empty(); }));
  expect_complete(run(), "4 complete, 0 failed, 0 waiting; 0 started");
}

TEST_F(SlurmTest, RunsGoOnWithoutTheirCoordinatorAndTheNextOneFollowsThem) {
  long_sweep();
  const auto first = start();
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << first->read("err");
  ::kill(first->pid(), SIGKILL);
  (void)first->wait();
  expect_complete(run(), "2 complete, 0 failed, 0 waiting; 0 started");
  EXPECT_THAT(begun(), AllOf(SizeIs(2), Each(Pair(::testing::_, 1))));
  expect_whole_epochs(60);
}

TEST_F(SlurmTest, ASecondCoordinatorDisturbsNothing) {
  long_sweep();
  const auto first = start();
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << first->read("err");
  const auto second = run();
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.err, HasSubstr("in use by another process"));
  expect_complete(first->wait(), "2 complete, 0 failed, 0 waiting; 2 started");
  EXPECT_THAT(begun(), AllOf(SizeIs(2), Each(Pair(::testing::_, 1))));
}

TEST_F(SlurmTest, SavesAndRequeuesItselfWhenTimeIsShort) {
  long_sweep();
  const auto program = start();
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << program->read("err");
  const std::string task = a_task();
  SlurmCluster::call("scancel", {"--batch", "--signal=USR1", task});
  ASSERT_TRUE(wait_until(
      [&] { return SlurmCluster::jobs().find(task + " PENDING") != std::string::npos; }));
  expect_complete(program->wait(), "2 complete, 0 failed, 0 waiting; 2 started");
  EXPECT_THAT(agents(), HasSubstr("[agent " + task + " on "));
  EXPECT_THAT(agents(), HasSubstr("has saved tiny"));
  EXPECT_THAT(content_of(folder_ / "runs/tiny/slurm" / task / "state.json"),
              HasSubstr("\"restarts\":1"));
  expect_whole_epochs(60);
}

TEST_F(SlurmTest, ContinuesAfterAnotherJobTookItsPlace) {
  long_sweep();
  const auto program = start();
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << program->read("err");
  SlurmCluster::call("sbatch",
                     {"--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"});
  ASSERT_TRUE(
      wait_until([&] { return SlurmCluster::jobs().find("_0 PENDING") != std::string::npos; }));
  expect_complete(program->wait(), "2 complete, 0 failed, 0 waiting; 2 started");
  EXPECT_THAT(begun(), SizeIs(2));
  EXPECT_THAT(agents(), HasSubstr("has saved tiny"));
  expect_whole_epochs(60);
}

TEST_F(SlurmTest, AnotherAgentContinuesTheRunOfACancelledOne) {
  long_sweep();
  const auto program = start();
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << program->read("err");
  SlurmCluster::call("scancel", {a_task()});
  expect_complete(program->wait(), "2 complete, 0 failed, 0 waiting; 3 started");
  expect_whole_epochs(60);
}

TEST_F(SlurmTest, WhatWasDoneWithoutACoordinatorIsNotDoneAgain) {
  long_sweep();
  const auto first = start();
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << first->read("err");
  ::kill(first->pid(), SIGKILL);
  (void)first->wait();
  const auto done = [&](const char* run) {
    return fs::exists(folder_ / "runs/tiny" / run / "report.json");
  };
  ASSERT_TRUE(wait_until([&] { return done("tiny0_p0l0-001") && done("tiny1_p0l0-01"); }));
  SlurmCluster::call("scancel", {"--user=root"});  // or two minutes later
  ASSERT_TRUE(wait_until([] { return SlurmCluster::jobs().empty(); }));
  expect_complete(run(), "2 complete, 0 failed, 0 waiting; 0 started");
}

// Two of the six jobs wait for processors, and have no run.
TEST_F(SlurmTest, ContinuesWhenItsCoordinatorIsKilledWhileRunsSave) {
  sweep(
      "parameters: {seed: {min: 1, max: 6}}\nset: {phases.0.epochs: 40}\n"
      "on_failure: {max_retries: 0}\n");
  const std::vector<std::string> words{"sweep", "run", "sweep.yaml", "resources.jobs=6"};
  Program first("tare", words, folder_.path());
  ASSERT_TRUE(wait_until([&] { return runs_that_are_on() == 4; })) << first.read("err");
  ::kill(first.pid(), SIGINT);
  ASSERT_TRUE(wait_until([&] { return agents().find(" to save") != std::string::npos; }));
  ::kill(first.pid(), SIGKILL);
  (void)first.wait();
  expect_complete(Program("tare", words, folder_.path()).wait(), "6 complete, 0 failed, 0 waiting");
  expect_whole_epochs(40);
}

TEST_F(SlurmTest, StartsRanksThatTrainTogether) {
  const std::string tare = fs::absolute(program_path("tare")).string();
  const ProgramResult together = run_program(
      "/usr/bin/srun", {"-n", "2", "--overcommit", tare, "run", "recipe.yaml"}, folder_.path());
  ASSERT_EQ(together.status, 0) << together.err << cluster_->log();
  const std::string rows = content_of(folder_ / "runs/tiny/all.csv");
  const TempDir other;
  fs::copy(folder_ / "recipe.yaml", other / "recipe.yaml");
  ASSERT_EQ(run_program(tare, {"run", "recipe.yaml", "--ranks", "2"}, other.path()).status, 0);
  EXPECT_EQ(without_seconds(rows), without_seconds(content_of(other / "runs/tiny/all.csv")));
}

// docs/distributed.md shows such a job, which is no part of a sweep.
TEST_F(SlurmTest, RanksOfARequeuedJobEndWithTheFiguresOfOneThatWasNot) {
  const std::string tare = fs::absolute(program_path("tare")).string();
  const Words words{"run", "recipe.yaml", "phases.0.epochs=60", "save_every=5", "--resume=auto"};
  std::string command = "exec srun -n 2 --overcommit " + tare;
  for (const std::string& word : words) command += ' ' + word;
  write("job.sh", "#!/bin/sh\n" + command + '\n');
  const ProgramResult sent =
      run_program("/usr/bin/sbatch",
                  {"--parsable", "--requeue", "--open-mode=append", "--output=job.log", "job.sh"},
                  folder_.path());
  ASSERT_EQ(sent.status, 0) << sent.err << cluster_->log();
  const std::string job = sent.out.substr(0, sent.out.find('\n'));
  const fs::path rows = folder_ / "runs/tiny/all.csv";
  ASSERT_TRUE(wait_until([&] {
    return fs::exists(rows) && std::ranges::count(content_of(rows), '\n') > 12;
  })) << content_of(folder_ / "job.log");
  ASSERT_EQ(SlurmCluster::call("scontrol", {"requeue", job}).status, 0);
  ASSERT_TRUE(wait_until([] { return SlurmCluster::jobs().empty(); }));
  const std::string log = content_of(folder_ / "job.log");
  EXPECT_THAT(content_of(folder_ / "runs/tiny/report.json"), HasSubstr("\"resumes\"")) << log;

  const TempDir other;
  fs::copy(folder_ / "recipe.yaml", other / "recipe.yaml");
  Words alone = words;
  alone.insert(alone.end(), {"--ranks", "2"});
  ASSERT_EQ(run_program(tare, alone, other.path()).status, 0);
  EXPECT_EQ(without_seconds(content_of(rows)),
            without_seconds(content_of(other / "runs/tiny/all.csv")))
      << log;
}

const std::vector<std::string> kPairs{"resources.ranks=2"};

TEST_F(SlurmTest, GivesEachRunATaskForEachRank) {
  sweep("parameters: {phases.0.lr: [1.0e-3, 1.0e-2]}\n",
        ", setup: [echo a job of $SLURM_NTASKS tasks]");
  expect_complete(run(kPairs), "2 complete, 0 failed, 0 waiting; 2 started");
  EXPECT_THAT(begun(), AllOf(SizeIs(2), Each(Pair(::testing::_, 1))));
  EXPECT_THAT(agents(), HasSubstr("a job of 2 tasks\n"));
  const auto status = run_program("tare", {"sweep", "status", "sweep.yaml"}, folder_.path());
  EXPECT_THAT(status.out, HasSubstr("2 ranks on Slurm jobs"));
  const TempDir other;
  fs::copy(folder_ / "recipe.yaml", other / "recipe.yaml");
  ASSERT_EQ(run_program("tare", {"run", "recipe.yaml", "--ranks", "2", "phases.0.lr=1.0e-3"},
                        other.path())
                .status,
            0);
  EXPECT_EQ(without_seconds(content_of(folder_ / "runs/tiny/tiny0_p0l0-001/all.csv")),
            without_seconds(content_of(other / "runs/tiny/all.csv")));
}

TEST_F(SlurmTest, StopsAllRanksOfARunAndContinuesThem) {
  long_sweep();
  const auto program = start(kPairs);
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << program->read("err") << agents();
  ::kill(program->pid(), SIGINT);
  const auto stopped = program->wait();
  EXPECT_EQ(stopped.status, 130);
  EXPECT_THAT(stopped.out, HasSubstr("0 complete, 0 failed, 2 waiting; 2 started"));
  EXPECT_TRUE(wait_until([] { return SlurmCluster::jobs().empty(); }));
  expect_complete(run(kPairs), "2 complete, 0 failed, 0 waiting; 2 started");
  expect_whole_epochs(60);
}

// Slurm and srun both send SIGTERM to the ranks of the jobs whose place is taken.
TEST_F(SlurmTest, SavesRanksWhenTimeIsShortAndWhenAnotherJobTakesTheirPlace) {
  long_sweep();
  const auto program = start(kPairs);
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << program->read("err") << agents();
  const std::string task = a_task();
  SlurmCluster::call("scancel", {"--batch", "--signal=USR1", task});
  ASSERT_TRUE(wait_until(
      [&] { return SlurmCluster::jobs().find(task + " PENDING") != std::string::npos; }));
  SlurmCluster::call("sbatch",
                     {"--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"});
  expect_complete(program->wait(), "2 complete, 0 failed, 0 waiting; 2 started");
  EXPECT_THAT(begun(), SizeIs(2));
  EXPECT_THAT(agents(), AllOf(HasSubstr("has saved tiny0"), HasSubstr("has saved tiny1")));
  for (const char* name : {"tiny0_p0l0-001", "tiny1_p0l0-01"})
    EXPECT_THAT(content_of(folder_ / "runs/tiny" / name / (std::string(name) + ".err")),
                HasSubstr("stopped by a signal after the step in flight, with a checkpoint"));
  expect_whole_epochs(60);
}

/// Returns the process of a rank of a run, by what its environment has; 0: there is none.
int process_of_rank(const std::string& rank, const std::string& run) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string environment = content_of(entry.path() / "environ"),
                      command = content_of(entry.path() / "cmdline");
    if (environment.find("SLURM_STEP_NUM_TASKS=2") != std::string::npos &&
        environment.find("SLURM_PROCID=" + rank) != std::string::npos &&
        command.find(run) != std::string::npos)
      return std::stoi(entry.path().filename());
  }
  return 0;
}

TEST_F(SlurmTest, TriesARunAgainOfWhichARankWasKilled) {
  long_sweep();
  const auto program = start({"resources.ranks=2", "on_failure.max_retries=1"});
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << program->read("err") << agents();
  const int rank = process_of_rank("1", "tiny0_p0l0-001");
  ASSERT_GT(rank, 0);
  ::kill(rank, SIGKILL);
  const auto result = program->wait();
  EXPECT_EQ(result.status, 0) << result.err << agents();
  EXPECT_THAT(result.out, AllOf(HasSubstr("failed: signal 9"),
                                HasSubstr("2 complete, 0 failed, 0 waiting; 3 started")));
  expect_whole_epochs(60);
}

TEST_F(SlurmTest, StopsAndContinues) {
  long_sweep();
  const auto program = start();
  ASSERT_TRUE(wait_until([&] { return both_are_on(); })) << program->read("err");
  ::kill(program->pid(), SIGINT);
  const auto stopped = program->wait();
  EXPECT_EQ(stopped.status, 130);
  EXPECT_THAT(stopped.out, HasSubstr("0 complete, 0 failed, 2 waiting; 2 started"));
  EXPECT_TRUE(wait_until([] { return SlurmCluster::jobs().empty(); }));
  expect_complete(run(), "2 complete, 0 failed, 0 waiting; 2 started");
  expect_whole_epochs(60);
}

TEST_F(SlurmTest, SaysWhatSlurmRefusesAndWhyAgentsEnd) {
  sweep("parameters: {model.width: [4, 8]}\n", ", options: [--partition=none]");
  const auto refused = run();
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("sbatch refuses: sbatch: error: invalid partition"));
  sweep("parameters: {model.width: [4, 8]}\n", ", setup: [echo no module of this name, exit 1]");
  const auto broken = run();
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(
      broken.err,
      HasSubstr("agents end before they have done anything; the last one printed: no module"));
  EXPECT_TRUE(wait_until([] { return SlurmCluster::jobs().empty(); }));
  sweep("parameters: {model.width: [4, 8]}\n", ", options: [--array=0-7]");
  EXPECT_THAT(run().err, HasSubstr("executor.options has an option that the sweep sets itself"));
}

}  // namespace
}  // namespace tare::testing

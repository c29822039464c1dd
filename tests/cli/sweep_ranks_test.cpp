// `tare sweep` whose runs have several ranks: places, results, kills, stops and bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "support/files.h"
#include "support/program.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Its last batch of an epoch is uneven.
constexpr const char* kRecipe = R"(name: shared
batch: 48
workers: 0
save_every: 5
device: cpu
data: {name: generated_digits, count: 300, size: 12}
model: {name: mlp, hidden: [16]}
optimizer: {kind: adamw}
phases: [{name: all, epochs: 2, lr: 3.0e-3}]
)";

class SweepOfRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ / "recipe.yaml") << kRecipe;
    std::ofstream(folder_ / "sweep.yaml") << R"(name: pairs
recipe: recipe.yaml
resources: {ranks: 2, jobs: 2}
parameters: {phases.0.lr: [1.0e-3, 1.0e-2], seed: [1, 2]}
)";
  }

  [[nodiscard]] ProgramResult tare(std::vector<std::string> words) const {
    words.insert(words.begin(), "sweep");
    return run_program("tare", words, folder_.path());
  }

  /// The folders of the runs, by their order.
  [[nodiscard]] std::vector<fs::path> runs() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_ / "runs/pairs"))
      if (fs::exists(entry.path() / "trial.json")) all.push_back(entry.path());
    std::ranges::sort(all);
    return all;
  }

  /// Returns the losses of the epochs and of the validation at the end.
  static json figures_in(const fs::path& run) {
    const json report = json::parse(content_of(run / "report.json"));
    json figures{{"valid", report["valid"]}};
    for (const json& phase : report["phases"]) {
      EXPECT_EQ(phase["ranks"].size(), 2) << run;
      for (const json& epoch : phase["epochs"])
        figures["epochs"].push_back({epoch["train_loss"], epoch["valid_loss"]});
    }
    return figures;
  }

  /// Returns the figures of `tare run --ranks 2` with the settings of a run of the sweep.
  [[nodiscard]] static json alone(const std::vector<std::string>& settings) {
    const TempDir folder;
    std::ofstream(folder / "recipe.yaml") << kRecipe;
    std::vector<std::string> words{"run", "recipe.yaml", "--ranks", "2"};
    words.insert(words.end(), settings.begin(), settings.end());
    const ProgramResult result = run_program("tare", words, folder.path());
    EXPECT_EQ(result.status, 0) << result.err;
    return figures_in(folder / "runs/shared");
  }

  /// Returns how many runs were there at once at most.
  [[nodiscard]] int most_at_once() const {
    std::vector<std::pair<double, int>> changes;
    for (const auto& run : runs()) {
      const json data = json::parse(content_of(run / "run_data.json"))["meta"]["data"];
      changes.emplace_back(data["start_time"].get<double>(), 1);
      changes.emplace_back(data["end_time"].get<double>(), -1);
    }
    std::ranges::sort(changes);
    int now = 0, most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, now += change);
    return most;
  }

  TempDir folder_;
};

TEST_F(SweepOfRanks, GivesTheResultsOfTheirRunsWithMemoryForOnePairAndForTwo) {
  std::vector<json> expected;
  for (const char* lr : {"phases.0.lr=1.0e-3", "phases.0.lr=1.0e-2"})
    for (const char* seed : {"seed=1", "seed=2"}) expected.push_back(alone({lr, seed}));
  for (const int pairs : {1, 2}) {
    const std::vector<std::string> memory{
        "resources.memory=200MiB", "resources.total=" + std::to_string(400 * pairs + 50) + "MiB"};
    std::vector<std::string> words{"plan", "sweep.yaml"};
    words.insert(words.end(), memory.begin(), memory.end());
    const ProgramResult plan = tare(words);
    EXPECT_THAT(plan.out,
                HasSubstr("pairs: 4 runs of 2 ranks, " + std::to_string(pairs) + " at a time"))
        << plan.err;
    EXPECT_THAT(plan.out, ContainsRegex("planned [^,]* for each rank, reserves 400 MiB"));
    words.front() = "run";
    const ProgramResult result = tare(words);
    ASSERT_EQ(result.status, 0) << result.err << result.out;
    EXPECT_THAT(result.out, HasSubstr("pairs: 4 complete, 0 failed, 0 waiting; 4 started"));
    EXPECT_EQ(most_at_once(), pairs);
    const auto folders = runs();
    ASSERT_EQ(folders.size(), 4);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(figures_in(folders[i]), expected[i]) << folders[i];
    EXPECT_THAT(tare({"status", "sweep.yaml"}).out,
                ContainsRegex("pairs0_p0l0-001_s1  COMPLETE  valid_loss [^\n]*  2 ranks on host"));
    EXPECT_EQ(tare({"report", "sweep.yaml"}).status, 0);
    EXPECT_THAT(content_of(folder_ / "runs/pairs/report.html"), HasSubstr("2 ranks on host"));
    fs::remove_all(folder_ / "runs");
  }
}

/// Returns the child processes of a process.
std::vector<int> children_of(int pid) {
  std::istringstream text(
      content_of("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children"));
  std::vector<int> all;
  for (int child = 0; text >> child;) all.push_back(child);
  return all;
}

/// Returns the ranks of the runs of a sweep.
std::vector<int> ranks_of(int sweep) {
  std::vector<int> ranks;
  for (const int child : children_of(sweep)) {
    if (content_of("/proc/" + std::to_string(child) + "/cmdline").find("--ranks") ==
        std::string::npos)
      continue;
    for (const int rank : children_of(child)) ranks.push_back(rank);
  }
  return ranks;
}

bool wait_until(const std::function<bool()>& is_so) {
  for (int tries = 0; tries < 1200; ++tries) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return false;
}

class LongSweepOfRanks : public SweepOfRanks {
 protected:
  /// Starts a sweep of one long run, and returns when the run has a checkpoint.
  [[nodiscard]] std::unique_ptr<Program> start(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"sweep", "run", "sweep.yaml", kParameters, kLong});
    auto program = std::make_unique<Program>("tare", more, folder_.path());
    EXPECT_TRUE(wait_until([&] { return fs::exists(run() / "autosave-1"); }))
        << program->read("err");
    EXPECT_EQ(ranks_of(program->pid()).size(), 2);
    return program;
  }
  [[nodiscard]] fs::path run() const { return folder_ / "runs/pairs/pairs0_s1"; }

  static constexpr const char *kParameters = "parameters={seed: [1]}",
                              *kLong = "set={phases.0.epochs: 30}";
};

TEST_F(LongSweepOfRanks, TriesARunAgainOfWhichARankWasKilled) {
  const json expected = alone({"seed=1", "phases.0.epochs=30"});
  for (const size_t victim : {0U, 1U}) {
    const auto sweep = start();
    ::kill(ranks_of(sweep->pid()).at(victim), SIGKILL);
    const ProgramResult result = sweep->wait();
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(ContainsRegex("pairs0_s1  failed: signal 9"),
                                  HasSubstr("1 complete, 0 failed, 0 waiting; 2 started")));
    EXPECT_EQ(figures_in(run()), expected) << "rank " << victim;
    EXPECT_FALSE(
        json::parse(content_of(run() / "report.json"))["resumed_from"].get<std::string>().empty());
    fs::remove_all(folder_ / "runs");
  }
  const auto sweep = start({"on_failure.max_retries=0"});
  ::kill(ranks_of(sweep->pid()).at(1), SIGKILL);
  const ProgramResult result = sweep->wait();
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("0 complete, 1 failed, 0 waiting; 1 started"));
}

TEST_F(LongSweepOfRanks, StopsAllRanksAndContinues) {
  const auto sweep = start();
  const auto ranks = ranks_of(sweep->pid());
  ::kill(sweep->pid(), SIGINT);
  const ProgramResult stopped = sweep->wait();
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("0 complete, 0 failed, 1 waiting; 1 started"));
  for (const int rank : ranks) EXPECT_FALSE(fs::exists("/proc/" + std::to_string(rank)));
  const ProgramResult result = tare({"run", "sweep.yaml", kParameters, kLong});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 complete, 0 failed, 0 waiting; 1 started"));
  EXPECT_EQ(figures_in(run()), alone({"seed=1", "phases.0.epochs=30"}));
}

TEST_F(LongSweepOfRanks, LeavesNoRankBehindWhenItIsKilled) {
  const auto sweep = start();
  const auto ranks = ranks_of(sweep->pid());
  ::kill(sweep->pid(), SIGKILL);
  (void)sweep->wait();
  for (const int rank : ranks)
    EXPECT_TRUE(wait_until([&] { return !fs::exists("/proc/" + std::to_string(rank)); })) << rank;
  EXPECT_THAT(tare({"status", "sweep.yaml", kParameters, kLong}).out,
              HasSubstr("2 ranks on host  stopped, because its sweep was killed"));
}

TEST_F(LongSweepOfRanks, EndsAllRanksOfARunThatIsPruned) {
  const ProgramResult result =
      tare({"run", "sweep.yaml", "parameters={phases.0.lr: [1.0e-2, 1.0e-9]}",
            "set={phases.0.epochs: 40, phases.0.schedule: constant}", "resources.jobs=1",
            "pruner={type: asha, min_resource: 1, reduction_factor: 2}"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("pairs1_p0l1e-09  pruned after "),
                                HasSubstr("1 complete, 1 pruned, 0 failed, 0 waiting")));
}

TEST_F(SweepOfRanks, RefusesBadInputOnceBeforeAnyWork) {
  struct Case {
    std::vector<std::string> words;
    std::string message;
  };
  const std::vector<Case> cases{
      {{"resources.ranks=0"}, "resources.ranks must be from 1 to 1024, got 0"},
      {{"resources.ranks=two"}, "resources.ranks must be a whole number"},
      {{"resources.ranks=[1, 2]"}, "resources.ranks must be a whole number"},
      {{"resources={ranks: 1000}", "set.batch=1000"},
       "resources.ranks is more than the processors that can be used, of which each rank takes "
       "one, got 1000; allowed: at most "},
      {{"parameters={resources.ranks: [1, 2]}"},
       "parameters.resources.ranks is no key of the recipe, and all runs have equally many ranks"},
      {{"set={resources.ranks: 2}"}, "set.resources.ranks is no key of the recipe"},
      {{"set.batch=1"},
       "set.batch is less than the ranks, of which each trains on a part of it, "
       "got 1; allowed: at least 2, or fewer ranks"},
      {{"parameters={phases.0.batch: [1, 48]}"}, "parameters.phases.0.batch.0 is less than the "},
      {{"set.step_in_backward=true"}, "set.step_in_backward steps before the ranks have averaged"},
      {{"set={data_parallel.sync_batch_norm: true, micro_batch: 8}"},
       "set.micro_batch cuts the batches over which sync_batch_norm normalises"},
      {{"set.device=cuda:0"}, "set.device names one card, and resources.ranks is 2"},
      {{"executor={type: slurm, options: [--ntasks=2]}"},
       "executor.options has an option that the sweep sets itself"}};
  for (const auto& [words, message] : cases) {
    std::vector<std::string> all{"run", "sweep.yaml"};
    all.insert(all.end(), words.begin(), words.end());
    const ProgramResult result = tare(all);
    EXPECT_EQ(result.status, 2) << words.front() << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_FALSE(fs::exists(folder_ / "runs")) << words.front();
  }
}

TEST_F(SweepOfRanks, TakesAsManyRunsAtATimeAsThereAreProcessorsForTheirRanks) {
  const ProgramResult plan = tare({"plan", "sweep.yaml", "resources={ranks: 1}"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("pairs: 4 runs, "), Not(HasSubstr("rank"))));
  const auto at_a_time = [](const std::string& text) {
    const size_t end = text.find(" at a time");
    return std::stoi(text.substr(text.rfind(' ', end - 1)));
  };
  const int processors = at_a_time(plan.out);
  if (processors < 2) GTEST_SKIP() << "one processor takes no two ranks";
  EXPECT_EQ(at_a_time(tare({"plan", "sweep.yaml", "resources={ranks: 2}"}).out), processors / 2);
}

}  // namespace
}  // namespace tare::testing

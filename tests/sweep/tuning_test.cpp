// Sweeps that draw their cells and end runs early, with runs that are shell scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/error.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

using search::TrialState;
using sweep::SweepReport;
using sweep::Trial;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TuningTest : public ShellSweepTest {
 protected:
  [[nodiscard]] std::vector<Trial> trials() const { return sweep::read_store(store(), "s").trials; }
  /// "COMPLETE 2": each trial's state and how many epochs it reported.
  [[nodiscard]] std::vector<std::string> states() const {
    return rows(store(),
                "SELECT state || ' ' || (SELECT count(*) FROM trial_intermediate_values i WHERE "
                "i.trial_id = t.trial_id) FROM trials t ORDER BY number");
  }
};

constexpr const char* kDrawn =
    "parameters: {a: {min: 0.0, max: 1.0}, c: [3, 4]}\ntrials: 6\nresources: {jobs: 2}\n";

TEST_F(TuningTest, DrawsAsManyRunsAsAreAskedFor) {
  EXPECT_THROW((void)files_.read("method: tpe\nparameters: {a: {min: 0.0, max: 1.0}}\n"),
               ConfigError)
      << "how many?";
  const SweepReport first = run(std::string(kDrawn) + "method: tpe\n", "finish 0.$c 1");
  EXPECT_EQ(first.complete, 6);
  std::set<std::string> drawn;
  for (const Trial& trial : trials()) drawn.insert(search::python_text(trial.cell));
  EXPECT_EQ(drawn.size(), 6U);
  EXPECT_EQ(run(std::string(kDrawn) + "method: tpe\n", "exit 1").started, 0);
  const auto more =
      run("parameters: {a: {min: 0.0, max: 1.0}, c: [3, 4]}\ntrials: 8\nmethod: tpe\n",
          "finish 0.$c 1");
  EXPECT_EQ(more.started, 2);
  EXPECT_EQ(more.complete, 8);
}

TEST_F(TuningTest, TheSameSeedDrawsTheSameAlsoAfterAStop) {
  const auto draws = [&](bool stops) {
    std::filesystem::remove_all(files_.log_dir());
    const std::string text =
        "parameters: {a: {min: 0.0, max: 1.0}}\nmethod: tpe\ntrials: 14\nresources: {jobs: 1}\n";
    const char* script = "finish 0.$c$(echo $a | tail -c 4) 1";
    if (stops) {
      int asked = 0;
      EXPECT_TRUE(run(text, script, [&] { return ++asked > 10; }).interrupted);
    }
    EXPECT_EQ(run(text, script).complete, 14);
    std::vector<std::string> cells;
    for (const Trial& trial : trials()) cells.push_back(search::python_text(trial.cell));
    return cells;
  };
  EXPECT_EQ(draws(false), draws(true));
}

TEST_F(TuningTest, NothingIsDrawnOnceTheRecipeHasChanged) {
  const std::string recipe = (files_.log_dir() / "../recipe.yaml").string();
  const SweepReport report =
      run("parameters: {a: {min: 0.0, max: 1.0}}\nmethod: tpe\ntrials: 9\nresources: {jobs: 1}\n",
          "test -e $folder/../s1* && echo 'b: {c: 7}' > " + recipe + "; finish 1 1");
  EXPECT_LT(report.complete, 4);
  EXPECT_EQ(report.failed, 0);
}

TEST_F(TuningTest, ADiscreteSpaceEndsWhenAllHasBeenSeen) {
  const SweepReport report =
      run("parameters: {a: [1, 2, 3], c: [3, 4]}\nexclude: [{a: 1, c: 3}]\nmethod: random\n",
          "finish 1 1");
  EXPECT_EQ(report.complete, 5);
  std::set<std::string> drawn;
  for (const Trial& trial : trials()) drawn.insert(search::python_text(trial.cell));
  EXPECT_EQ(drawn.size(), 5U);
}

TEST_F(TuningTest, ARunThatFallsBehindIsPruned) {
  const char* text =
      "parameters: {a: [1, 2, 3]}\nresources: {jobs: 1}\n"
      "pruner: {type: asha, min_resource: 2, reduction_factor: 2}\n";
  const SweepReport report = run(text, "train 0.1 0.$((5 - a)) 0.$((6 - a)) 0.9 0.9 0.9");
  EXPECT_EQ(report.complete, 1);
  EXPECT_EQ(report.pruned, 2);
  EXPECT_EQ(report.failed, 0);
  EXPECT_THAT(out_.str(), HasSubstr("s1_a2  pruned after "));
  const auto after = trials();
  EXPECT_EQ(after[0].state, TrialState::complete);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(after[i].state, TrialState::pruned) << i;
    EXPECT_EQ(after[i].reason, "") << i;
  }
  EXPECT_THAT(rows(store(),
                   "SELECT value_json FROM trial_system_attributes WHERE \"key\" = "
                   "'completed_rung_0' ORDER BY trial_id"),
              ElementsAre("0.4", "0.3", "0.2"));
  const std::string data = io::read_text(files_.log_dir() / "run_data.csv");
  EXPECT_THAT(data, HasSubstr("\n1,s1_a2,PRUNED,2,0."));
  EXPECT_EQ(run(text, "exit 1").started, 0) << "what is pruned is done";
}

TEST_F(TuningTest, EachRunHasTheFilesOfFurcate) {
  (void)run("parameters: {a: [1]}\n", "pause=0; train 0.1 0.2");
  for (const char* name :
       {"history.json", "run_data.json", "loss.svg", "loss.png", "acc.svg", "acc.png"})
    EXPECT_TRUE(std::filesystem::exists(files_.log_dir() / "s0_a1" / name)) << name;
  EXPECT_EQ(io::read_text(files_.log_dir() / "s0_a1/history.json"),
            "{\"loss\":[1.0,1.0],\"val_loss\":[2.0,2.0],\"val_acc\":[0.1,0.2]}\n");
}

TEST_F(TuningTest, WhatARunLacksIsMadeAgainAndNothingElse) {
  const auto folder = files_.log_dir() / "s0_a1";
  const auto again = [&] {
    EXPECT_EQ(run("parameters: {a: [1, 2]}\n", "pause=0; train 0.1 0.2").complete, 2);
  };
  again();
  const std::string run_data = io::read_text(folder / "run_data.json");
  const std::string plot = io::read_text(folder / "acc.svg");
  io::write_atomically(files_.log_dir() / "s1_a2/history.json", "mine");
  io::remove_all(folder / "run_data.json");  // killed before
  again();
  EXPECT_EQ(io::read_text(folder / "run_data.json"), run_data) << "with the same times";
  for (const char* empty : {"acc.svg", "run_data.json", "history.json"}) {  // a power loss
    io::write_atomically(folder / empty, "");
    again();
    EXPECT_EQ(io::read_text(folder / "run_data.json"), run_data);
    EXPECT_EQ(io::read_text(folder / "acc.svg"), plot);
  }
  EXPECT_EQ(io::read_text(files_.log_dir() / "s1_a2/history.json"), "mine");
  io::remove_all(folder);
  again();
  EXPECT_FALSE(std::filesystem::exists(folder)) << "who deletes a run's folder wants none";
}

TEST_F(TuningTest, HyperbandPrunesInItsBrackets) {
  const SweepReport report =
      run("parameters: {a: {min: 1, max: 8}}\nresources: {jobs: 2}\n"
          "pruner: {type: hyperband, reduction_factor: 2, max_resource: 4}\n",
          "train 0.$((9 - a)) 0.$((9 - a)) 0.$((9 - a)) 0.$((9 - a))");
  EXPECT_EQ(report.complete + report.pruned, 8);
  EXPECT_GT(report.pruned, 0);
  EXPECT_GT(report.complete, 0);
}

TEST_F(TuningTest, PausedRunsGoOnWhenTheyArePromoted) {
  const SweepReport report =
      run("parameters: {a: [5, 1, 2, 9]}\nresources: {jobs: 1}\n"
          "pruner: {type: asha_promotion, min_resource: 1, reduction_factor: 2}\n",
          "echo $a >> $folder/../starts; train 0.$a 0.$a 0.$a 0.$a");
  EXPECT_EQ(report.failed, 0);
  EXPECT_EQ(report.complete, 1);
  EXPECT_EQ(report.pruned, 3) << "what nothing promotes any more";
  EXPECT_EQ(report.waiting, 0);
  std::map<std::string, int64_t> starts;
  std::istringstream lines(io::read_text(files_.log_dir() / "starts"));
  for (std::string a; lines >> a;) ++starts[a];
  EXPECT_GE(starts["9"], 3) << "paused at epochs 1 and 2, promoted twice";
  EXPECT_EQ(starts["1"], 1);
  const std::string table = io::read_text(files_.log_dir() / trials()[3].run_name / "all.csv");
  EXPECT_EQ(std::ranges::count(table, '\n'), 5) << "each epoch once";
  for (const Trial& trial : trials())
    for (const char* name : {"history.json", "run_data.json"})
      EXPECT_TRUE(std::filesystem::exists(files_.log_dir() / trial.run_name / name))
          << trial.run_name << '/' << name;
}

TEST_F(TuningTest, ARunAtItsLastEpochIsNeitherPausedNorPruned) {
  for (const std::string pruner : {"asha_promotion", "asha"}) {
    io::remove_all(files_.log_dir());
    const sweep::SweepOptions sweep = read(
        "parameters: {a: [5, 1]}\nresources: {jobs: 1}\n"
        "pruner: {type: " +
        pruner + ", min_resource: 2, reduction_factor: 2}\n");
    sweep::SweepHost host = host_of(sweep, "pause=0.3; train 0.$a 0.$a");
    host.epochs = [](const auto&) { return int64_t{2}; };
    EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 2) << pruner;
  }
}

TEST_F(TuningTest, PausedRunsSurviveAStop) {
  const char* text =
      "parameters: {a: [5, 1, 2, 9]}\nresources: {jobs: 1}\n"
      "pruner: {type: asha_promotion, min_resource: 1, reduction_factor: 2}\n";
  const char* script = "train 0.$a 0.$a 0.$a 0.$a";
  const auto several_have_begun = [&] {
    return std::filesystem::exists(store()) && std::filesystem::exists(files_.log_dir() / "s2_a2");
  };
  EXPECT_TRUE(run(text, script, several_have_begun).interrupted);
  const SweepReport report = run(text, script);
  EXPECT_EQ(report.complete, 1);
  EXPECT_EQ(report.pruned, 3);
}

TEST_F(TuningTest, ReportsAreInTheStoreWhileARunIsRunning) {
  bool seen = false;
  (void)run("parameters: {a: [1]}\n", "train 0.5 0.6 0.7", [&] {
    if (std::filesystem::exists(store()))
      seen = seen || states() == std::vector<std::string>{"RUNNING 2"};
    return false;
  });
  EXPECT_TRUE(seen);
  EXPECT_THAT(states(), ElementsAre("COMPLETE 3"));
}

// As with Optuna's dashboard open, which reads all the time and writes notes.
TEST_F(TuningTest, ManyReportAtOnceWhileOthersReadAndWriteTheStore) {
  std::atomic<int> looks = 0;
  const std::jthread dashboard([&](const std::stop_token& stop) {
    while (!std::filesystem::exists(files_.log_dir() / "s0_a1")) std::this_thread::yield();
    while (!stop.stop_requested()) {
      EXPECT_EQ(trials().size(), 64U);
      (void)rows(store(),
                 "INSERT OR REPLACE INTO study_user_attributes "
                 "(study_id, \"key\", value_json) VALUES (1, 'note', '\"" +
                     std::to_string(++looks) + "\"')");
    }
  });
  const SweepReport report =
      run("parameters: {a: {min: 1, max: 64}}\nresources: {jobs: 64, memory: 1MiB}\n",
          "pause=0.1; train 0.1 0.2 0.3 0.4 0.5");
  EXPECT_EQ(report.complete, 64);
  EXPECT_GT(looks, 3);
  EXPECT_THAT(rows(store(), "SELECT count(*) FROM trial_intermediate_values"), ElementsAre("320"));
  EXPECT_THAT(rows(store(), "PRAGMA integrity_check"), ElementsAre("ok"));
}

TEST_F(TuningTest, APrunerThatContradictsItselfIsRefused) {
  const auto refused = [&](const char* pruner) {
    EXPECT_THROW((void)files_.read("parameters: {a: [1]}\npruner: " + std::string(pruner) + '\n'),
                 ConfigError)
        << pruner;
  };
  refused("{type: median}");
  refused("{type: asha, min_resource: 0}");
  refused("{type: asha, reduction_factor: 1}");
  refused("{type: asha, bootstrap_count: 2}");
  refused("{type: hyperband, min_resource: 9, max_resource: 3}");
}

}  // namespace
}  // namespace tare::testing

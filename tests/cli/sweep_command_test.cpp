// `tare sweep` with real runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/tiny_sweep.h"
#include "support/files.h"
#include "support/program.h"
#include "support/small_disk.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SweepCommand, PlansRunsAndPrintsTheMemory) {
  const Sweep sweep;
  const auto before = sweep.tare({"status", "sweep.yaml"});
  EXPECT_EQ(before.status, 2);
  EXPECT_THAT(before.err, HasSubstr("nothing of 'tiny' has run"));
  const auto plan = sweep.tare({"plan", "sweep.yaml", "resources.jobs=2"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("tiny: 4 runs, 2 at a time"));
  EXPECT_THAT(plan.out, HasSubstr("tiny3_p0l0-01_mw8  round 2  planned "));
  const char* const legend =
      "names of runs: tiny and a number, then p0l (phases.0.lr), mw (model.width), each with its "
      "value\n";
  EXPECT_THAT(plan.out, HasSubstr(legend));
  EXPECT_FALSE(fs::exists(sweep.folder / "runs"));
  const auto run = sweep.tare({"run", "sweep.yaml"});
  EXPECT_EQ(run.status, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("tiny: 4 complete, 0 failed, 0 waiting; 4 started"));
  EXPECT_THAT(run.out, HasSubstr(legend));
  EXPECT_THAT(sweep.data(), HasSubstr("\n3,tiny3_p0l0-01_mw8,COMPLETE,0.01,8,"));
  EXPECT_TRUE(fs::exists(sweep.folder / "runs/tiny/tiny3_p0l0-01_mw8/report.json"));
  EXPECT_THAT(sweep.tare({"run", "sweep.yaml"}).out, HasSubstr("; 0 started"));
  const std::string status = sweep.tare({"status", "sweep.yaml"}).out;
  EXPECT_THAT(status, HasSubstr("tiny0_p0l0-001_mw4  COMPLETE  accuracy "));
  EXPECT_THAT(status,
              ::testing::ContainsRegex(
                  "best tiny[0-3]_[^ ]+: accuracy [0-9.]+  "
                  "phases.0.lr=[-0-9.e]+  model.width=[0-9]+  in runs/tiny/tiny[0-3]_[^ ]+\n"));
}

TEST(SweepCommand, TakesASweepThatComesWithTareByItsName) {
  const TempDir folder;
  const auto plan = run_program("tare",
                                {"sweep", "plan", "digits/folds", "set.data.name=generated_digits",
                                 "set.data.count=100", "set.batch=16"},
                                folder.path());
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("digits-folds: 10 runs"));
  const auto unknown = run_program("tare", {"sweep", "plan", "digits/fold"}, folder.path());
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"digits/folds\"?"));
}

TEST(SweepCommand, SaysHowManyRunsAreTogetherInARound) {
  const Sweep sweep;
  const auto plan = sweep.tare(
      {"plan", "sweep.yaml", "resources.jobs=4", "resources.total=8GiB", "resources.memory=5GiB"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("tiny: 4 runs, 1 at a time of the 4 that are allowed, because no "
                                  "more fit into the memory, in 8 GiB\n"));
  EXPECT_THAT(plan.out, HasSubstr("  round 4  planned "));
}

TEST(SweepCommand, SaysWhoseMemoryAPlanForAClusterIsFor) {
  const Sweep sweep;
  const char* const own =
      "memory is planned as for this machine; the executor 'slurm' limits its "
      "runs itself, and what it allows is not known here\n";
  const auto cluster = sweep.tare({"plan", "sweep.yaml", "executor=slurm"});
  ASSERT_EQ(cluster.status, 0) << cluster.err;
  EXPECT_THAT(cluster.out, HasSubstr(own));
  EXPECT_THAT(cluster.out, Not(HasSubstr("reserves")));
  EXPECT_THAT(sweep.tare({"plan", "sweep.yaml"}).out, Not(HasSubstr("is not known here")));
}

TEST(SweepCommand, ComparesTheWeightsThatTheRunsEndWith) {
  const Sweep sweep;
  const auto run = sweep.tare(
      {"run", "sweep.yaml", "metric={name: valid_loss, goal: minimize}",
       "parameters={seed: [1, 2]}",
       "set={phases.0.best: valid_loss, phases.0.epochs: 4, phases.0.schedule: constant, "
       "phases.0.lr: 0.05}"});
  ASSERT_EQ(run.status, 0) << run.err << run.out;
  std::istringstream lines(sweep.data());
  int runs = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t name = line.find("tiny");
    if (name == std::string::npos) continue;
    const std::string folder = line.substr(name, line.find(',', name) - name);
    const std::string report = content_of(sweep.folder / "runs/tiny" / folder / "report.json");
    const size_t valid = report.find("\"valid\": {\n    \"loss\": ");
    ASSERT_NE(valid, std::string::npos) << report;
    const double loss = std::stod(report.substr(report.find("loss", valid) + 7));
    std::istringstream cells(line);
    bool found = false;
    for (std::string cell; std::getline(cells, cell, ',');)
      found = found || (cell.size() > 4 && cell.find('.') != std::string::npos &&
                        std::abs(std::atof(cell.c_str()) - loss) < 1e-9);
    EXPECT_TRUE(found) << line << " has no " << loss;
    ++runs;
  }
  EXPECT_EQ(runs, 2);
}

TEST(SweepCommand, RunsOfAnEarlierRecipeAreMarkedAndNotCompared) {
  const Sweep sweep;
  const std::vector<std::string> words{"run", "sweep.yaml", "parameters={model.width: [4]}"};
  ASSERT_EQ(sweep.tare(words).status, 0);
  std::string recipe = content_of(sweep.folder / "recipe.yaml");
  std::ofstream(sweep.folder / "recipe.yaml") << recipe << "label_of_the_second: 1\n";
  EXPECT_EQ(sweep.tare(words).status, 2) << "an unknown key";
  std::ofstream(sweep.folder / "recipe.yaml") << recipe << "seed: 7\n";
  const auto run = sweep.tare(words);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("1 run of runs/tiny is of another recipe or of other settings"));
  EXPECT_THAT(run.out, HasSubstr("1 complete, 0 failed, 0 waiting; 1 started"));
  EXPECT_THAT(run.out, HasSubstr("best tiny1_mw4: accuracy "));
  const std::string status = sweep.tare({"status", "sweep.yaml", words[2]}).out;
  EXPECT_THAT(status, HasSubstr("best tiny1_mw4: "));
  EXPECT_THAT(status, ::testing::ContainsRegex("tiny0_mw4  COMPLETE [^\n]*of another recipe"));
  ASSERT_EQ(sweep.tare({"report", "sweep.yaml", words[2]}).status, 0);
  EXPECT_THAT(content_of(sweep.folder / "runs/tiny/report.html"),
              HasSubstr("of an earlier recipe"));
}

TEST(SweepCommand, ASettingThatMovesToTheParametersNamesTheSameRun) {
  const Sweep sweep;
  const std::vector<std::string> first{"run", "sweep.yaml", "parameters={seed: [1]}",
                                       "set.model.width=4"},
      second{"run", "sweep.yaml", "parameters={seed: [1], model.width: [4, 8]}"};
  ASSERT_EQ(sweep.tare(first).status, 0);
  const auto run = sweep.tare(second);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 complete, 0 failed, 0 waiting; 1 started"));
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("of another recipe")));
  const std::string status = sweep.tare({"status", "sweep.yaml", second[2]}).out;
  EXPECT_THAT(status, ::testing::Not(HasSubstr("of another recipe")));
  EXPECT_THAT(status, ::testing::ContainsRegex("tiny0[^\n]*COMPLETE"));
}

TEST(SweepCommand, OverridesReachSingleParametersAndSettings) {
  const Sweep sweep;
  const auto plan = sweep.tare({"plan", "sweep.yaml", "parameters.phases.0.lr=[1.0e-3]",
                                "parameters.model.width=[4]", "set.seed=3"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("tiny: 1 runs"));
  const auto wrong = sweep.tare({"plan", "sweep.yaml", "set.model.widht=4"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("model.widht is not a known key"));
}

TEST(SweepCommand, FoldsOfACrossValidationHaveAMean) {
  const Sweep sweep;
  std::ofstream(sweep.folder / "folds.yaml") << R"(name: folds
recipe: recipe.yaml
set: {data.folds: 3}
metric: {name: accuracy, goal: maximize}
parameters: {model.width: [4, 8], data.fold: [0, 1, 2]}
)";
  const auto run = sweep.tare({"run", "folds.yaml"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("over 3 folds, standard deviation "));
  const auto status = sweep.tare({"status", "folds.yaml"});
  EXPECT_THAT(status.out, HasSubstr("model.width=4"));
  const size_t first = status.out.find("mean accuracy "),
               second = status.out.find("mean accuracy ", first + 1);
  ASSERT_NE(second, std::string::npos) << status.out;
  const auto mean_at = [&](size_t at) { return std::stod(status.out.substr(at + 14)); };
  EXPECT_GE(mean_at(first), mean_at(second)) << "the best combination comes first";
  const auto refused = sweep.tare({"plan", "folds.yaml", "set={data.folds: 2}"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("fold"));
}

TEST(SweepCommand, AFailedRunSaysWhy) {
  const Sweep sweep;
  const auto run = sweep.tare({"run", "sweep.yaml", "parameters={phases.0.lr: [1.0e-3, 1.0e30]}",
                               "set={optimizer.kind: sgd, phases.0.schedule: constant}"});
  EXPECT_NE(run.status, 0) << run.out;
  EXPECT_THAT(run.out, ContainsRegex("failed: exit 1: \\[[^\n]*the loss is [^\n]*; see "));
  const auto status = sweep.tare({"status", "sweep.yaml"});
  EXPECT_THAT(status.out,
              AllOf(ContainsRegex("exit 1: \\[[^\n]*the loss is (nan|inf)"),
                    Not(HasSubstr("[tare] error: ")), HasSubstr("best tiny0_p0l0-001: ")));
  EXPECT_THAT(status.err, HasSubstr("words key=value of `tare sweep run` are missing here"));
}

TEST(SweepCommand, ListsARunThatHasBeenTriedAgainOnce) {
  const Sweep sweep;
  const std::vector<std::string> words{"sweep.yaml", "parameters={phases.0.lr: [1.0e-3, 1.0e30]}",
                                       "set={optimizer.kind: sgd, phases.0.schedule: constant}"};
  const auto tare = [&](std::vector<std::string> all) {
    all.insert(all.end(), words.begin(), words.end());
    return sweep.tare(all).out;
  };
  EXPECT_THAT(tare({"run"}), HasSubstr("1 complete, 1 failed"));
  EXPECT_THAT(tare({"retry"}), HasSubstr("1 failed, 0 waiting; 1 started"));
  const std::string status = tare({"status"});
  const size_t failed = status.find("tiny1_p0l1e-30  FAIL");
  ASSERT_NE(failed, std::string::npos) << status;
  EXPECT_EQ(status.find("tiny1_p0l1e-30", failed + 1), std::string::npos) << status;
  // `tare` itself shows the status, without LibTorch, as the program that it executes else does.
  std::vector<std::string> of_train{"sweep", "status"};
  of_train.insert(of_train.end(), words.begin(), words.end());
  EXPECT_EQ(run_program("tare-train", of_train, sweep.folder.path()).out, status);
}

TEST(SweepCommand, AKilledSweepHasNoRunningRuns) {
  const Sweep sweep;
  Program program("tare",
                  {"sweep", "run", "sweep.yaml", "resources.jobs=1", "set.phases.0.epochs=200"},
                  sweep.folder.path());
  while (!fs::exists(sweep.folder / "runs/tiny/tiny0_p0l0-001_mw4/all.csv"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(program.pid(), SIGKILL);
  (void)program.wait();
  const auto status = sweep.tare({"status", "sweep.yaml", "set.phases.0.epochs=200"}).out;
  EXPECT_THAT(status, HasSubstr("tiny: is not running"));
  EXPECT_THAT(status, HasSubstr("tiny0_p0l0-001_mw4  WAITING  stopped, because its sweep was "
                                "killed; tare sweep run continues it"));
}

TEST(SweepCommand, TakesShortFormsOfTheRecipe) {
  const Sweep sweep;
  std::string text = content_of(sweep.folder / "recipe.yaml");
  const std::string model = "model: {name: resnet9, width: 4}";
  ASSERT_NE(text.find(model), std::string::npos);
  text.replace(text.find(model), model.size(), "model: resnet9\noptimizer: adam");
  std::ofstream(sweep.folder / "recipe.yaml") << text;
  const auto run = sweep.tare(
      {"run", "sweep.yaml", "parameters={model.width: [4]}", "set={optimizer.weight_decay: 0.1}"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 complete, 0 failed"));
}

TEST(SweepCommand, RefusesWhatIsNotThere) {
  const Sweep sweep;
  EXPECT_THAT(sweep.tare({"rnu", "sweep.yaml"}).err, HasSubstr("did you mean \"run\""));
  EXPECT_EQ(sweep.tare({"run", "none.yaml"}).status, 2);
  const auto wrong = sweep.tare({"run", "sweep.yaml", "set={model.widht: 4}"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("model.widht is not a known key"));
}

TEST(SweepCommand, AnEditWithAWrongValueIsReportedAndChangesNothing) {
  const Sweep sweep;
  const std::string text = content_of(sweep.folder / "sweep.yaml");
  Program program("tare", {"sweep", "run", "sweep.yaml", "resources.jobs=1"}, sweep.folder.path());
  while (!fs::exists(sweep.folder / "runs/tiny/tiny0_p0l0-001_mw4"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::ofstream(sweep.folder / "sweep.yaml") << text << "set: {batch: 0}\n";
  const auto run = program.wait();
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("set.batch must be >= 1"));
  EXPECT_THAT(run.out, HasSubstr("tiny: 4 complete"));
}

// Between two runs, or while one runs: what is started from then on is executed.
TEST(SweepCommand, SurvivesTheEndOfItsForkServer) {
  const Sweep sweep;
  Program program("tare", {"sweep", "run", "sweep.yaml", "resources.jobs=1"}, sweep.folder.path());
  while (!fs::exists(sweep.folder / "runs/tiny/tiny0_p0l0-001_mw4/recipe.yaml"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::string task = std::to_string(program.pid());
  std::ifstream children("/proc/" + task + "/task/" + task + "/children");
  int server = 0;
  children >> server;  // the first that it has made
  ASSERT_GT(server, 0);
  ::kill(server, SIGKILL);
  const auto run = program.wait();
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("tiny: 4 complete, 0 failed, 0 waiting; 4 started"));
  EXPECT_THAT(run.err, HasSubstr("the server that forks runs was killed"));
}

TEST(SweepCommand, AStoreOrFolderThatIsDeletedIsAnErrorAndCanBeMadeAgain) {
  const Sweep sweep;
  const auto start = [&] {
    return Program("tare", {"sweep", "run", "sweep.yaml", "resources.jobs=1"}, sweep.folder.path());
  };
  for (const char* what : {"runs/tiny/tiny.sqlite", "runs/tiny"}) {
    auto program = start();
    while (!fs::exists(sweep.folder / "runs/tiny/tiny1_p0l0-001_mw8/recipe.yaml"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fs::remove_all(sweep.folder / what);
    const auto run = program.wait();
    EXPECT_EQ(run.status, 4) << what << run.out;
    EXPECT_THAT(run.err, HasSubstr("runs/tiny"));
    if (what == std::string("runs/tiny"))
      continue;  // the run under way may have made its own again
    EXPECT_THAT(sweep.tare({"run", "sweep.yaml"}).err, HasSubstr("tare sweep rebuild"));
    const auto rebuilt = sweep.tare({"rebuild", "sweep.yaml"});
    EXPECT_EQ(rebuilt.status, 0) << rebuilt.err;
    // The second run may have ended before the coordinator saw that its store is gone.
    EXPECT_THAT(rebuilt.out,
                AnyOf(HasSubstr("tiny: the store has 1 complete, 0 pruned, 0 failed, "),
                      HasSubstr("tiny: the store has 2 complete, 0 pruned, 0 failed, ")));
    EXPECT_THAT(sweep.tare({"run", "sweep.yaml"}).out, HasSubstr("4 complete, 0 failed"));
    fs::remove_all(sweep.folder / "runs");
  }
}

TEST(SweepCommand, StatusSaysWhichRunsWereStoppedAndThatTheStoreIsLost) {
  const Sweep sweep;
  const auto first = sweep.folder / "runs/tiny/tiny0_p0l0-001_mw4";
  Program program(
      "tare", {"sweep", "run", "sweep.yaml", "resources.jobs=1", "set={phases.0.epochs: 100000}"},
      sweep.folder.path());
  while (!fs::exists(first / "recipe.yaml"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(sweep.tare({"stop", "sweep.yaml"}).out,
            "tiny: its runs save and end; tare sweep run continues it\n");
  const auto stopped = program.wait();
  EXPECT_EQ(stopped.status, 128 + SIGINT);
  EXPECT_THAT(stopped.out, HasSubstr("\ntiny: stopped by a signal; its runs have saved, and tare "
                                     "sweep run continues it\n"));
  EXPECT_EQ(stopped.err, "");
  EXPECT_THAT(content_of(first / "tiny0_p0l0-001_mw4.err"), Not(HasSubstr("warning")));
  EXPECT_THAT(
      sweep.tare({"status", "sweep.yaml", "set={phases.0.epochs: 100000}"}).out,
      AllOf(HasSubstr("tiny0_p0l0-001_mw4  WAITING  stopped; tare sweep run continues it\n"),
            HasSubstr("tiny1_p0l0-001_mw8  WAITING\n")));
  fs::remove(sweep.folder / "runs/tiny/tiny.sqlite");
  const auto lost = sweep.tare({"status", "sweep.yaml"});
  EXPECT_EQ(lost.status, 2);
  EXPECT_THAT(lost.err, HasSubstr("but not its store, got runs/tiny; allowed: tare sweep rebuild"))
      << lost.err;
}

TEST(SweepCommand, APeakThatIsNotKnownIsNotZero) {
  const Sweep sweep;
  fs::create_directories(sweep.folder / "runs/tiny");
  std::ofstream(sweep.folder / "runs/tiny/run_data.csv")
      << "trial,name,state,phases.0.lr,model.width,run_accuracy\n"
         "0,tiny0_p0l0-001_mw4,COMPLETE,0.001,4,0.5\n";
  ASSERT_EQ(sweep.tare({"rebuild", "sweep.yaml"}).status, 0);
  EXPECT_THAT(sweep.tare({"status", "sweep.yaml"}).out,
              HasSubstr("tiny0_p0l0-001_mw4  COMPLETE  accuracy 0.5, peak unknown, "));
}

TEST(SweepCommand, FurcatesConfigurationsHaveItsLogAndItsOptimizers) {
  const Sweep sweep;
  std::ofstream(sweep.folder / "f.json")
      << R"({"data_name": "f", "data_dir": "d", "recipe": "recipe.yaml", "batch_size": 32,
             "epochs": 1, "optimizer_name": ["RMSProp", "SGD", "Adam", "Nadam", "Adadelta"],
             "model.name": "mlp", "meta": {"allow_cpu": true}})";
  std::ofstream(sweep.folder / "recipe.yaml", std::ios::app) << "test: false\n";
  const std::string recipe = content_of(sweep.folder / "recipe.yaml");
  std::ofstream(sweep.folder / "recipe.yaml")
      << recipe.substr(0, recipe.find("model:")) << "model: {name: mlp}\n"
      << recipe.substr(recipe.find("phases:"));
  const auto plan = sweep.tare({"plan", "f.json"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_EQ(plan.out.find("cannot be predicted"), std::string::npos) << plan.out;
  const auto run = sweep.tare({"run", "f.json"});
  EXPECT_EQ(run.status, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("f: 5 complete, 0 failed"));
  const std::string log = content_of(sweep.folder / "logs/furcate.log");
  EXPECT_THAT(log, HasSubstr(": furcate] f3_d_onNadam starts\n"));
  EXPECT_THAT(log, HasSubstr(": furcate] f4_d_onAdadelta has ended, complete, after "));
  EXPECT_TRUE(fs::exists(sweep.folder / "logs/f0_d_onRMSProp/f0.log"));
}

TEST(SweepCommand, RunsOfFurcatePrintWhatHoldsMemory) {
  const Sweep sweep;
  const auto run = [&](const std::string& mem_trace) {
    std::ofstream(sweep.folder / "f.json")
        << R"({"data_name": "f", "data_dir": "d", "recipe": "recipe.yaml", "batch_size": [32],
               "epochs": 1, "framework": "tf", "meta": {"allow_cpu": true, "mem_trace": )"
        << mem_trace << "}}";
    return sweep.tare({"run", "f.json"});
  };
  const auto first = run(R"({"enabled": true, "top": 3})");
  ASSERT_EQ(first.status, 0) << first.err << first.out;
  const std::string log = content_of(sweep.folder / "logs/f0_d_bs32/f0.log");
  EXPECT_THAT(log, HasSubstr("] ------ Before the purge of all ------\n"));
  EXPECT_THAT(log, HasSubstr("] top_current i=3, stat=cpu, phase "));
  EXPECT_THAT(log, Not(HasSubstr("top_current i=4")));
  const std::string all = content_of(sweep.folder / "logs/furcate.log");
  EXPECT_THAT(all, HasSubstr(": furcate] mem_trace of f0_d_bs32\n"));
  size_t copied = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(": mem_trace] ") == std::string::npos) continue;
    EXPECT_THAT(all, HasSubstr(line + '\n'));
    ++copied;
  }
  EXPECT_GT(copied, 10U);
  EXPECT_THAT(run(R"({"enabled": false})").out, HasSubstr("1 complete, 0 failed, 0 waiting; 0 "))
      << "it is the same run";
}

TEST(SweepCommand, ContinuesAfterItWasKilledOrStopped) {
  const Sweep sweep;
  const std::vector<std::string> words{"sweep", "run", "sweep.yaml"};
  for (const int signal : {SIGKILL, SIGTERM, SIGKILL, SIGINT}) {
    Program program("tare", words, sweep.folder.path());
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    ::kill(program.pid(), signal);
    const int status = program.wait().status;
    EXPECT_TRUE(status == 128 + signal || status == 0) << status;
  }
  const auto last = sweep.tare({"run", "sweep.yaml"});
  EXPECT_EQ(last.status, 0) << last.err;
  EXPECT_THAT(last.out, HasSubstr("tiny: 4 complete, 0 failed, 0 waiting"));
  const std::string data = sweep.data();
  EXPECT_EQ(std::ranges::count(data, '\n'), 5) << data;
  EXPECT_THAT(data, Not(HasSubstr("FAIL")));
}

TEST(SweepCommand, AFullOrReadOnlyDiskIsOneMessageAndLaterTheSweepContinues) {
  const SmallDisk disk(int64_t{32} << 20);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  const Sweep sweep;
  const std::string folder = (disk.path() / "logs").string();
  const auto run = [&] {
    return sweep.tare({"run", "sweep.yaml", "resources.jobs=1", "log_dir=" + folder});
  };
  ASSERT_TRUE(disk.set_read_only(true));
  const auto refused = run();
  EXPECT_EQ(refused.status, 4);
  EXPECT_EQ(refused.err,
            "[tare] error: [io.make_directories] " + folder + ": Read-only file system\n");
  EXPECT_EQ(refused.out, "");
  ASSERT_TRUE(disk.set_read_only(false));
  fill(disk.path() / "ballast");
  fs::resize_file(disk.path() / "ballast", fs::file_size(disk.path() / "ballast") - 500'000);
  const auto full = run();
  EXPECT_EQ(full.status, 4);
  EXPECT_EQ(std::ranges::count(full.err, '\n'), 1) << full.err;
  EXPECT_THAT(full.err, HasSubstr(folder));
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  fs::remove(disk.path() / "ballast");
  const auto later = run();
  EXPECT_EQ(later.status, 0) << later.err;
  EXPECT_THAT(later.out, HasSubstr("tiny: 4 complete, 0 failed, 0 waiting"));
}

}  // namespace
}  // namespace tare::testing

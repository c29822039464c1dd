// `tare run` on several ranks: its figures, its starters, and what happens when a rank is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "support/deep.h"
#include "support/files.h"
#include "support/free_port.h"
#include "support/program.h"
#include "support/seed.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A recipe whose figures do not depend on how a batch is divided, with an uneven last batch.
constexpr const char* kRecipe = R"(name: shared
device: cpu
batch: 48
save_every: 5
data: {name: generated_digits, count: 500, size: 12}
model: {name: mlp, hidden: [16]}
metrics: [accuracy, f1]
optimizer: {kind: adamw}
phases: [{name: first, epochs: 3, lr: 3.0e-3}, {name: second, epochs: 2, lr: 1.0e-3}]
export: shared.tare
)";

void write_recipe(const fs::path& folder, const std::string& text = kRecipe) {
  std::ofstream(folder / "recipe.yaml") << text;
}

json report_in(const fs::path& folder) {
  return json::parse(content_of(folder / "runs/shared/report.json"));
}

void expect_near(const json& got, const json& expected, const std::string& what) {
  ASSERT_TRUE(got.is_number() && expected.is_number()) << what;
  const double value = expected.get<double>();
  EXPECT_NEAR(got.get<double>(), value, 1e-6 * std::max(1.0, std::abs(value))) << what;
}

void expect_same_figures(const json& got, const json& expected, const std::string& what) {
  ASSERT_EQ(got["phases"].size(), expected["phases"].size()) << what;
  for (size_t phase = 0; phase < expected["phases"].size(); ++phase) {
    const json &epochs = got["phases"][phase]["epochs"],
               &others = expected["phases"][phase]["epochs"];
    ASSERT_EQ(epochs.size(), others.size()) << what;
    for (size_t i = 0; i < others.size(); ++i)
      for (const char* figure : {"train_loss", "valid_loss"})
        expect_near(epochs[i][figure], others[i][figure], what + ' ' + figure);
  }
  expect_near(got["valid"]["loss"], expected["valid"]["loss"], what + " valid");
}

ProgramResult run(const fs::path& folder, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"run", "recipe.yaml"});
  return run_program("tare", more, folder);
}

TEST(RanksCommand, TrainsAsOneProcessDoes) {
  const TempDir alone;
  write_recipe(alone.path());
  ASSERT_EQ(run(alone.path()).status, 0);
  const json expected = report_in(alone.path());
  for (const char* ranks : {"2", "3"}) {
    const TempDir folder;
    write_recipe(folder.path());
    const ProgramResult result = run(folder.path(), {"--ranks", ranks});
    ASSERT_EQ(result.status, 0) << result.err;
    const json got = report_in(folder.path());
    expect_same_figures(got, expected, ranks);
    EXPECT_EQ(std::to_string(got["phases"][0]["ranks"].size()), ranks);
    for (const json& phase : got["phases"])
      for (const json& rank : phase["ranks"]) EXPECT_EQ(rank["residual_bytes"], 0);
    EXPECT_EQ(got["residual_bytes"], 0);
    const ProgramResult predicted =
        run_program("tare", {"inspect", "runs/shared/shared.tare", "--verify"}, folder.path());
    EXPECT_EQ(predicted.status, 0) << predicted.err;
    const ProgramResult compared = run_program(
        "tare", {"compare", (alone.path() / "runs/shared").string(), "runs/shared", "--csv"},
        folder.path());
    EXPECT_THAT(compared.out, HasSubstr(std::string("\nfigure,ranks,,,") + ranks + '\n'));
  }
}

constexpr const char* kBlocks = R"(name: shared
batch: 16
data: {name: generated_digits, count: 100, size: 16}
model: {name: vit, width: 48, layers: 3, heads: 4, options: {patch: 4}}
optimizer: {kind: adamw}
phases: [{name: head, freeze_to: -1, epochs: 1, lr: 3.0e-3}, {name: all, epochs: 2, lr: 3.0e-3}]
)";

TEST(RanksCommand, TakesTheMemoryThatIsPlanned) {
  const TempDir folder;
  write_recipe(folder.path(), kBlocks);
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const std::string shard : {"none", "optimizer", "gradients", "parameters"}) {
    // Buckets of the default size would hold all gradients of this model at once.
    const std::string setting = "data_parallel={shard: " + shard +
                                ", bucket_mib: " + (shard == "gradients" ? "0.01}" : "25}");
    const ProgramResult planned =
        run_program("tare", {"plan", "recipe.yaml", "--ranks", "3", "--json", "plan.json", setting},
                    folder.path());
    ASSERT_EQ(planned.status, 0) << planned.err;
    ASSERT_EQ(run(folder.path(), {"--ranks", "3", "--overwrite", setting}).status, 0);
    const json plan = json::parse(content_of(folder / "plan.json")),
               report = report_in(folder.path());
    ASSERT_EQ(plan["phases"].size(), 2);
    for (size_t phase = 0; phase < 2; ++phase) {
      EXPECT_EQ(plan["phases"][phase]["method"], "meta");
      int64_t largest = 0;
      for (const json& rank : report["phases"][phase]["ranks"]) {
        largest = std::max(largest, rank["peak_bytes"].get<int64_t>());
        EXPECT_EQ(rank["residual_bytes"], 0);
      }
      const int64_t bytes = plan["phases"][phase]["peak_bytes"];
      EXPECT_GE(largest, bytes) << shard << ' ' << phase;
      // LibTorch's reducer may still hold the size of its only bucket, an int.
      EXPECT_LE(largest, bytes + (shard == "none" || shard == "optimizer" ? 4 : 0)) << shard;
      if (phase == 0) continue;
      EXPECT_LT(bytes, before) << shard;
      before = bytes;
    }
  }
}

// A rank that has none of the parameters which an option names has no reason to warn of the option.
TEST(RanksCommand, ChecksNamesOfAnOptimizerWithAllParameters) {
  const TempDir folder;
  write_recipe(folder.path());
  const auto muon = [&](const std::string& member) {
    return run(folder.path(), {"--ranks", "3", "--overwrite", "data_parallel.shard=optimizer",
                               "data.count=96", "phases=[{name: first, epochs: 1, lr: 1.0e-3}]",
                               "optimizer={kind: muon, options: {adamw: [" + member + "]}}"});
  };
  const ProgramResult known = muon("head.bias"), unknown = muon("tail");
  EXPECT_EQ(known.status, 0) << known.err;
  EXPECT_THAT(known.err, Not(HasSubstr("which no trainable parameter has")));
  EXPECT_EQ(unknown.status, 0) << unknown.err;
  EXPECT_THAT(unknown.err, HasSubstr("options.adamw names 'tail', which no trainable parameter"));
}

/// Plans and trains the recipe on some ranks, and returns the planned peak of the first phase less
/// the highest of the ranks.
int64_t planned_less_measured(const fs::path& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words{"plan", "recipe.yaml", "--json", "plan.json"};
  words.insert(words.end(), more.begin(), more.end());
  const ProgramResult planned = run_program("tare", words, folder);
  EXPECT_EQ(planned.status, 0) << planned.err;
  EXPECT_THAT(planned.err, IsEmpty());
  std::vector<std::string> overwrite = more;
  overwrite.emplace_back("--overwrite");
  const ProgramResult trained = run(folder, overwrite);
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.err, Not(HasSubstr("are lost")));
  int64_t largest = 0;
  const json report = report_in(folder), plan = json::parse(content_of(folder / "plan.json"));
  for (const json& rank : report["phases"][0]["ranks"])
    largest = std::max(largest, rank["peak_bytes"].get<int64_t>());
  EXPECT_EQ(plan["phases"][0]["method"], "meta");
  return plan["phases"][0]["peak_bytes"].get<int64_t>() - largest;
}

// They exchange what each has seen of all samples.
TEST(RanksCommand, TakesThePlannedMemoryWithMetricsOfAllSamples) {
  const TempDir folder;
  write_recipe(folder.path(), R"(name: shared
batch: 20
workers: 0
data: {name: generated_digits, count: 1030, size: 8, train: 0.3, valid: 0.7}
model: {name: mlp, hidden: [16]}
metrics: [auroc, average_precision, accuracy]
phases: [{name: first, epochs: 2, lr: 3.0e-3}]
)");
  for (const char* ranks : {"2", "3", "4"})
    for (const char* shard : {"none", "parameters"}) {
      const int64_t off = planned_less_measured(
          folder.path(), {"--ranks", ranks, std::string("data_parallel.shard=") + shard});
      EXPECT_GE(off, -4) << ranks << ' ' << shard;  // the size of a bucket, see above
      EXPECT_LE(off, 0) << ranks << ' ' << shard;
    }
}

constexpr const char* kText = R"(name: shared
batch: 12
workers: 0
data: {name: text, file: input.txt, context: 8}
model: {name: gpt, width: 8, layers: 2, heads: 2}
callbacks: [{sample_text: {length: 5}}, {tensorboard: {histograms: true}}]
phases: [{name: first, epochs: 2, lr: 3.0e-3}]
)";

void write_text(const fs::path& folder, char other = 'x') {
  write_recipe(folder, kText);
  std::ofstream text(folder / "input.txt");
  for (int i = 0; i < 60; ++i) text << "to be or not to be " << other << '\n';
}

/// Expects the planned peak, but for the size of a bucket that LibTorch's reducer may still hold.
void expect_planned_peak(const fs::path& folder, const std::string& shard,
                         std::vector<std::string> more) {
  more.insert(more.end(), {"--ranks", "3", "phases=[{name: all, epochs: 2, lr: 1.0e-3}]",
                           "data_parallel={shard: " + shard + ", bucket_mib: 0.01}"});
  const int64_t off = planned_less_measured(folder, more);
  EXPECT_LE(off, 0) << shard << ' ' << more.front();
  EXPECT_GE(off, shard == "none" || shard == "optimizer" ? -4 : 0) << shard << ' ' << more.front();
}

// Ranks with fewer parts than others compute one of theirs again, which exchanges its gradients.
TEST(RanksCommand, TakesThePlannedMemoryWithPartsThatDifferBetweenRanks) {
  const TempDir folder;
  write_recipe(folder.path(), std::string(kBlocks) + "workers: 0\nsave_every: 0\n");
  for (const char* shard : {"gradients", "parameters"})
    for (const char* batch : {"batch=8", "batch=7", "batch=9"})
      if (deep() || batch == std::string("batch=8"))
        expect_planned_peak(folder.path(), shard, {batch, "micro_batch=2"});
}

// A checkpoint gathers the state of all ranks, whose parts differ.
TEST(RanksCommand, TakesThePlannedMemoryOfACheckpointOfItsShards) {
  const TempDir folder;
  write_recipe(folder.path(), std::string(kBlocks) + "workers: 0\nsave_every: 3\n");
  expect_planned_peak(folder.path(), "optimizer", {"optimizer={kind: adamw8bit}"});
  expect_planned_peak(folder.path(), "gradients", {"optimizer={kind: adamw}"});
  if (!deep()) return;
  for (const char* kind : {"sgd", "adamw", "adamw8bit", "nadam"})
    for (const char* shard : {"optimizer", "gradients"})
      expect_planned_peak(folder.path(), shard, {"optimizer={kind: " + std::string(kind) + "}"});
}

TEST(RanksCommand, HasTheWholeWeightsForCallbacksBehindAnEpoch) {
  std::map<std::string, std::string> texts;
  for (const std::string shard : {"none", "parameters"}) {
    const TempDir folder;
    write_text(folder.path());
    const ProgramResult result =
        run(folder.path(), {"--ranks", "2", "data_parallel.shard=" + shard});
    ASSERT_EQ(result.status, 0) << result.err;
    texts[shard] = content_of(folder / "runs/shared/samples/epoch-2.txt");
  }
  EXPECT_THAT(texts["none"], Not(IsEmpty()));
  EXPECT_EQ(texts["none"], texts["parameters"]);
}

/// Runs two ranks by hand, each in a folder of its own.
std::vector<ProgramResult> run_by_hand(const fs::path& first, const fs::path& second,
                                       const std::vector<std::string>& more_of_second = {}) {
  const std::string port = std::to_string(free_port());
  std::deque<Program> ranks;
  for (const int rank : {0, 1}) {
    std::vector<std::string> words{"RANK=" + std::to_string(rank),
                                   "WORLD_SIZE=2",
                                   "MASTER_ADDR=127.0.0.1",
                                   "MASTER_PORT=" + port,
                                   "OMP_NUM_THREADS=1",
                                   fs::absolute(program_path("tare")).string(),
                                   "run",
                                   "recipe.yaml"};
    if (rank == 1) words.insert(words.end(), more_of_second.begin(), more_of_second.end());
    ranks.emplace_back("/usr/bin/env", words, rank == 0 ? first : second);
  }
  return {ranks[0].wait(), ranks[1].wait()};
}

TEST(RanksCommand, RefusesRanksWithDifferentData) {
  const TempDir first, second;
  write_text(first.path());
  write_text(second.path(), 'y');
  for (const ProgramResult& one : run_by_hand(first.path(), second.path())) {
    EXPECT_EQ(one.status, 2) << one.err;
    EXPECT_THAT(one.err, HasSubstr("rank 1 has read other data than rank 0"));
  }
  EXPECT_FALSE(fs::exists(first / "runs"));
}

TEST(RanksCommand, SaysOnEachRankWhichOneHasNoData) {
  const TempDir with, without;
  write_text(with.path());
  write_recipe(without.path(), kText);
  for (const bool first_has_none : {false, true}) {
    const auto all = first_has_none ? run_by_hand(without.path(), with.path())
                                    : run_by_hand(with.path(), without.path());
    const std::string missing = first_has_none ? "0" : "1";
    EXPECT_EQ(all[first_has_none ? 0 : 1].status, 2);
    const ProgramResult& other = all[first_has_none ? 1 : 0];
    EXPECT_NE(other.status, 0);
    EXPECT_THAT(other.err, AllOf(HasSubstr("rank " + missing + " of 2 has failed"),
                                 HasSubstr("input.txt"), Not(HasSubstr("frame #"))));
  }
}

TEST(RanksCommand, RefusesRanksOfWhichOneTriesTheRunOnly) {
  const TempDir folder;
  write_recipe(folder.path());
  for (const ProgramResult& one : run_by_hand(folder.path(), folder.path(), {"--dry-run"})) {
    EXPECT_EQ(one.status, 2) << one.err;
    EXPECT_THAT(one.err, HasSubstr("or other options"));
  }
}

TEST(RanksCommand, IsTheOnlyCommandOfRanks) {
  const TempDir folder;
  write_recipe(folder.path());
  for (const char* command : {"bench", "lr-find"}) {
    const ProgramResult result =
        run_program("/usr/bin/env",
                    {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1",
                     fs::absolute(program_path("tare")).string(), command, "recipe.yaml"},
                    folder.path());
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("is of one process, and this one is rank 1 of 2"));
  }
  const ProgramResult alone = run_program(
      "/usr/bin/env",
      {"RANK=0", "WORLD_SIZE=1", fs::absolute(program_path("tare")).string(), "run", "recipe.yaml"},
      folder.path());
  EXPECT_EQ(alone.status, 0) << alone.err;
}

TEST(RanksCommand, IsOfOneProcessWithOneRank) {
  const TempDir folder;
  write_recipe(folder.path());
  EXPECT_EQ(run(folder.path(), {"--ranks", "1"}).status, 0);
}

/// Returns the processes of the ranks that a program has started.
std::vector<int> ranks_of(int pid) {
  std::istringstream text(
      content_of("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children"));
  std::vector<int> all;
  for (int child = 0; text >> child;) all.push_back(child);
  return all;
}

bool wait_until(const std::function<bool()>& is_so) {
  for (int tries = 0; tries < 600; ++tries) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST(RanksCommand, StopsWhenARankIsKilledAndContinuesFromItsCheckpoint) {
  const std::string longer =
      std::string(kRecipe).replace(std::string(kRecipe).find("epochs: 3"), 9, "epochs: 40");
  const TempDir whole;
  write_recipe(whole.path(), longer);
  ASSERT_EQ(run(whole.path(), {"--ranks", "2"}).status, 0);
  for (const size_t victim : {0U, 1U}) {
    const TempDir folder;
    write_recipe(folder.path(), longer);
    Program job("tare", {"run", "recipe.yaml", "--ranks", "2"}, folder.path());
    ASSERT_TRUE(wait_until([&] { return fs::exists(folder / "runs/shared/autosave-1"); }));
    const auto ranks = ranks_of(job.pid());
    ASSERT_EQ(ranks.size(), 2);
    ::kill(ranks[victim], SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    const ProgramResult result = job.wait();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LT(seconds, 10) << "no rank waits for its timeout";
    EXPECT_EQ(result.status, 137) << "as a shell's";
    EXPECT_THAT(result.err, AllOf(HasSubstr("rank " + std::to_string(victim) +
                                            " of 2 was ended by signal 9 (Killed)"),
                                  HasSubstr("--resume continues"), Not(HasSubstr("[ranks]"))));
    const ProgramResult resumed = run(folder.path(), {"--ranks", "2", "--resume"});
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    expect_same_figures(report_in(folder.path()), report_in(whole.path()), "resumed");
  }
}

TEST(RanksCommand, KillsARankThatHangsAndSaysWhatToDo) {
  const TempDir folder;
  write_recipe(folder.path(), std::string(kRecipe).replace(std::string(kRecipe).find("epochs: 3"),
                                                           9, "epochs: 400"));
  Program job("tare", {"run", "recipe.yaml", "--ranks", "2", "--rank-timeout", "2"}, folder.path());
  ASSERT_TRUE(wait_until([&] { return fs::exists(folder / "runs/shared/autosave-1"); }));
  const auto ranks = ranks_of(job.pid());
  ASSERT_EQ(ranks.size(), 2);
  ::kill(ranks[1], SIGSTOP);
  const ProgramResult result = job.wait();
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("rank 1 of 2 has ended without a word, or does not"),
                                HasSubstr("rank 1 of 2 does not end, so it is killed; --resume")));
  EXPECT_THAT(result.out, HasSubstr("ranks: 2, each with its part of every batch, by gloo"));
}

TEST(RanksCommand, EndsAfterASignalWhileARankHangs) {
  if (!deep()) GTEST_SKIP() << "it takes 40 s of waiting: with TARE_DEEP=1";
  const TempDir folder;
  write_recipe(folder.path(), std::string(kRecipe).replace(std::string(kRecipe).find("epochs: 3"),
                                                           9, "epochs: 4000"));
  Program job("tare", {"run", "recipe.yaml", "--ranks", "2"}, folder.path());
  ASSERT_TRUE(wait_until([&] { return fs::exists(folder / "runs/shared/autosave-1"); }));
  const auto ranks = ranks_of(job.pid());
  ASSERT_EQ(ranks.size(), 2);
  ::kill(ranks[1], SIGSTOP);
  ::kill(job.pid(), SIGINT);
  const ProgramResult result = job.wait();
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.err, HasSubstr("no rank has computed for 30 s after the signal"));
}

// Two of seven samples for each of three ranks, and one for the last.
TEST(RanksCommand, RefusesSingleSamplesForABatchNormInItsPlanToo) {
  const TempDir folder;
  std::ofstream table(folder / "table.csv");
  table << "a,b,y\n";
  for (int row = 0; row < 40; ++row) table << row << ',' << row % 7 << ',' << row % 2 << '\n';
  table.close();
  write_recipe(folder.path(),
               "name: shared\ndevice: cpu\nbatch: 7\n"
               "data: {name: csv, file: table.csv, target: y, train: 0.7, valid: 0.3}\n"
               "model: {name: tabular, hidden: [16]}\nphases: [{name: all, epochs: 1}]\n");
  const std::string reason = "batch 7 on 4 ranks makes single samples: batch norm gets one value";
  for (const char* command : {"plan", "run"}) {
    const ProgramResult refused =
        run_program("tare", {command, "recipe.yaml", "--ranks", "4"}, folder.path());
    EXPECT_EQ(refused.status, 2) << refused.out << refused.err;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(reason), HasSubstr("raise it to 8 at least")));
    EXPECT_FALSE(fs::exists(folder / "runs"));
    const ProgramResult taken =
        run_program("tare", {command, "recipe.yaml", "--ranks", "3"}, folder.path());
    EXPECT_EQ(taken.status, 0) << taken.err;
    fs::remove_all(folder / "runs");
  }
}

TEST(RanksCommand, ComesToTheSameEndAfterKillsAtAnyMoment) {
  const TempDir whole;
  write_recipe(whole.path());
  ASSERT_EQ(run(whole.path(), {"--ranks", "3"}).status, 0);
  const json expected = report_in(whole.path());
  std::mt19937 random(test_seed());
  for (int64_t kill = 0; kill < reduced<int64_t>(3, 50); ++kill) {
    const TempDir folder;
    write_recipe(folder.path());
    Program job("tare", {"run", "recipe.yaml", "--ranks", "3"}, folder.path());
    const size_t victim = random() % 3;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1500));
    const auto ranks = ranks_of(job.pid());
    if (victim < ranks.size()) ::kill(ranks[victim], SIGKILL);
    const int status = job.wait().status;
    EXPECT_TRUE(status == 0 || status == 137) << status;
    if (status != 0) {
      const ProgramResult resumed = run(folder.path(), {"--ranks", "3", "--resume=auto"});
      ASSERT_EQ(resumed.status, 0) << resumed.err;
    }
    expect_same_figures(report_in(folder.path()), expected, "kill " + std::to_string(kill));
  }
}

TEST(RanksCommand, StopsTogetherForASignal) {
  const TempDir folder;
  write_recipe(folder.path(), std::string(kRecipe).replace(std::string(kRecipe).find("epochs: 3"),
                                                           9, "epochs: 400"));
  Program job("tare", {"run", "recipe.yaml", "--ranks", "2"}, folder.path());
  ASSERT_TRUE(wait_until([&] { return fs::exists(folder / "runs/shared/autosave-1"); }));
  ::kill(job.pid(), SIGTERM);
  const ProgramResult result = job.wait();
  EXPECT_EQ(result.status, 143) << result.err;
  EXPECT_THAT(result.err, HasSubstr("stopped by a signal after the step in flight"));
  // One process continues what two have begun.
  const ProgramResult resumed = run(folder.path(), {"--resume", "phases.0.epochs=400"});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
}

TEST(RanksCommand, RefusesBadInputOnce) {
  const TempDir folder;
  write_recipe(folder.path());
  const ProgramResult zero = run(folder.path(), {"--ranks", "0"});
  EXPECT_EQ(zero.status, 2);
  const ProgramResult backend = run(folder.path(), {"--ranks", "2", "--backend", "mpi"});
  EXPECT_EQ(backend.status, 2);
  EXPECT_THAT(backend.err, HasSubstr("allowed: auto, gloo, nccl"));
  const ProgramResult on_host = run(folder.path(), {"--ranks", "2", "--backend", "nccl"});
  EXPECT_EQ(on_host.status, 2) << on_host.err;
  EXPECT_THAT(on_host.err, HasSubstr("rank 0 trains on the host, and nccl exchanges tensors of "
                                     "cards; take --backend gloo"));
  const ProgramResult key = run(folder.path(), {"--ranks", "2", "batchh=3"});
  EXPECT_EQ(key.status, 2);
  EXPECT_THAT(key.err, HasSubstr("batchh"));
  // A mistake that only the ranks find is reported once too.
  const ProgramResult classes = run(folder.path(), {"--ranks", "3", "model.classes=3"});
  EXPECT_EQ(classes.status, 2) << classes.err;
  size_t count = 0;
  for (size_t at = classes.err.find("error:"); at != std::string::npos;
       at = classes.err.find("error:", at + 1))
    ++count;
  EXPECT_EQ(count, 1) << classes.err;
  const ProgramResult early = run(folder.path(), {"--ranks", "2", "step_in_backward=true"});
  EXPECT_EQ(early.status, 2);
  EXPECT_THAT(early.err, HasSubstr("step_in_backward steps before the ranks have averaged"));
  const ProgramResult small = run(folder.path(), {"--ranks", "3", "batch=2"});
  EXPECT_EQ(small.status, 2);
  EXPECT_THAT(small.err, HasSubstr("batch is less than the ranks, of which each trains on a part "
                                   "of it, got 2; allowed: at least 3, or fewer ranks"));
  EXPECT_FALSE(fs::exists(folder / "runs"));
  const ProgramResult inside = run_program(
      "/usr/bin/env",
      {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1",
       fs::absolute(program_path("tare")).string(), "run", "recipe.yaml", "--ranks", "2"},
      folder.path());
  EXPECT_EQ(inside.status, 2);
  EXPECT_THAT(inside.err, HasSubstr("this process is a rank already, which torchrun has started"));
  const ProgramResult outside =
      run_program("/usr/bin/env",
                  {"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1",
                   fs::absolute(program_path("tare")).string(), "run", "recipe.yaml"},
                  folder.path());
  EXPECT_EQ(outside.status, 2);
  EXPECT_THAT(outside.err, HasSubstr("RANK must be a whole number, got 2; allowed: 0 to 1"));
}

TEST(RanksCommand, RefusesRanksWithDifferentSettings) {
  const TempDir folder;
  write_recipe(folder.path());
  const std::string port = std::to_string(free_port());
  const auto rank = [&](const std::string& number, const std::string& batch) {
    return std::vector<std::string>{"RANK=" + number,
                                    "WORLD_SIZE=2",
                                    "MASTER_ADDR=127.0.0.1",
                                    "MASTER_PORT=" + port,
                                    fs::absolute(program_path("tare")).string(),
                                    "run",
                                    "recipe.yaml",
                                    "batch=" + batch};
  };
  Program first("/usr/bin/env", rank("0", "16"), folder.path());
  Program second("/usr/bin/env", rank("1", "32"), folder.path());
  for (Program* one : {&first, &second}) {
    const ProgramResult result = one->wait();
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr("rank 1 has another recipe than rank 0"));
  }
}

TEST(RanksCommand, IsStartedByOpenMpi) {
  if (!fs::exists("/usr/bin/mpirun")) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  const TempDir folder, alone;
  write_recipe(folder.path());
  write_recipe(alone.path());
  ASSERT_EQ(run(alone.path()).status, 0);
  const auto start = [&](const std::string& ranks, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--allow-run-as-root",
                                       "--oversubscribe",
                                       "-n",
                                       ranks,
                                       "--",
                                       fs::absolute(program_path("tare")).string(),
                                       "run",
                                       "recipe.yaml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("/usr/bin/mpirun", arguments, folder.path());
  };
  const ProgramResult result = start("2", {});
  ASSERT_EQ(result.status, 0) << result.err;
  expect_same_figures(report_in(folder.path()), report_in(alone.path()), "mpirun");
  for (const char* mistake : {"bach=8", "step_in_backward=true", "batch=2"}) {
    const ProgramResult refused = start("3", {mistake, "--overwrite"});
    EXPECT_NE(refused.status, 0);
    const std::string error = "[tare] error: ";
    const size_t first = refused.err.find(error);
    EXPECT_NE(first, std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find(error, first + 1), std::string::npos)
        << mistake << " is one message: " << refused.err;
  }
}

}  // namespace
}  // namespace tare::testing

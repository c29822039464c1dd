// Programs of tare::Fork's: a small one, fork_program.cpp, in a folder of its own.
#include "tare/furcate/fork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "support/environment.h"
#include "support/program.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/furcate/fork_runner.h"

namespace tare::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class ForkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    io::make_directories(folder_ / "foo");
    for (const char* name : {"e.train.1", "e.train.0", "e.valid", "other"})
      io::write_atomically(folder_ / "foo" / name, "");
  }
  /// Runs the program with `keys` beside what every configuration needs.
  ProgramResult run(const std::string& keys, const std::vector<std::string>& words = {}) const {
    write(keys);
    return run_program("fork_program", words, folder_.path());
  }
  void write(const std::string& keys, const std::string& data_dir = "foo/") const {
    io::write_atomically(folder_ / "config.json",
                         R"({"data_name": "e", "optimizer_name": "SGD", "epochs": )" +
                             std::to_string(epochs_) + R"(, "data_dir": ")" + data_dir +
                             R"(", "meta": )" + meta_ + ", " + keys + "}");
  }
  [[nodiscard]] std::string text(const std::string& file) const {
    return io::read_text(folder_ / "logs" / file);
  }
  [[nodiscard]] json read(const std::string& file) const { return json::parse(text(file)); }
  /// Lines of the file that begin with `word`.
  [[nodiscard]] std::vector<std::string> lines(const std::string& file,
                                               const std::string& word) const {
    std::istringstream all(text(file));
    std::vector<std::string> some;
    for (std::string line; std::getline(all, line);)
      if (line.starts_with(word)) some.push_back(line.substr(word.size()));
    return some;
  }
  TempDir folder_;
  std::string meta_ = R"({"allow_cpu": true})";
  int epochs_ = 2;
};

constexpr const char* kTwo = R"("batch_size": [8, 16], "factor": 0.5, "verbose": 1)";

TEST_F(ForkTest, CallsItsMethodsInFurcatesOrder) {
  const auto result = run(kTwo);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("call get_available_gpu_indices\n"));
  const std::string log = "e0_foo_bs8/e0.log";
  EXPECT_THAT(
      lines(log, "call "),
      ElementsAre("set_visible_gpus", "get_filepaths", "get_datasets", "get_model", "get_metrics",
                  "get_optimizer", "get_loss", "get_callbacks", "model_compile", "model_summary",
                  "model_fit", "model_evaluate", "model_save", "save_metric accuracy",
                  "plot_metric accuracy", "save_metric loss", "plot_metric loss", "save_history"));
  EXPECT_THAT(lines(log, "files "), ElementsAre("2 1 0"));
  EXPECT_THAT(lines(log, "shape "), ElementsAre("3"));
  EXPECT_THAT(text(log), HasSubstr("layer groups"));
  EXPECT_THAT(text(log), Not(HasSubstr("valid_loss"))) << "no table of epochs at verbose 1";
}

TEST_F(ForkTest, EachRunLeavesFurcatesFiles) {
  ASSERT_EQ(run(kTwo).status, 0);
  for (const std::string name : {"e0_foo_bs8", "e1_foo_bs16"}) {
    for (const char* file : {"config.json", "history.json", "run_data.json", "model.pt",
                             "accuracy.svg", "accuracy.png", "loss.svg", "loss.png"})
      EXPECT_TRUE(fs::exists(folder_ / "logs" / name / file)) << name << '/' << file;
    EXPECT_EQ(text(name + '/' + name.substr(0, 2) + ".err"), "");
  }
  EXPECT_THAT(text("run_data.csv"),
              ::testing::StartsWith("log_dir,learning_rate,verbose,cache,seed,prefetch,meta,"));
  EXPECT_THAT(text("run_data.csv"), HasSubstr(",gpu_id,run_start_time,"));
  EXPECT_THAT(text("run_data.csv"), HasSubstr("\nlogs/e0_foo_bs8,0.001,"));
  EXPECT_THAT(text("run_data.csv"), HasSubstr("\nlogs/e1_foo_bs16,0.001,"));
  const std::string log = text("furcate.log");
  EXPECT_THAT(log, HasSubstr(": furcate] e0_foo_bs8 starts\n"));
  EXPECT_THAT(log, HasSubstr("; 1 run remains, estimated total time remaining "));
  EXPECT_THAT(log, HasSubstr(": furcate] e1_foo_bs16 has ended, complete, after "));
  EXPECT_THAT(log, HasSubstr("; 0 runs remain"));
}

TEST_F(ForkTest, HelpRunsNothing) {
  for (const char* word : {"--help", "-h"}) {
    const auto result = run(kTwo, {word});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, HasSubstr("usage: "));
    EXPECT_FALSE(fs::exists(folder_ / "logs"));
  }
}

TEST_F(ForkTest, TheRunsDataAreTheConfigurationAndWhatCameOut) {
  ASSERT_EQ(run(kTwo).status, 0);
  const json all = read("e1_foo_bs16/run_data.json");
  EXPECT_EQ(all["batch_size"], 16);
  EXPECT_EQ(all["factor"], 0.5);
  EXPECT_EQ(all["learning_rate"], 0.001);
  EXPECT_EQ(all["gpu_id"], -1);
  EXPECT_EQ(all["log_dir"], "logs/e1_foo_bs16");
  EXPECT_EQ(all["train_prefix"], "e.train");
  EXPECT_EQ(all["meta"]["allow_cpu"], true);
  const json& data = all["meta"]["data"];
  const json history = read("e1_foo_bs16/history.json");
  ASSERT_EQ(history["loss"].size(), 2U);
  ASSERT_EQ(history["val_accuracy"].size(), 2U);
  EXPECT_EQ(data["train_loss"], history["loss"][1]);
  EXPECT_EQ(data["val_loss"], history["val_loss"][1]);
  EXPECT_EQ(data["val_accuracy"], history["val_accuracy"][1]);
  EXPECT_EQ(data["epochs"], 2);
  EXPECT_GT(data["peak_bytes"], 1000);
  EXPECT_EQ(data["mine_loss"], 7) << "what a method adds";
  EXPECT_EQ(data["results"].size(), 2U);
  EXPECT_LE(data["start_time"], data["end_time"]);
  EXPECT_EQ(data["start_time_string"].get<std::string>().size(), 19U);
  for (const char* key : {"end_time_string", "total_time", "total_time_string"})
    EXPECT_TRUE(data.contains(key)) << key;
}

TEST_F(ForkTest, AConfigurationWithoutAListIsOneRun) {
  const auto result = run(R"("batch_size": 8, "verbose": 0)");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(fs::exists(folder_ / "logs/e0_foo/run_data.json"));
  EXPECT_THAT(lines("e0_foo/e0.log", ""), Not(::testing::Contains(HasSubstr("reclaimed"))));
}

TEST_F(ForkTest, WhatIsCompleteIsNotRunAgain) {
  ASSERT_EQ(run(kTwo).status, 0);
  EXPECT_THAT(run(kTwo).out, HasSubstr("2 complete, 0 failed, 0 waiting; 0 started"));
  const auto third = run(R"("batch_size": [16.0, 8, 32], "factor": 0.50, "verbose": 0)");
  EXPECT_THAT(third.out, HasSubstr("3 complete, 0 failed, 0 waiting; 1 started"))
      << "written otherwise, they are the same runs; " << third.err;
  EXPECT_TRUE(fs::exists(folder_ / "logs/e2_foo_bs32/run_data.json"));
  EXPECT_THAT(run(R"("batch_size": [8], "factor": 0.25)").out, HasSubstr("; 1 started"));
}

TEST_F(ForkTest, ARunThatFailsIsRecordedAndTheOthersGoOn) {
  const auto result = run(R"("batch_size": [33, 8])");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, HasSubstr("1 complete, 1 failed"));
  EXPECT_THAT(result.out, HasSubstr("e0_foo_bs33  failed: exit 2; see logs/e0_foo_bs33"));
  EXPECT_THAT(text("e0_foo_bs33/e0.err"), HasSubstr("33"));
  EXPECT_FALSE(fs::exists(folder_ / "logs/e0_foo_bs33/run_data.json"));
  EXPECT_THAT(text("furcate.log"), HasSubstr("e0_foo_bs33 has ended, exit 2, after "));
  EXPECT_TRUE(fs::exists(folder_ / "logs/e1_foo_bs8/run_data.json"));
}

TEST_F(ForkTest, AKeyThatThereIsNotIsNamedWithTheNearest) {
  EXPECT_EQ(run(R"("batch_size": 8, "ask": "learning_rat")").status, 1);
  EXPECT_THAT(text("e0_foo/e0.err"),
              HasSubstr("learning_rat is not a key of the configuration (did you mean "
                        "\"learning_rate\"?)"));
  EXPECT_EQ(run(R"("batch_size": 8, "ask": "optimizer_name")").status, 1);
  EXPECT_THAT(text("e1_foo/e1.err"), HasSubstr("optimizer_name must be a number"));
}

TEST_F(ForkTest, AFolderOfDataThatIsNotThereFailsTheRun) {
  write(R"("batch_size": 8)", "nowhere");
  EXPECT_EQ(run_program("fork_program", {}, folder_.path()).status, 1);
  EXPECT_THAT(text("e0_nowhere/e0.err"),
              HasSubstr("[fork.get_filepaths] nowhere: No such file or directory"));
}

TEST_F(ForkTest, WithoutValidationTheTrainingIsCompared) {
  ASSERT_EQ(run(R"("batch_size": 8, "valid": 0)").status, 0);
  EXPECT_FALSE(read("e0_foo/history.json").contains("val_loss"));
}

TEST_F(ForkTest, WhatWasStoppedStartsAgainFromItsBeginning) {
  write(R"("batch_size": 8, "wait_for": "go")");
  for (const int signal : {SIGTERM, SIGKILL}) {
    Program program("fork_program", {}, folder_.path());
    while (!fs::exists(folder_ / "logs/e0_foo/e0.log") ||
           text("e0_foo/e0.log").find("call get_datasets") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(program.pid(), signal);
    EXPECT_EQ(program.wait().status, 128 + signal);
    EXPECT_FALSE(fs::exists(folder_ / "logs/e0_foo/run_data.json"));
    io::remove_all(folder_ / "logs/e0_foo/e0.log");
  }
  io::write_atomically(folder_ / "go", "");
  const auto result = run_program("fork_program", {}, folder_.path());
  EXPECT_THAT(result.out, HasSubstr("1 complete, 0 failed, 0 waiting; 1 started"));
  EXPECT_EQ(lines("e0_foo/e0.log", "call get_model").size(), 1U);
}

// Its weights, losses and metrics are those of one that was not stopped.
TEST_F(ForkTest, ACellThatIsStoppedContinuesFromItsLastEpoch) {
  const std::string keys = R"("batch_size": 8, "verbose": 0, "prefetch": 0)";
  epochs_ = 6;
  for (const int signal : {SIGKILL, SIGTERM}) {
    const std::string seed = ", \"seed\": " + std::to_string(signal);
    write(keys + seed + R"(, "pause_after": 3)");
    const fs::path run = folder_ / "logs" / (signal == SIGKILL ? "e0_foo" : "e1_foo");
    Program program("fork_program", {}, folder_.path());
    while (!fs::exists(run / "paused")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(program.pid(), signal);
    EXPECT_EQ(program.wait().status, 128 + signal);
    EXPECT_FALSE(fs::exists(run / "run_data.json"));
    const auto result = run_program("fork_program", {}, folder_.path());
    EXPECT_THAT(result.out, HasSubstr("1 complete, 0 failed, 0 waiting; 1 started"));
    EXPECT_FALSE(fs::exists(run / "autosave-0"));
    write(keys + seed + R"(, "pause_after": 99, "log_dir": "whole")");
    ASSERT_EQ(run_program("fork_program", {}, folder_.path()).status, 0);
    const fs::path whole = folder_ / "whole" / run.filename().string().replace(1, 1, "0");
    const json stopped = json::parse(io::read_text(run / "history.json"));
    EXPECT_EQ(stopped["loss"].size(), 6U);
    EXPECT_EQ(stopped, json::parse(io::read_text(whole / "history.json")));
    EXPECT_EQ(io::read_text(run / "model.pt"), io::read_text(whole / "model.pt"));
    io::remove_all(folder_ / "whole");
  }
}

TEST_F(ForkTest, AModelBehindAPreprocessThatNobodyKnowsIsACheckpoint) {
  ASSERT_EQ(run(R"("batch_size": 8, "unknown": true)").status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "logs/e0_foo/model/model.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "logs/e0_foo/model.pt"));
  EXPECT_THAT(text("e0_foo/e0.err"), HasSubstr("with preprocess_transforms() it is a bundle"));
}

TEST_F(ForkTest, TfRecordFilesAreItsData) {
  const std::string file = fs::path(TARE_GOLDEN) / "examples.tfrecord.gz";
  for (const char* reads : {"2", "\"auto\"", "null"}) {
    io::remove_all(folder_ / "logs");
    ASSERT_EQ(
        run(R"("batch_size": 8, "records": ")" + file + R"(", "num_parallel_reads": )" + reads)
            .status,
        0);
    EXPECT_THAT(lines("e0_foo/e0.log", "records "), ElementsAre("4 6"));
  }
  io::remove_all(folder_ / "logs");
  EXPECT_EQ(run(R"("batch_size": 8, "num_parallel_reads": 0, "records": ")" + file + '"').status,
            1);
  EXPECT_THAT(text("e0_foo/e0.err"), HasSubstr("parallel_reads must be >= 1"));
}

TEST_F(ForkTest, AnEditedListIsFollowedWhileItRuns) {
  write(R"("batch_size": [8], "wait_for": "go")");
  Program program("fork_program", {}, folder_.path());
  while (!fs::exists(folder_ / "logs/e0_foo_bs8/e0.log"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  write(R"("batch_size": [8, 16], "wait_for": "go")");
  while (program.read("err").find("edited sweep is in force") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  io::write_atomically(folder_ / "go", "");
  const auto result = program.wait();
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("2 complete, 0 failed, 0 waiting; 2 started"));
  EXPECT_EQ(read("e1_foo_bs16/run_data.json")["batch_size"], 16);
}

TEST_F(ForkTest, ACacheReadsEachSampleOnceAndIsProcessedInEveryEpoch) {
  ASSERT_EQ(run(R"("batch_size": [8], "framework": "tf", "cache": [true, false])").status, 0);
  const auto count = [&](const std::string& run, const std::string& word) {
    return std::stoi(lines(run + '/' + run.substr(0, 2) + ".log", word).at(0));
  };
  constexpr int kSamples = 64, kTrainedOrChecked = 2 * (32 + 16) + 16;
  const std::string cached = "e0_foo_cTrue_bs8", plain = "e1_foo_cFalse_bs8";
  EXPECT_EQ(count(cached, "read "), kSamples);
  EXPECT_GE(count(plain, "read "), kTrainedOrChecked);
  EXPECT_EQ(count(cached, "processed "), count(plain, "processed "));
  EXPECT_GE(count(cached, "processed "), kTrainedOrChecked);
}

TEST_F(ForkTest, ABufferOfOneSampleKeepsTheOrder) {
  ASSERT_EQ(run(R"("batch_size": 8, "num_parallel_calls": 0,
      "shuffle_buffer_size": [0, 1, 2, 100, null])")
                .status,
            0);
  const auto epochs_are_alike = [&](const std::string& run) {
    const auto order = lines(run + '/' + run.substr(0, 2) + ".log", "order ");
    EXPECT_EQ(order.size(), 8U) << "two epochs of 32 samples";
    return std::equal(order.begin(), order.begin() + 4, order.begin() + 4, order.end());
  };
  EXPECT_TRUE(epochs_are_alike("e0_foo_sbs0"));
  EXPECT_TRUE(epochs_are_alike("e1_foo_sbs1"));
  for (const char* run : {"e2_foo_sbs2", "e3_foo_sbs100", "e4_foo_sbsNone"})
    EXPECT_FALSE(epochs_are_alike(run)) << run;
}

TEST_F(ForkTest, WhatHoldsMemoryIsInTheRunsLog) {
  meta_ = R"({"allow_cpu": true, "mem_trace": {"enabled": true, "delay": 1, "trace": 2}})";
  write(R"("batch_size": 8, "verbose": 0, "keep": 1000003, "wait_for": "go")");
  Program program("fork_program", {}, folder_.path());
  const fs::path log = folder_ / "logs/e0_foo/e0.log";
  while (!fs::exists(log) || io::read_text(log).find("- Snapshot -") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  io::write_atomically(folder_ / "go", "");
  ASSERT_EQ(program.wait().status, 0);
  const std::string all = text("e0_foo/e0.log");
  size_t at = 0;
  for (const char* title : {"Start", "Snapshot", "Before the Learner is destroyed", "End"}) {
    at = all.find(": mem_trace] ------ " + std::string(title) + " ------\n", at);
    ASSERT_NE(at, std::string::npos) << title;
  }
  const std::string first = all.substr(all.find("- Snapshot -"));
  for (const char* line :
       {"] gpu_stats id=0, name=NVIDIA \\x1b[31mH200, mem_used=40960 MiB, mem_total=102400 MiB, "
        "mem_util=40 %, volatile_gpu=97 %, temp=54 C\n",
        "mem_used=-, mem_total=-, mem_util=-, volatile_gpu=97 %, temp=-\n",
        "] host_stats resident=", ": size=1,000,003 B (+1,000,003 B), count=1 (+1), average=",
        "] top_current i=1, stat=cpu, phase none, ",
        ": size=1,000,003 B, count=1, average=1,000,003 B\n",
        "] traceback memory_blocks=1, size_kB=976, cpu, phase none\n", "get_datasets"})
    EXPECT_THAT(first, HasSubstr(line));
  EXPECT_THAT(text("furcate.log"), HasSubstr(": furcate] mem_trace of e0_foo\n"));
  EXPECT_THAT(text("furcate.log"), HasSubstr(": mem_trace] ------ Snapshot ------\n"));
  const auto before = text("furcate.log").size();
  meta_ = R"({"allow_cpu": true, "mem_trace": {"delay": 1}})";
  ASSERT_EQ(run(R"("batch_size": 16)").status, 0);
  EXPECT_THAT(text("e1_foo/e1.log"), Not(HasSubstr("mem_trace")));
  EXPECT_THAT(text("furcate.log").substr(before), Not(HasSubstr("mem_trace")));
}

// The stand-in for NVIDIA's library has three cards, and knows the memory of one.
TEST_F(ForkTest, ARunUsesACardOfTheIndicesThatHasMemoryLeft) {
  meta_ = "{}";
  const ScopedVariable gpus("TARE_TEST_GPUS", "1");
  const ScopedVariable visible("CUDA_VISIBLE_DEVICES", std::nullopt);
  const auto result = run(R"("batch_size": 8)");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("GPU 5 is skipped"));
  EXPECT_EQ(read("e0_foo/run_data.json")["gpu_id"], 0);
  EXPECT_THAT(lines("e0_foo/e0.log", "visible "), ElementsAre("GPU-0a0a"));
  const ScopedVariable hidden("CUDA_VISIBLE_DEVICES", "1");
  const auto none = run(R"("batch_size": 16)");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no GPU with memory left, and meta.allow_cpu"));
}

TEST_F(ForkTest, SaysWhatIsWrongWithItsConfiguration) {
  EXPECT_EQ(run(R"("batch_size": 8, "log_dir": ["a", "b"])").status, 2);
  const auto no_gpu = [&] {
    io::write_atomically(folder_ / "config.json", R"({"data_name": "e", "epochs": 2,
        "data_dir": "foo", "batch_size": 8})");
    return run_program("fork_program", {}, folder_.path());
  }();
  EXPECT_EQ(no_gpu.status, 2);
  EXPECT_THAT(no_gpu.err, HasSubstr("meta.allow_cpu is false; with true the runs use the CPU"));
  io::remove_all(folder_ / "config.json");
  EXPECT_EQ(run_program("fork_program", {}, folder_.path()).status, 2);
  EXPECT_EQ(run_program("fork_program", {"--name", "x"}, folder_.path()).status, 2);
}

TEST(ForkArguments, AreAllThreeOfARunOrNone) {
  const auto given =
      fork_arguments({"p", "mine", "--config", "c.json", "--name", "e7", "--id", "7"});
  EXPECT_EQ(given.config, "c.json");
  EXPECT_EQ(given.name, "e7");
  EXPECT_EQ(given.id, 7);
  EXPECT_TRUE(given.is_run());
  EXPECT_FALSE(fork_arguments({"p", "--config", "c.json"}).is_run());
  EXPECT_THROW((void)fork_arguments({"p", "--config"}), ConfigError);
  EXPECT_THROW((void)fork_arguments({"p", "--name", "e7", "--id", "7"}), ConfigError);
  EXPECT_THROW((void)fork_arguments({"p", "--config", "c", "--id", "7"}), ConfigError);
  EXPECT_THROW((void)fork_arguments({"p", "--config", "c", "--name", "e", "--id", "x"}),
               ConfigError);
}

TEST(ForkOutcome, IsThatOfTheRunsData) {
  const TempDir folder;
  using search::TrialState;
  const auto outcome = [&](const std::string& run_data, launch::ChildEnd end = {}) {
    if (!run_data.empty()) io::write_atomically(folder / "run_data.json", run_data);
    return outcome_of_fork(folder.path(), end);
  };
  EXPECT_EQ(outcome("").reason, "no run_data.json");
  EXPECT_EQ(outcome("{").reason, "no results in run_data.json");
  EXPECT_EQ(outcome(R"({"meta": {"data": {"val_loss": null}}})").reason, "val_loss is NaN");
  const std::string good =
      R"({"meta": {"data": {"val_loss": 0.5, "peak_bytes": 9, "total_time": 2.5}}})";
  io::write_atomically(folder / "history.json", R"({"val_loss": [0.9, null, 0.6]})");
  const auto complete = outcome(good);
  EXPECT_EQ(complete.state, TrialState::complete);
  ASSERT_EQ(complete.values.size(), 3U);
  EXPECT_EQ(complete.values.back(), 0.5);
  EXPECT_EQ(complete.peak_bytes, 9);
  EXPECT_EQ(complete.seconds, 2.5);
  EXPECT_EQ(outcome(good, {.exit_code = 1}).state, TrialState::failed);
  EXPECT_EQ(outcome(good, {.exit_code = 3}).reason, "out of memory");
  EXPECT_EQ(outcome(good, {.exit_code = 0, .signal = 9}).reason, "signal 9");
}

TEST(ForkConfig, ReadsWhatItKnows) {
  const auto read = [](const std::string& text) {
    return read_fork_config(config::parse_text(text, "c"));
  };
  EXPECT_EQ(read("{batch_size: 4, epochs: 1, prefetch: auto, own: [1]}").prefetch, -1);
  EXPECT_EQ(read("{batch_size: 4, epochs: 1, gpu_id: null}").gpu_id, -1);
  EXPECT_EQ(read("{batch_size: 4, epochs: 1, framework: tf}").shuffle_buffer_size, std::nullopt);
  EXPECT_EQ(read("{batch_size: 4, epochs: 1, shuffle_buffer_size: 0}").shuffle_buffer_size, 0);
  EXPECT_THROW((void)read("{batch_size: 4, epochs: 1, verbose: 3}"), ConfigError);
  EXPECT_THROW((void)read("{batch_size: 4, epochs: 1, shuffle_buffer_size: -1}"), ConfigError);
  EXPECT_THROW((void)read("{batch_size: no}"), ConfigError);
}

}  // namespace
}  // namespace tare::testing

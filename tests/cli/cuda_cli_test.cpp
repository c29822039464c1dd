// The program `tare` on cards: on real ones, and in every test run on the CUDA stand-in.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "support/card_folder.h"
#include "support/files.h"
#include "support/program.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const CardRecipe kRecipe{.count = 200,
                         .model = "{name: resnet9, width: 8}",
                         .phases = "[{name: head, freeze_to: -1}, {name: all, epochs: 2}]"};

class CardCli : public ::testing::Test {
 protected:
  void SetUp() override {
    doctor_ = run_program("tare", {"doctor"}).out;
    if (doctor_.find("cuda:0") == std::string::npos)
      GTEST_SKIP() << "there is no card:\n" << doctor_;
    ::setenv("STAND_IN_SHARED", folder_.shared().c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"STAND_IN_SHARED", "STAND_IN_BYTES"}) ::unsetenv(name);
  }
  [[nodiscard]] ProgramResult tare(const std::vector<std::string>& arguments) const {
    return folder_.tare(arguments);
  }
  [[nodiscard]] nlohmann::json json_of(const fs::path& file) const {
    return nlohmann::json::parse(content_of(folder_.path() / file));
  }
  [[nodiscard]] bool has_two_cards() const { return doctor_.find("cuda:1") != std::string::npos; }

  std::string doctor_;
  CardFolder folder_{kRecipe};
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Expects of each phase of a report that it took what was planned.
void expect_as_planned(const nlohmann::json& report) {
  ASSERT_FALSE(report["phases"].empty());
  for (const auto& phase : report["phases"])
    EXPECT_EQ(phase["planned_peak_bytes"], phase["peak_bytes"]) << phase["name"];
}

/// Returns the numbers between the commas of a row.
std::vector<double> numbers_of(const std::string& row) {
  std::vector<double> numbers;
  std::istringstream fields(row);
  for (std::string field; std::getline(fields, field, ',');)
    numbers.push_back(std::strtod(field.c_str(), nullptr));
  return numbers;
}

TEST_F(CardCli, TopShowsTheCards) {
  const auto top = tare({"top", "--json"});
  ASSERT_EQ(top.status, 0) << top.err;
  EXPECT_THAT(top.out, HasSubstr("cuda:0"));
}

TEST_F(CardCli, TopShowsTheProcessesOfACard) {
  Program run("tare", {"run", "card.yaml", "data.count=2000", "phases=[{name: all, epochs: 9999}]"},
              folder_.path());
  const auto shown = [&]() -> nlohmann::json {
    const auto top = nlohmann::json::parse(tare({"top", "--json"}).out);
    for (const auto& device : top["devices"])
      for (const auto& process : device["processes"])
        if (device["id"] == "cuda:0" && process["id"] == run.pid()) return process;
    return {};
  };
  nlohmann::json process;
  for (int i = 0; i < 300 && process.is_null(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    process = shown();
  }
  ::kill(run.pid(), SIGKILL);
  (void)run.wait();
  ASSERT_FALSE(process.is_null()) << run.read("err");
  EXPECT_GT(process["bytes"].get<int64_t>(), 0);
  EXPECT_TRUE(shown().is_null()) << "the process has ended";
}

TEST_F(CardCli, EveryPhasePeaksAsPlanned) {
  const auto plan = tare({"plan", "card.yaml"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("card on cuda:0"));
  const auto run = tare({"run", "card.yaml", "--json", "run.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("after destroy: 0 B tracked above the start"));
  expect_as_planned(json_of("run.json"));
}

TEST_F(CardCli, RecordedStepsPeakAsPlanned) {
  for (const char* option : {"batch=16", "micro_batch=5", "phases.1.schedule=one_cycle"}) {
    const auto run =
        tare({"run", "card.yaml", "graph=true", option, "--overwrite", "--json", "g.json"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("steps were queued as a whole")) << option;
    EXPECT_THAT(run.out, HasSubstr("after destroy: 0 B tracked above the start")) << option;
    expect_as_planned(json_of("g.json"));
  }
}

TEST_F(CardCli, ABenchmarkSaysWhereTheStepsTimeGoes) {
  if (kernels_compute() && is_stand_in()) return;  // the processor takes minutes for its products
  const auto bench = tare({"bench", "mlp"});
  ASSERT_EQ(bench.status, 0) << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("matrix products"));
  EXPECT_THAT(tare({"bench", "mlp", "graph=true"}).err, HasSubstr("cannot be timed"));
}

TEST_F(CardCli, ADividedModelIsPlannedAndReportedCardByCard) {
  if (!has_two_cards()) GTEST_SKIP() << "there is one card";
  const std::vector<std::string> settings{"card.yaml", "device=auto", "stages=auto",
                                          "micro_batch=8"};
  const auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), settings.begin(), settings.end());
    words.insert(words.end(), more.begin(), more.end());
    return tare(words);
  };
  const auto plan = with({"plan"}, {"--json", "plan.json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, ContainsRegex("cuda:1, .*: start .*, planned peak .*, reserved"));
  const auto run = with({"run"}, {"--json", "run.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("stages: cuda:0: "));
  EXPECT_THAT(run.out, HasSubstr("after destroy: 0 B tracked above the start"));
  const auto planned = json_of("plan.json"), report = json_of("run.json");
  EXPECT_EQ(report["device"], "cuda:0, cuda:1");
  for (size_t i = 0; i < report["phases"].size(); ++i) {
    const auto& phase = report["phases"][i];
    ASSERT_EQ(phase["devices"].size(), 2U) << phase["name"];
    for (size_t card = 0; card < 2; ++card) {
      const auto& measured = phase["devices"][card];
      EXPECT_EQ(measured["device"], "cuda:" + std::to_string(card));
      EXPECT_EQ(measured["residual_bytes"], 0);
      EXPECT_GT(measured["peak_bytes"], 0);
      const double peak = measured["peak_bytes"];
      EXPECT_NEAR(planned["phases"][i]["stages"][card]["peak_bytes"], peak, 0.02 * peak)
          << phase["name"] << " on card " << card;
    }
  }
}

TEST_F(CardCli, ADividedRunIsRefusedWhatItCannotDo) {
  if (!has_two_cards()) GTEST_SKIP() << "there is one card";
  const auto one_record = tare(
      {"run", "card.yaml", "device=auto", "stages=[cuda:0, cuda:1]", "--record-memory", "record"});
  EXPECT_EQ(one_record.status, 2);
  EXPECT_THAT(one_record.err, HasSubstr("a record of allocations is of one device"));
  const auto ranks = tare({"plan", "card.yaml", "device=auto", "stages=auto", "--ranks", "2"});
  EXPECT_EQ(ranks.status, 2);
  EXPECT_THAT(ranks.err, HasSubstr("stages divide the model of one process"));
}

// The optimizer's state, which the first step makes, stands beside a whole batch in epoch 2 only.
TEST_F(CardCli, PhasesWithOneWholeBatchPeakAsPlanned) {
  for (const char* epochs : {"1", "2"}) {
    const auto run = tare({"run", "card.yaml", "batch=100",
                           std::string("phases.1.epochs=") + epochs, "--json", "run.json"});
    ASSERT_EQ(run.status, 0) << run.err;
    expect_as_planned(json_of("run.json"));
  }
}

// Weights of some MiB and states of earlier phases lie in blocks that are not split.
TEST_F(CardCli, PhasesOfWideFrozenWeightsPeakAsPlanned) {
  for (const std::string weights : {"fp8", "as_is"})
    for (const std::string precision : {"fp32", "bf16-true"})
      for (const std::string clears : {"true", "false"}) {
        const std::string end = ", clear_opt: " + clears + "}, ";
        const auto run =
            tare({"run", "card.yaml", "--overwrite", "model.width=128", "data.count=40", "batch=16",
                  "stop_on_nan=false", "frozen_weights=" + weights, "precision=" + precision,
                  "phases=[{name: a, freeze_to: -1" + end + "{name: b" + end +
                      "{name: c, freeze_to: -1" + end + "{name: d, freeze_to: 1}]",
                  "--json", "run.json"});
        ASSERT_EQ(run.status, 0) << run.err;
        SCOPED_TRACE(weights + ' ' + precision + ' ' + clears);
        expect_as_planned(json_of("run.json"));
      }
}

// The last step has no batch ahead of it.
TEST_F(CardCli, PhasesOfFewStepsPeakAsPlanned) {
  for (const char* workers : {"0", "1", "2"})
    for (const char* model : {"model={name: mlp}", "model={name: resnet9, width: 8}"})
      for (const char* micro_batch : {"auto", "7"}) {
        const auto run =
            tare({"run", "card.yaml", model, std::string("workers=") + workers,
                  std::string("micro_batch=") + micro_batch, "batch=50",
                  "phases=[{name: one, duration: {steps: 1}}, {name: two, duration: {steps: 2}},"
                  "{name: three, duration: {steps: 3}}, {name: four, duration: {steps: 4}},"
                  "{name: epochs, epochs: 2}]",
                  "--json", "run.json"});
        ASSERT_EQ(run.status, 0) << run.err;
        SCOPED_TRACE(std::string(model) + " workers " + workers + " micro-batch " + micro_batch);
        expect_as_planned(json_of("run.json"));
      }
}

// The search has more steps than its phase.
TEST_F(CardCli, PhasesOfOneStepWithASearchPeakAsPlanned) {
  if (!kernels_compute()) return;  // without losses a search finds nothing
  for (const char* batch : {"24", "50"}) {
    const auto run =
        tare({"run", "card.yaml", "model={name: mlp}", "workers=1", std::string("batch=") + batch,
              "phases=[{name: found, duration: {steps: 1}, lr: find}]", "--json", "run.json"});
    ASSERT_EQ(run.status, 0) << run.err;
    expect_as_planned(json_of("run.json"));
  }
}

// A run in which the allocator returns its cache in two steps in a row takes smaller parts, unless
// it begins with those of the plan.
TEST_F(CardCli, NoRunTakesSmallerPartsThanPlanned) {
  if (!is_stand_in())
    GTEST_SKIP() << "only the memory of the stand-in is as small as the test asks";
  struct Card {
    const char* capability;
    int64_t mebibytes, batch;
  };
  bool returned = false;
  for (const auto& [capability, mebibytes, batch_of_plan] :
       {Card{"80", 24, 16}, Card{"80", 28, 16}, Card{"90", 36, 16}, Card{"90", 40, 16},
        Card{"80", 50, 58}}) {  // full where the workspaces of products are kept
    const ScopedVariable card("STAND_IN_SM", std::string(capability));
    const ScopedVariable bytes("STAND_IN_BYTES", std::to_string(mebibytes << 20));
    SCOPED_TRACE(std::string(capability) + ' ' + std::to_string(mebibytes) + " MiB");
    const auto plan = tare({"plan", "card.yaml", "data.size=28",
                            "batch=" + std::to_string(batch_of_plan), "--json", "plan.json"});
    if (plan.status == 3) continue;  // not even one sample fits
    ASSERT_EQ(plan.status, 0) << plan.err;
    const nlohmann::json planned = json_of("plan.json");
    const auto largest = planned["largest_batch"].get<int64_t>();
    for (const auto& phase : planned["phases"])
      returned = returned || phase["returns_cache"].get<bool>();
    for (const int64_t batch : {batch_of_plan, largest}) {
      if (batch == 0) continue;
      const auto run = tare({"run", "card.yaml", "stop_on_nan=false", "data.size=28",
                             "batch=" + std::to_string(batch)});
      ASSERT_EQ(run.status, 0) << batch << run.err;
      EXPECT_THAT(run.err, Not(HasSubstr("had to return its cache"))) << batch;
    }
  }
  EXPECT_TRUE(returned) << "no card of this test was full enough";
}

// Convolutions are done once on the card that is planned for. A card elsewhere has the bound only.
TEST_F(CardCli, WorkspacesOfConvolutionsAreMeasuredOnTheCard) {
  if (!is_stand_in()) GTEST_SKIP() << "only the stand-in has a workspace of a size that is known";
  const auto peaks = [&](const char* bytes, const char* device) {
    const ScopedVariable workspace("STAND_IN_CUDNN_BYTES", std::string(bytes));
    const auto plan = tare({"plan", "card.yaml", "--device", device, "--json", "plan.json"});
    EXPECT_EQ(plan.status, 0) << plan.err;
    const bool counted = std::string(device) == "cuda:0";
    EXPECT_EQ(plan.out.find("at least: without the workspaces of cuDNN's convolutions") ==
                  std::string::npos,
              counted)
        << plan.out;
    EXPECT_EQ(plan.out.find("at most: ") == std::string::npos, counted) << plan.out;
    const auto phase = json_of("plan.json")["phases"][1];
    const auto most = phase["at_most_bytes"].get<int64_t>();
    const auto peak = phase["peak_bytes"].get<int64_t>();
    EXPECT_EQ(most, counted ? peak : (int64_t{24} << 30) - phase["start_bytes"].get<int64_t>());
    return peak;
  };
  const int64_t elsewhere = peaks("1500000", "cuda:24GiB");
  EXPECT_GT(peaks("1500000", "cuda:0"), elsewhere);
  const ScopedVariable workspace("STAND_IN_CUDNN_BYTES", std::string("1500000"));
  const auto run = tare({"run", "card.yaml", "--json", "run.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_as_planned(json_of("run.json"));
}

TEST_F(CardCli, WhatLibrariesKeepIsWorkspaceInEveryReport) {
  for (const char* capability : {"90", "80"}) {
    const std::string bytes = capability == std::string("90") ? "33554432" : "8519680";
    ::setenv("STAND_IN_SM", capability, 1);
    const auto run =
        tare({"run", "card.yaml", "--overwrite", "--verbose", "--record-memory", "rec"});
    ::unsetenv("STAND_IN_SM");
    ASSERT_EQ(run.status, 0) << run.err;
    if (!is_stand_in()) GTEST_SKIP() << "the size of the workspace is not known";
    const auto printed = lines_of(run.out);
    EXPECT_EQ(std::ranges::count_if(printed,
                                    [](const std::string& line) {
                                      return line.find("largest after_") != line.npos &&
                                             line.find("unexplained 0 B") != line.npos;
                                    }),
              2)
        << run.out;
    int64_t events = 0;
    for (const auto& line : lines_of(content_of(folder_ / "rec/timeline.csv"))) {
      const bool kept =
          line.find("," + bytes + ",") != line.npos || line.find(",1048576,") != line.npos;
      if (!kept) continue;
      ++events;
      EXPECT_TRUE(line.ends_with(",workspace")) << line;
    }
    EXPECT_GE(events, 8) << "two are taken and given back in each phase";
    // Which phase takes it first differs between versions of LibTorch.
    const std::string kept = "workspace;phase ";
    int64_t most = 0;
    for (const auto& line : lines_of(content_of(folder_ / "rec/peak.folded")))
      if (line.starts_with(kept))
        most = std::max(most, std::stol(line.substr(line.rfind(' ') + 1)));
    EXPECT_GE(most, std::stol(bytes));
    EXPECT_THAT(content_of(folder_ / "rec/trace.json"), HasSubstr("\"workspace\":"));
  }
}

TEST_F(CardCli, EveryPhaseOfTheRecipesPeaksAsPlanned) {
  const fs::path recipes = fs::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs/digits";
  const std::vector<std::vector<std::string>> all{
      {"lean.yaml", "phases.0.epochs=2"},
      {"tight.yaml", "phases.0.epochs=2"},
      {"early.yaml", "phases.0.epochs=2"},
      {"staged.yaml", "phases.0.data.count=200", "phases.2.epochs=1", "phases.4.epochs=1",
       "test=false"}};
  for (const auto& recipe : all) {
    std::vector<std::string> words{"run",
                                   (recipes / recipe[0]).string(),
                                   "device=cuda:0",
                                   "data.name=generated_digits",
                                   "data.count=600",
                                   "--json",
                                   "run.json"};
    words.insert(words.end(), recipe.begin() + 1, recipe.end());
    const auto run = tare(words);
    ASSERT_EQ(run.status, 0) << recipe[0] << run.err;
    expect_as_planned(json_of("run.json"));
  }
}

TEST_F(CardCli, EveryPhaseOfOtherRecipesPeaksAsPlanned) {
  const fs::path recipes = fs::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs";
  std::ofstream table(folder_ / "rows.csv"), text(folder_ / "text.txt");
  table << "age,sex,diagnosis,target\n";
  for (int i = 0; i < 200; ++i)
    table << 20 + i % 50 << (i % 3 == 0 ? ",f," : ",m,") << (i % 2 == 0 ? "yes," : "no,") << i % 17
          << ".5\n";
  for (int i = 0; i < 300; ++i) text << "ROMEO: a line of some words, and " << i << '\n';
  table.close();
  text.close();
  const std::string rows = (folder_ / "rows.csv").string(), more = (folder_ / "more.csv").string();
  fs::copy(rows, more);
  ASSERT_EQ(
      tare({"data", "make", "generated_digits", "--count", "60", "--png", "--out", "png"}).status,
      0);
  const std::vector<std::string> digits{"data.name=generated_digits", "data.train=500",
                                        "data.valid=100"},
      tables{"data.file=" + rows, "data.valid_files=[" + more + "]"};
  const std::vector<std::pair<std::string, std::vector<std::string>>> all{
      {"digits/augmented.yaml", digits},
      {"digits/averaged.yaml", digits},
      {"pictures/transfer.yaml",
       {"data.folder=" + (folder_ / "png").string(), "phases.0.data.count=200", "batch=4",
        "phases.1.epochs=1", "phases.2.epochs=1"}},
      {"table/breast_cancer.yaml", tables},
      {"table/diabetes.yaml", tables},
      {"text/shakespeare.yaml", {"data.file=" + (folder_ / "text.txt").string()}}};
  for (const auto& [recipe, settings] : all) {
    std::vector<std::string> words{"run",
                                   (recipes / recipe).string(),
                                   "device=cuda:0",
                                   "stop_on_nan=false",
                                   "phases.0.epochs=2",
                                   "--json",
                                   "run.json"};
    words.insert(words.end(), settings.begin(), settings.end());
    const auto run = tare(words);
    ASSERT_EQ(run.status, 0) << recipe << run.err;
    expect_as_planned(json_of("run.json"));
  }
}

// Of the batches about the largest one, a run refuses those that the plan refuses. A larger one may
// fit, whose tensors fill the segments of the allocator better.
TEST_F(CardCli, TheVerdictAboutABatchIsThatOfTheRun) {
  if (!is_stand_in())
    GTEST_SKIP() << "only the memory of the stand-in is as small as the test asks";
  const ScopedVariable card("STAND_IN_SM", std::string("80"));
  const ScopedVariable bytes("STAND_IN_BYTES", std::to_string(int64_t{64} << 20));
  const auto with = [&](const std::string& command, int64_t batch,
                        const std::vector<std::string>& more) {
    const std::string size = std::to_string(batch);
    std::vector<std::string> words{
        command,         "card.yaml",           "data.count=2000",     "data.size=28",
        "batch=" + size, "micro_batch=" + size, "phases=[{name: all}]"};
    words.insert(words.end(), more.begin(), more.end());
    return tare(words);
  };
  ASSERT_EQ(with("plan", 8, {"--json", "plan.json"}).status, 0);
  const auto largest = json_of("plan.json")["phases"][0]["largest_batch"].get<int64_t>();
  ASSERT_GT(largest, 16);
  ASSERT_LT(largest, 1000);
  std::map<int64_t, int> verdicts;  // exit codes of runs, by their batches
  for (const int64_t batch : {largest - 7, largest, largest + 1, largest + 40, 2 * largest}) {
    const auto plan = with("plan", batch, {});
    const auto run = with("run", batch, {"--no-plan"});
    EXPECT_EQ(plan.status, run.status) << batch << plan.out << run.err;
    verdicts[batch] = run.status;
  }
  EXPECT_EQ(verdicts[largest], 0);
  EXPECT_EQ(verdicts[largest + 1], 3);
  EXPECT_EQ(verdicts[2 * largest], 3);
}

TEST_F(CardCli, ACardThatIsLostAtAnyMomentIsOneErrorOfTheRun) {
  if (!is_stand_in()) GTEST_SKIP() << "only a card of the stand-in is lost when the test asks";
  ::unsetenv("STAND_IN_SHARED");  // else the card is lost to the next run too
  int lost = 0;
  for (int calls = 36; calls < 500; calls += 39) {
    const ScopedVariable lose("STAND_IN_LOSE", std::to_string(calls));
    const auto run = tare(
        {"run", "card.yaml", "recompute=all", "phases=[{name: all}]", "--overwrite", "--quiet"});
    EXPECT_THAT(run.status, ::testing::AnyOf(0, 1)) << calls << ' ' << run.err;
    if (run.status == 0) continue;
    ++lost;
    EXPECT_THAT(run.err, HasSubstr("cannot be used by this process any more")) << calls;
  }
  EXPECT_GE(lost, 5);
}

// cuDNN wants the weights in one block, which moving them through the host takes apart.
TEST_F(CardCli, RecurrentLayersKeepTheirWeightsInOneBlock) {
  const auto run = tare({"run", "card.yaml", "data={name: generated_texts, count: 100}",
                         "model={name: lstm, width: 8}", "phases=[{name: first}, {name: second}]"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("contiguous")));
}

TEST_F(CardCli, APlannedMicroBatchDoesNotGrowIntoReturnsOfTheCache) {
  if (!is_stand_in())
    GTEST_SKIP() << "only the memory of the stand-in is as small as the test asks";
  const ScopedVariable card("STAND_IN_SM", std::string("80"));
  const auto run = tare({"run", "card.yaml", "data.count=1000", "data.size=28", "batch=40",
                         "model={name: resnet9, width: 16}", "phases=[{name: all, epochs: 3}]",
                         "--device-budget", "30MiB", "--json", "run.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("by the plan"));
  EXPECT_THAT(run.err, Not(HasSubstr("micro-batch of train")));
  expect_as_planned(json_of("run.json"));
}

TEST_F(CardCli, TheSecondCardIsTaken) {
  if (!has_two_cards()) GTEST_SKIP() << "there is one card";
  const auto run = tare({"run", "card.yaml", "device=cuda:1", "--json", "run.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_as_planned(json_of("run.json"));
}

TEST_F(CardCli, ABudgetIsKeptByMicroBatches) {
  const auto with = [&](const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> words{command, "card.yaml", "batch=128", "data.size=28",
                                   "phases=[{name: all}]"};
    words.insert(words.end(), more.begin(), more.end());
    return tare(words);
  };
  const auto plan = with("plan", {"--json", "plan.json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  const auto peak = json_of("plan.json")["phases"][0]["peak_bytes"].get<int64_t>();
  const auto run =
      with("run", {"--device-budget", std::to_string(peak * 9 / 10), "--json", "run.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("in micro-batches of "));
  expect_as_planned(json_of("run.json"));
  const std::vector<std::string> budget{"--device-budget", std::to_string(peak * 9 / 10)};
  const auto within = with("plan", {budget[0], budget[1], "--json", "plan.json"});
  ASSERT_EQ(within.status, 0) << within.err;
  EXPECT_EQ(json_of("plan.json")["phases"][0]["micro_batch_peak_bytes"],
            json_of("run.json")["phases"][0]["planned_peak_bytes"]);
  const auto both = with("plan", {budget[0], budget[1], "--device", "cuda:0"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--device and a budget exclude each other"));
}

TEST_F(CardCli, WhatDoesNotFitIsRefusedBeforeTheRun) {
  const auto run = tare({"run", "card.yaml", "--device-budget", "16MiB"});
  EXPECT_EQ(run.status, 3) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("2 phases do not fit cuda:0, which has 16 MiB"));
}

TEST_F(CardCli, ABudgetOfTheHostIsNoBudgetOfTheCard) {
  const auto run = tare({"run", "card.yaml", "--host-budget", "1GiB"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--host-budget limits the tensors of the host, and the run is on "
                                 "cuda:0: --device-budget limits those"));
}

TEST_F(CardCli, AnAllocatorThatCannotBeCountedIsNamed) {
  ::setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync", 1);
  const auto run = tare({"run", "card.yaml"}), doctor = tare({"doctor"});
  ::unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              HasSubstr("names the backend cudaMallocAsync, whose memory cannot be counted"));
  EXPECT_EQ(doctor.status, 0);
}

TEST_F(CardCli, WrongSettingsOfTheAllocatorAreOneMessageWithTheirVariable) {
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    for (const char* value : {"nonsense", ",", "max_split_size_mb:abc", "max_split_size_mb:1",
                              "roundup_power2_divisions:[256:1", "expandable_segments:maybe",
                              "garbage_collection_threshold:2", "backend:foo", "nope:1"}) {
      ::setenv(name, value, 1);
      const auto run = tare({"run", "card.yaml", "device=cpu"});
      ::unsetenv(name);
      EXPECT_EQ(run.status, 2) << name << '=' << value << run.err;
      EXPECT_THAT(run.err, HasSubstr(std::string(name) + " is not what LibTorch takes: "));
      EXPECT_THAT(run.err, HasSubstr(value));
      EXPECT_THAT(run.err, Not(HasSubstr("report a bug")));
    }
}

TEST_F(CardCli, AnAllocatorWithoutACacheIsNamed) {
  ::setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
  const auto run = tare({"run", "card.yaml"});
  ::unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              HasSubstr("PYTORCH_NO_CUDA_MEMORY_CACHING is set, with which LibTorch counts "
                        "no memory"));
}

TEST_F(CardCli, AShareOfTheCardFromTheEnvironmentIsItsBudget) {
  ::setenv("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.0002", 1);
  const auto plan = tare({"plan", "card.yaml", "--device", "cuda:0"});
  ::unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_THAT(plan.out + plan.err, HasSubstr("does not fit")) << "in 3 MiB of 16 GiB, or 29 of 140";
}

TEST_F(CardCli, ARefusedAllocationIsTriedAgain) {
  if (!is_stand_in()) GTEST_SKIP() << "a card refuses nothing on request";
  for (const char* number : {"1", "2", "3", "5", "9"}) {
    ::setenv("STAND_IN_REFUSE", number, 1);
    const auto run = tare({"run", "card.yaml", "--overwrite", "--json", "run.json"});
    ::unsetenv("STAND_IN_REFUSE");
    ASSERT_EQ(run.status, 0) << number << run.err;
    expect_as_planned(json_of("run.json"));
  }
}

TEST_F(CardCli, ALostCardIsOneMessageAndTheRunCanBeContinued) {
  if (!is_stand_in()) GTEST_SKIP() << "a card is not lost on request";
  ::setenv("STAND_IN_LOSE", "1500", 1);
  const auto lost = tare({"run", "card.yaml", "phases.1.epochs=20"});
  ::unsetenv("STAND_IN_LOSE");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.err,
              HasSubstr("the card cuda:0 failed and cannot be used by this process any more"));
  EXPECT_EQ(lost.err.find("CUDA_LAUNCH_BLOCKING"), std::string::npos) << lost.err;
  const auto run = tare({"run", "card.yaml", "phases.1.epochs=20", "--resume"});
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST_F(CardCli, CardsOfOtherSizesAndKindsAreAsPlanned) {
  if (!is_stand_in()) GTEST_SKIP() << "there is one kind of card";
  for (const char* setting : {"STAND_IN_BYTES=100663296", "STAND_IN_BYTES=85899345920",
                              "STAND_IN_SM=75", "STAND_IN_SM=80", "STAND_IN_SM=100"}) {
    const std::string text = setting;
    const std::string name = text.substr(0, text.find('='));
    ::setenv(name.c_str(), text.substr(name.size() + 1).c_str(), 1);
    const auto run = tare({"run", "card.yaml", "--overwrite", "--json", "run.json"});
    ::unsetenv(name.c_str());
    ASSERT_EQ(run.status, 0) << setting << run.err;
    expect_as_planned(json_of("run.json"));
  }
}

TEST_F(CardCli, ARunWithoutAPlanSaysWhy) {
  if (!is_stand_in()) GTEST_SKIP() << "only a card before Ampere has no plan for 16-bit attention";
  const ScopedVariable card("STAND_IN_SM", std::string("75"));
  const auto run = tare({"run", "card.yaml", "model={name: vit, width: 16, layers: 1, heads: 2}",
                         "data.size=32", "precision=bf16", "phases=[{name: all}]"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("the memory cannot be predicted: attention of a 16-bit type"));
}

TEST_F(CardCli, TheLossesAreTheHosts) {
  if (!kernels_compute()) return;  // losses of kernels that do nothing are no numbers
  ASSERT_EQ(tare({"run", "card.yaml", "device=cpu", "name=host"}).status, 0);
  ASSERT_EQ(tare({"run", "card.yaml", "kernels.tf32=false"}).status, 0);
  for (const char* phase : {"head.csv", "all.csv"}) {
    const std::string card = rows_without_time(folder_ / "runs/card" / phase),
                      host = rows_without_time(folder_ / "runs/host" / phase);
    if (is_stand_in()) {
      EXPECT_EQ(card, host);
      continue;
    }
    constexpr double kRounding = 1e-3;  // sums in another order, over some steps
    std::istringstream ours(card), others(host);
    for (std::string one, other; std::getline(ours, one) && std::getline(others, other);)
      EXPECT_THAT(numbers_of(one),
                  ::testing::Pointwise(::testing::DoubleNear(kRounding), numbers_of(other)));
  }
}

TEST_F(CardCli, AKilledRunIsContinued) {
  Program program("tare", {"run", "card.yaml", "phases.1.epochs=200"}, folder_.path());
  const fs::path autosave = folder_ / "runs/card/autosave-0";
  for (int i = 0; i < 2000 && !fs::exists(autosave); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(program.pid(), SIGKILL);
  EXPECT_EQ(program.wait().status, 128 + SIGKILL);
  const auto run = tare({"run", "card.yaml", "phases.1.epochs=200", "--resume"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("continues"));
  EXPECT_EQ(json_of("runs/card/report.json")["phases"].size(), 2);
}

TEST_F(CardCli, ABundleIsPredictedFromOnACardAndThePageIsWritten) {
  ASSERT_EQ(tare({"run", "card.yaml", "--quiet"}).status, 0);
  ASSERT_EQ(
      tare({"data", "make", "generated_digits", "--count", "10", "--png", "--out", "png"}).status,
      0);
  const auto predict = tare({"predict", "runs/card", "png", "--device", "cuda:0"});
  EXPECT_EQ(predict.status, 0) << predict.err;
  EXPECT_EQ(std::ranges::count(predict.out, '\n'), 10) << predict.out;
  if (kernels_compute()) {
    EXPECT_EQ(predict.out, tare({"predict", "runs/card", "png", "--device", "cpu"}).out);
  }
  ASSERT_EQ(tare({"report", "runs/card"}).status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "runs/card/report.html"));
}

TEST_F(CardCli, ASweepPlacesItsRunsOnBothCards) {
  if (!has_two_cards()) GTEST_SKIP() << "there is one card";
  std::ofstream(folder_ / "sweep.yaml") << "name: cards\nrecipe: card.yaml\nset: {device: auto}\n"
                                           "parameters: {seed: [1, 2, 3]}\n"
                                           "resources: {max_per_gpu: 2}\n";
  const auto plan = tare({"sweep", "plan", "sweep.yaml"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  std::set<std::string> cards;  // by their names or UUIDs
  for (const auto& line : lines_of(plan.out))
    if (const auto at = line.find(" of "); line.starts_with("cards") && at != std::string::npos)
      cards.insert(line.substr(at + 4, line.find(' ', at + 4) - at - 4));
  EXPECT_EQ(cards.size(), 2) << plan.out;
  const auto sweep = tare({"sweep", "run", "sweep.yaml"});
  EXPECT_EQ(sweep.status, 0) << sweep.out << sweep.err;
  EXPECT_THAT(tare({"sweep", "status", "sweep.yaml"}).out, HasSubstr("COMPLETE"));
}

TEST_F(CardCli, ASweepGivesEachRankOfARunACard) {
  if (!has_two_cards()) GTEST_SKIP() << "there is one card";
  std::ofstream(folder_ / "sweep.yaml") << "name: pairs\nrecipe: card.yaml\nset: {device: auto}\n"
                                           "parameters: {seed: [1, 2]}\n"
                                           "resources: {max_per_gpu: 1, ranks: 2}\n";
  const auto plan = tare({"sweep", "plan", "sweep.yaml"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("pairs: 2 runs of 2 ranks, 1 at a time, in cuda:0 ("),
                              HasSubstr(" on each of cuda:0, cuda:1")));
  const auto sweep = tare({"sweep", "run", "sweep.yaml"});
  EXPECT_EQ(sweep.status, 0) << sweep.out << sweep.err;
  EXPECT_THAT(tare({"sweep", "status", "sweep.yaml"}).out,
              HasSubstr("2 ranks on cuda:0, cuda:1\n"));
  const auto report = json_of("runs/pairs/pairs0_s1/report.json");
  EXPECT_EQ(report["device"], "cuda:0");
  EXPECT_EQ(report["phases"][0]["ranks"].size(), 2);
}

TEST_F(CardCli, ACardThatIsNotThereIsRefusedByName) {
  for (const char* device : {"cuda:7", "cuda:x", "cud"}) {
    const auto run = tare({"run", "card.yaml", std::string("device=") + device});
    EXPECT_EQ(run.status, 2) << device;
    EXPECT_THAT(run.err, HasSubstr(device));
  }
}

}  // namespace
}  // namespace tare::testing

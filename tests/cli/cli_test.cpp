// The program `tare` from outside: its commands, their output and exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "support/environment.h"
#include "support/program.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTiny = R"(name: tiny
batch: 32
device: cpu
data: {name: generated_digits, count: 200, size: 16}
model: {name: resnet9, width: 4}
phases:
  - {name: only, epochs: 1, lr: 1.0e-2}
export: tiny.tare
)";

struct Recipe {
  Recipe() { std::ofstream(folder / "tiny.yaml") << kTiny; }
  ProgramResult run(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run", "tiny.yaml"});
    return run_program("tare", more, folder.path());
  }
  TempDir folder;
};

TEST(Cli, HelpHasAnExampleForEveryCommand) {
  const auto overview = run_program("tare", {"--help"});
  EXPECT_EQ(overview.status, 0);
  for (const char* command : {"run", "ls", "data", "export", "inspect", "doctor", "predict"}) {
    EXPECT_NE(overview.out.find(std::string("  ") + command), std::string::npos) << command;
    const auto help = run_program("tare", {command, "--help"});
    EXPECT_EQ(help.status, 0) << command << help.err;
    EXPECT_NE(help.out.find("xample"), std::string::npos) << command << help.out;
  }
  EXPECT_EQ(run_program("tare", {}).status, 2);
}

TEST(Cli, HelpOfACommandIsShownBehindHelpToo) {
  for (const char* command : {"run", "predict"})
    EXPECT_EQ(run_program("tare", {"help", command}).out,
              run_program("tare", {command, "--help"}).out);
  EXPECT_THAT(run_program("tare", {"help"}).out, HasSubstr("Usage: tare COMMAND"));
}

TEST(Cli, HelpNamesTheDeviceThatABudgetIsFor) {
  const auto help = run_program("tare", {"run", "--help"});
  EXPECT_NE(help.out.find("limit tensors to BYTES of the GPU's memory"), std::string::npos)
      << help.out;
}

TEST(Cli, RunsARecipePredictsAndInspects) {
  const Recipe recipe;
  const auto run = recipe.run({"--json", "report.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("residual 0 B"), std::string::npos) << run.out;
  for (const char c : run.out)
    ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << "control byte";
  EXPECT_EQ(run.out.find("released: learner"), std::string::npos) << "in full without --verbose";
  EXPECT_TRUE(std::filesystem::exists(recipe.folder / "report.json"));
  const auto inspect =
      run_program("tare", {"inspect", "runs/tiny/tiny.tare"}, recipe.folder.path());
  EXPECT_EQ(inspect.status, 0) << inspect.err;
  EXPECT_NE(inspect.out.find("resnet9"), std::string::npos) << inspect.out;
  const auto predict =
      run_program("tare", {"predict", "runs/tiny/tiny.tare", "absent.png"}, recipe.folder.path());
  EXPECT_EQ(predict.status, 2) << predict.err;
  const auto json =
      run_program("tare", {"inspect", "--json", "runs/tiny/tiny.tare"}, recipe.folder.path());
  EXPECT_NE(json.out.find("\"kind\": \"bundle\""), std::string::npos) << json.out;
}

TEST(Cli, ExportsARunACheckpointAndABundle) {
  const Recipe recipe;
  const auto run = recipe.run({"phases.0.save=mine", "test=false", "export=''"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto tare = [&](std::vector<std::string> words) {
    return run_program("tare", words, recipe.folder.path());
  };
  const auto whole = tare({"export", "runs/tiny"});
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.out.find("exported runs/tiny/tiny.tare, "), 0U) << whole.out;
  EXPECT_NE(whole.out.find(", from runs/tiny/mine, phase only"), std::string::npos) << whole.out;
  EXPECT_EQ(tare({"inspect", "runs/tiny"}).out, tare({"inspect", "runs/tiny/tiny.tare"}).out);
  EXPECT_THAT(tare({"predict", "runs/tiny", "absent.png"}).err, HasSubstr("absent.png"));
  for (const char* verb : {"predict", "inspect"}) {
    std::vector<std::string> words{verb, "runs"};
    if (words.front() == "predict") words.emplace_back("absent.png");
    EXPECT_THAT(tare(words).err, HasSubstr("holds runs: give one of them, such as runs/tiny"));
  }
  EXPECT_THAT(tare({"predict", "runs/tiny/mine", "absent.png"}).err,
              HasSubstr("is a checkpoint and no bundle (a .tare file): `tare export "));
  EXPECT_EQ(tare({"export", "runs/tiny/mine", "--out", "mine.tare"}).status, 0);
  EXPECT_EQ(tare({"export", "mine.tare", "--out", "copy.tare"}).status, 0);
  EXPECT_EQ(io::read_text(recipe.folder / "copy.tare"),
            io::read_text(recipe.folder / "runs/tiny/tiny.tare"));
  EXPECT_EQ(tare({"inspect", "copy.tare"}).status, 0);
  EXPECT_EQ(tare({"export", "mine.tare", "--weights", "fp8", "--out", "small.tare"}).status, 0);
  EXPECT_NE(tare({"inspect", "small.tare"}).out.find("fp8: float8_e4m3fn"), std::string::npos);
  EXPECT_NE(tare({"export", "mine.tare", "--weights", "fp4", "--out", "x.tare"}).status, 0);
  const auto none = tare({"export", "runs"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("'runs' holds runs: give one of them, such as runs/tiny"));
}

TEST(Cli, SearchesForALearningRateAndWritesNothing) {
  const Recipe recipe;
  const auto search = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"lr-find", "tiny.yaml", "phases.0.lr={find: {steps: 20}}"});
    return run_program("tare", more, recipe.folder.path());
  };
  const auto text = search({});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("tiny, only: smoothed loss by learning rate\n"));
  EXPECT_THAT(text.out, HasSubstr("20 steps; suggested: valley "));
  const auto json = search({"--json", "--phase", "0"});
  ASSERT_EQ(json.status, 0) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"suggestion\": \"valley\""));
  EXPECT_FALSE(std::filesystem::exists(recipe.folder / "runs"));
  for (const char* phase : {"1", "-1", "first", ""}) {
    const auto wrong = search({std::string("--phase=") + phase});
    EXPECT_EQ(wrong.status, 2) << phase;
    EXPECT_THAT(wrong.err, HasSubstr("--phase")) << phase;
  }
  const auto named = run_program("tare", {"lr-find", "digits/stagged"}, recipe.folder.path());
  EXPECT_EQ(named.status, 2);
  EXPECT_THAT(named.err, HasSubstr("(did you mean \"digits/staged\"?)"));
}

TEST(Cli, ShowsTheScheduleBeforeTraining) {
  const Recipe recipe;
  const auto plan = run_program(
      "tare", {"plan", "tiny.yaml", "--device", "host:8GiB", "--schedule"}, recipe.folder.path());
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("schedule of only: one_cycle over 5 steps"));
  const auto run = recipe.run({"--dry-run"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("schedule of only: one_cycle over 5 steps"));
}

TEST(Cli, WritesAMemoryTrace) {
  const Recipe recipe;
  const auto run = recipe.run({"--record-memory", "trace"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("events in trace/timeline.csv"), std::string::npos) << run.out;
  EXPECT_TRUE(std::filesystem::exists(recipe.folder / "trace/timeline.csv"));
}

TEST(Cli, PrintsWhatHoldsMemory) {
  const Recipe recipe;
  const auto run = recipe.run({"--monitor-memory={top: 1}", "test=false"});
  ASSERT_EQ(run.status, 0) << run.err;
  size_t at = 0;
  for (const char* line : {"Start ------", "Before the purge of only ------", "] top_diffs i=1, ",
                           "] top_current i=1, ", "End ------"}) {
    at = run.out.find(line, at);
    EXPECT_NE(at, std::string::npos) << line << '\n' << run.out;
  }
  EXPECT_EQ(run.out.find("top_current i=2"), std::string::npos);
  EXPECT_NE(recipe.run({"--monitor-memory", "--dry-run"}).out.find("top_current i=2"),
            std::string::npos);
  EXPECT_EQ(recipe.run({"--dry-run"}).out.find("mem_trace"), std::string::npos);
  const auto wrong = recipe.run({"--monitor-memory={interval: 3}"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("did you mean \"interval_s\"?"), std::string::npos) << wrong.err;
}

TEST(Cli, PlansEquallyFromWhatAnEarlierPlanMeasured) {
  const Recipe recipe;
  const ScopedVariable home("TARE_HOME", (recipe.folder / "home").string());
  const auto plan = [&] {
    return run_program("tare", {"plan", "tiny.yaml", "--device", "host:8GiB"},
                       recipe.folder.path());
  };
  const auto first = plan();
  ASSERT_EQ(first.status, 0) << first.err;
  const auto kept = recipe.folder / "home/plan/measurements.txt";
  const std::string text = io::read_text(kept);
  EXPECT_EQ(plan().out, first.out);
  EXPECT_EQ(io::read_text(kept), text) << "nothing was measured again";
  std::ofstream(kept) << "nonsense";
  EXPECT_EQ(plan().out, first.out);
  EXPECT_EQ(io::read_text(kept), text);
}

TEST(Cli, WarnsOfAPhaseThatEndsBeforeItsFirstValidation) {
  const Recipe recipe;
  const auto rare = recipe.run({"valid_every=1000", "--dry-run"});
  EXPECT_EQ(rare.status, 0) << rare.err;
  EXPECT_THAT(rare.err, HasSubstr("warning: valid_every is 1000, and phase 'only' has "));
  EXPECT_THAT(rare.err, HasSubstr(": it validates at the end of an epoch only; set a lower "
                                  "valid_every, or 0\n"));
  EXPECT_THAT(recipe.run({"valid_every=1", "--dry-run"}).err,
              ::testing::Not(HasSubstr("valid_every")));
}

TEST(Cli, ABudgetIsPlannedFor) {
  const Recipe recipe;
  const auto run = recipe.run({"--host-budget", "1MiB", "micro_batch=32"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(run.err.find("which has 1 MiB"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("; micro_batch stands at command line; set a lower micro_batch"),
            std::string::npos)
      << run.err;
  EXPECT_FALSE(std::filesystem::exists(recipe.folder / "runs")) << "nothing was begun";
  EXPECT_EQ(recipe.run({"--host-budget", "much"}).status, 2);
  const auto on_host = recipe.run({"--device-budget", "8GiB"});
  EXPECT_EQ(on_host.status, 2);
  EXPECT_NE(on_host.err.find("this run uses the host"), std::string::npos) << on_host.err;
  EXPECT_NE(on_host.err.find("; give --host-budget"), std::string::npos) << on_host.err;
}

TEST(Cli, ALimitOfTheProcessIsForAllItsMemory) {
  const Recipe recipe;
  const auto planned = recipe.run({"--process-limit", "1MiB", "micro_batch=32"});
  EXPECT_EQ(planned.status, 3) << planned.err;
  const auto run = recipe.run({"--process-limit", "1MiB", "--no-plan", "micro_batch=32"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(run.err.find(" of its limit of 1 MiB"), std::string::npos) << run.err;
  for (const auto& refused : {planned, run})
    EXPECT_THAT(refused.err, HasSubstr("without any tensor: raise the limit above that\n"));
  const auto roomy = recipe.run({"--process-limit", "8GiB", "--limit-address-space"});
  EXPECT_EQ(roomy.status, 0) << roomy.err;
  EXPECT_EQ(recipe.run({"--limit-address-space"}).status, 2);
  EXPECT_EQ(recipe.run({"--process-limit", "much"}).status, 2);
}

TEST(Cli, ABudgetBelowTheDataSaysSo) {
  const Recipe recipe;
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--no-plan"}}) {
    std::vector<std::string> words{"--host-budget", "9KiB"};
    words.insert(words.end(), more.begin(), more.end());
    const auto run = recipe.run(words);
    EXPECT_EQ(run.status, 3) << run.err;
    EXPECT_THAT(run.err, HasSubstr("the data set generated_digits does not fit in memory: raise "
                                   "the budget, or choose smaller data\n"));
    EXPECT_FALSE(std::filesystem::exists(recipe.folder / "runs")) << "nothing was begun";
  }
}

// In the third stage of resnet18 a sample with 16 pixels has one value for each channel.
TEST(Cli, ABudgetThatLeavesSingleSamplesToABatchNormSaysSo) {
  const Recipe recipe;
  const auto run = recipe.run(
      {"--host-budget", "2500KiB", "--no-plan", "export=null", "model={name: resnet18, width: 8}"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("of a budget of 2.4 MiB; parts of two samples do not fit, and the "
                                 "model's batch norm trains on no single sample: raise the budget, "
                                 "or take a smaller model\n"));
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("change batch")));
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("drop_last")));
}

TEST(Cli, ABudgetThatNoSampleFitsNamesNoBatch) {
  const Recipe recipe;
  const auto run = recipe.run({"--host-budget", "480KiB", "--no-plan"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("not even the smallest part fits (sizes that failed: 32, 16, 8"));
  EXPECT_THAT(run.err, ::testing::Not(HasSubstr("change batch")));
}

TEST(Cli, ABudgetBelowTheWeightsSaysSo) {
  const Recipe recipe;
  const auto run = recipe.run({"--host-budget", "1MiB", "model={name: mlp, hidden: [2000]}"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_NE(run.err.find("its weights and what is kept with them take "), std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find(" alone, so no batch fits"), std::string::npos) << run.err;
}

/// The digits recipes that need little memory, on few generated digits.
TEST(Cli, TheTightAndTheLeanRecipeFinish) {
  const TempDir folder;
  const auto tare = [&](const std::string& verb, const std::string& name,
                        std::vector<std::string> more) {
    std::vector<std::string> words{
        verb,
        std::string(std::getenv("TARE_SOURCE_DIR")) + "/recipes/configs/digits/" + name,
        "data.name=generated_digits",
        "data.count=600",
        "data.size=28",
        "phases.0.epochs=1",
        "test=false"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("tare", words, folder.path());
  };
  const auto lean = tare("run", "lean.yaml", {"model.width=4"});
  EXPECT_EQ(lean.status, 0) << lean.err;
  EXPECT_NE(lean.out.find("exported "), std::string::npos) << lean.out;
  const auto plan = tare("plan", "tight.yaml", {"--json", "plan.json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  const std::string json = io::read_text(folder / "plan.json");
  const auto figure = [&](const std::string& key) {
    return std::stoll(json.substr(json.find("\"" + key + "\": ") + key.size() + 4));
  };
  const int64_t budget = figure("start_bytes") + figure("peak_bytes") / 3;
  const auto large = tare("plan", "tight.yaml", {"--device", "host:1MiB"});
  EXPECT_EQ(large.status, 3) << large.err;
  EXPECT_NE(large.out.find("does not fit\n"), std::string::npos) << large.out;
  const auto tight = tare("run", "tight.yaml", {"--host-budget", std::to_string(budget)});
  EXPECT_EQ(tight.status, 0) << tight.err << tight.out;
  EXPECT_NE(tight.out.find("in micro-batches of "), std::string::npos) << tight.out;
}

TEST(Cli, OutOfMemorySaysWhatHeldTheMemoryAndWhichLineToChange) {
  const Recipe recipe;
  const auto run = recipe.run({"--host-budget", "1MiB", "--no-plan", "micro_batch=32"});
  EXPECT_EQ(run.status, 3) << run.out;
  for (const std::string text :
       {"out of memory on cpu in phase forward: asked for ", " of a budget of 1 MiB\n",
        " in 1 block: parameters, ",
        "instead of 32 would have fitted up to this allocation, by a linear ",
        "\nchange micro_batch at command line\n",
        "by the plan, phase 'only' fits with a batch of "})
    EXPECT_NE(run.err.find(text), std::string::npos) << text << "\n" << run.err;
  const auto of_phase = recipe.run(
      {"--host-budget", "1MiB", "--no-plan", "phases.0.batch=64", "phases.0.micro_batch=64"});
  EXPECT_NE(of_phase.err.find("change phases.0.micro_batch at command line"), std::string::npos)
      << of_phase.err;
  // Steps in the backward are of whole batches.
  const auto of_batch = recipe.run({"--host-budget", "1MiB", "--no-plan", "step_in_backward=true"});
  EXPECT_NE(of_batch.err.find("\nchange batch at tiny.yaml:2:8\n"), std::string::npos)
      << of_batch.err;
  const auto of_data = recipe.run({"--host-budget", "2MiB", "--no-plan", "step_in_backward=true",
                                   "batch=null", "data.count=2000"});
  EXPECT_NE(of_data.err.find("\nset batch, which the recipe leaves to the size of the data\n"),
            std::string::npos)
      << of_data.err;
}

TEST(Cli, ExitCodesShowTheCause) {
  const Recipe recipe;
  EXPECT_EQ(recipe.run({"batchh=3"}).status, 2);
  EXPECT_EQ(recipe.run({"batch=none"}).status, 2);
  EXPECT_EQ(recipe.run({"--no-such-option"}).status, 2);
  EXPECT_EQ(run_program("tare", {"rum"}).status, 2);
  EXPECT_EQ(run_program("tare", {"run"}).status, 2);
  EXPECT_EQ(run_program("tare", {"run", "absent.yaml"}).status, 2);
  EXPECT_EQ(run_program("tare", {"run", std::string(100'000, 'x')}).status, 2);
  EXPECT_EQ(run_program("tare", {"inspect", "absent"}).status, 2);
  EXPECT_EQ(run_program("tare", {"ls", "nothing"}).status, 2);
  EXPECT_FALSE(std::filesystem::exists(recipe.folder / "runs")) << "bad input writes nothing";
}

TEST(Cli, AnOverrideMayHoldCommas) {
  const Recipe recipe;
  const auto result = recipe.run({"phases.0.lr={from: 1.0e-3, to: 1.0e-2}", "--dry-run"});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST(Cli, AMessageIsOneLineThatNamesThePlace) {
  const Recipe recipe;
  const auto result = recipe.run({"phases.0.epochs=0"});
  EXPECT_NE(result.err.find("phases.0.epochs"), std::string::npos) << result.err;
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  const auto forged = recipe.run({"name=a\nb"});
  EXPECT_EQ(forged.status, 2);
  EXPECT_EQ(std::ranges::count(forged.err, '\n'), 1) << forged.err;
}

// Waits until the program has printed `text`.
bool wait_for(const Program& program, const std::string& text) {
  for (int i = 0; i < 600; ++i) {
    if (program.read("out").find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST(Cli, ASignalStopsAfterTheStepWithItsOwnExitCode) {
  for (const auto& [number, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    const Recipe recipe;
    Program program("tare", {"run", "tiny.yaml", "phases.0.epochs=100000"}, recipe.folder.path());
    ASSERT_TRUE(wait_for(program, "train_loss"));
    ::kill(program.pid(), number);
    const auto result = program.wait();
    EXPECT_EQ(result.status, code) << result.err;
    EXPECT_NE(result.out.find("residual 0 B"), std::string::npos) << result.out;
    EXPECT_EQ(result.err,
              "[tare] stopped by a signal after the step in flight, with a checkpoint; "
              "--resume continues from there\n");
  }
}

TEST(Cli, NamesAProgramAsItWasCalled) {
  EXPECT_THAT(run_program("tare", {"predict", "--help"}).out,
              ::testing::StartsWith("Usage: tare predict [OPTIONS] BUNDLE"));
  EXPECT_THAT(run_program("tare-predict", {"--help"}).out,
              ::testing::StartsWith("Usage: tare-predict [OPTIONS] BUNDLE"));
}

TEST(Cli, SaysAsMuchAsItIsAskedFor) {
  const Recipe recipe;
  const auto quiet = recipe.run({"--quiet"});
  EXPECT_EQ(quiet.status, 0) << quiet.err;
  EXPECT_EQ(quiet.out, "");
  for (const char* option : {"--verbose", "-v"}) {
    const auto verbose = recipe.run({option});
    EXPECT_EQ(verbose.status, 0) << verbose.err;
    for (const char* part : {"released: learner", "largest after_loss", "layer1.0 ", "output"})
      EXPECT_NE(verbose.out.find(part), std::string::npos) << option << part << verbose.out;
  }
  const auto both = recipe.run({"--quiet", "--verbose"});
  EXPECT_EQ(both.status, 2);
  EXPECT_NE(both.err.find("--quiet and --verbose contradict each other"), std::string::npos)
      << both.err;
}

TEST(Cli, ListsAndDoctor) {
  EXPECT_NE(run_program("tare", {"ls", "models"}).out.find("resnet18"), std::string::npos);
  EXPECT_THAT(run_program("tare", {"ls", "models"}).out, ::testing::HasSubstr("dropout=0"));
  EXPECT_THAT(run_program("tare", {"ls", "samplers"}).out,
              ::testing::HasSubstr("start_trials=10  runs that must have ended"));
  EXPECT_THAT(run_program("tare", {"ls", "pruners"}).out, ::testing::HasSubstr("asha_promotion"));
  EXPECT_THAT(run_program("tare", {"ls", "executors"}).out,
              ::testing::HasSubstr("save_before_s=90"));
  EXPECT_THAT(run_program("tare", {"ls", "losses"}).out,
              ::testing::HasSubstr("label_smoothing=0  share of"));
  EXPECT_NE(run_program("tare", {"ls", "datasets"}).out.find("digits"), std::string::npos);
  EXPECT_THAT(run_program("tare", {"ls", "datasets"}).out, ::testing::HasSubstr("style=printed"));
  const auto kinds = run_program("tare", {"ls"});
  EXPECT_EQ(kinds.status, 0) << kinds.err;
  EXPECT_THAT(kinds.out, ::testing::HasSubstr("\nmodels      convnet, gpt, "));
  EXPECT_THAT(kinds.out, ::testing::HasSubstr("\nrecipes     what comes with Tare"));
  EXPECT_THAT(kinds.out, ::testing::HasSubstr("`tare ls models` lists the models with"));
  EXPECT_THAT(run_program("tare", {"ls", "--help"}).out,
              ::testing::Not(::testing::HasSubstr("....")));
  const auto recipes = run_program("tare", {"ls", "recipes"}, std::getenv("TARE_SOURCE_DIR"));
  EXPECT_NE(recipes.out.find("recipes/configs/digits/staged.yaml  "), std::string::npos)
      << recipes.err;
  const auto elsewhere = run_program("tare", {"ls", "recipes"}, "/");
  EXPECT_NE(elsewhere.out.find("/share/tare/recipes/digits/staged.yaml  "), std::string::npos)
      << elsewhere.err;
  const auto doctor = run_program("tare", {"doctor"});
  EXPECT_EQ(doctor.status, 0) << doctor.err;
  for (const char* what : {"LibTorch", "driver", "device 0", "threads", "disk", "digits"}) {
    EXPECT_NE(doctor.out.find(what), std::string::npos) << what << doctor.out;
  }
}

}  // namespace
}  // namespace tare::testing

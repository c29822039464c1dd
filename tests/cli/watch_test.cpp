// `tare watch`, of a run that trains and of one that has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/tiny_recipe.h"
#include "report/run_folder.h"
#include "support/program.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Watched : public ::testing::Test {
 protected:
  Watched() { write_run(folder_ / "run"); }
  [[nodiscard]] ProgramResult watch(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"watch", "run"});
    return run_program("tare", more, folder_.path());
  }
  TempDir folder_;
};

TEST_F(Watched, ARunThatTrainsShowsWhereItIs) {
  std::filesystem::remove(folder_ / "run" / "report.json");
  write_file(folder_ / "run" / "live.json",
             R"({"phase":"all","epoch":2,"epochs":8,"step":90,"steps":720,"samples_per_s":1234.4,)"
             R"("lr":0.001,"allocated_bytes":3145728,"memory":{"parameters":1048576,)"
             R"("activations":2097152},"time_s":0})");
  const auto result = watch();
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("digits: phase all, epoch 2/8, step 90/720, 1,234 samples/s, lr 0.001"));
  EXPECT_THAT(result.out, HasSubstr("no news for"));
  EXPECT_THAT(result.out, HasSubstr("memory 3 MiB: parameters 1 MiB, activations 2 MiB"));
  EXPECT_THAT(result.out, HasSubstr("loss by epoch"));
  EXPECT_THAT(result.out, HasSubstr("train_loss"));
  EXPECT_THAT(result.out, Not(HasSubstr("\033"))) << "a file gets no control bytes";
  const auto line = watch({"--json"});
  ASSERT_EQ(line.status, 0) << line.err;
  EXPECT_EQ(std::ranges::count(line.out, '\n'), 1);
  const auto json = nlohmann::json::parse(line.out);
  EXPECT_EQ(json["live"]["step"], 90);
  EXPECT_EQ(json["live"]["memory"]["activations"], 2097152);
  EXPECT_FALSE(json["phases"][0]["epochs"].empty());
  EXPECT_TRUE(json["report"].is_null());
}

TEST_F(Watched, APhaseWithoutANameIsNamedOnce) {
  write_file(folder_ / "run" / "recipe.yaml", "name: digits\nphases: [{epochs: 3}]\n");
  std::filesystem::remove(folder_ / "run" / "report.json");
  write_file(folder_ / "run" / "live.json",
             R"({"phase":"phase 1","epoch":1,"epochs":3,"step":9,"steps":27,"samples_per_s":5,)"
             R"("lr":0.001,"allocated_bytes":0,"memory":{},"time_s":0})");
  EXPECT_THAT(watch().out, HasSubstr("digits: phase 1, epoch 1/3, step 9/27"));
  const auto page = run_program("tare", {"report", "run", "--json"}, folder_.path());
  EXPECT_EQ(nlohmann::json::parse(page.out)["missing"].back(), "Phase 1 has no finished epoch.");
}

TEST_F(Watched, ARunThatHasEndedShowsItsFigures) {
  const auto result = watch({"--every", "0.1"});  // and nothing to wait for
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("digits: finished in 1 min 35 s"));
  EXPECT_THAT(result.out, HasSubstr("test accuracy 0.913"));
  const auto json = nlohmann::json::parse(watch({"--json"}).out);
  EXPECT_TRUE(json["live"].is_null());
  EXPECT_NEAR(json["report"]["test"]["metrics"]["accuracy"], 0.913, 1e-9);
}

TEST_F(Watched, ARunWithoutLiveFiguresShowsItsEpochsAndSaysWhatIsMissing) {
  std::filesystem::remove(folder_ / "run" / "report.json");
  const auto result = watch();
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("digits: does not train now, and has not ended: it reads data"));
  EXPECT_THAT(result.out, HasSubstr("live.json, which a run writes while it trains, is not there: "
                                    "step, samples a second and memory are not known; these "
                                    "epochs have ended:"));
  EXPECT_THAT(result.out, HasSubstr("0.900000"));
  for (const char* file : {"head.csv", "all.csv"}) std::filesystem::remove(folder_ / "run" / file);
  EXPECT_THAT(watch().out, HasSubstr("no epoch has ended yet"));
}

TEST_F(Watched, ARunThatFailedSaysWhyAndIsNotWaitedFor) {
  std::filesystem::remove(folder_ / "run" / "report.json");
  write_file(folder_ / "run" / "failure.json",
             R"({"reason":"[phase 1] loss is nan","phase":"all","epoch":2,"steps":1040,)"
             R"("time_s":1795000000.5})");
  const auto result = watch({"--every", "0.1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("digits: failed: [phase 1] loss is nan\n"
                        "it failed in phase all, epoch 2, after 1,040 steps, at 2026-"));
  EXPECT_THAT(result.out, HasSubstr("0.900000"));
  EXPECT_THAT(result.out, Not(HasSubstr("has not ended")));
  const auto json = nlohmann::json::parse(watch({"--json", "--every", "0.1"}).out);
  EXPECT_EQ(json["failure"]["steps"], 1040);
  EXPECT_TRUE(json["report"].is_null());
}

TEST_F(Watched, ARunThatDivergesIsFailedForEveryCommand) {
  write_file(folder_ / "r.yaml", std::string(kTinyRecipe) + "folder: .\n");
  ASSERT_EQ(
      run_program("tare", {"run", "r.yaml", "phases.0.lr=1e30", "--quiet"}, folder_.path()).status,
      1);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"watch", "tiny"},
                                                {"compare", "tiny", "run"},
                                                {"report", "tiny", "--json"}}) {
    const auto result = run_program("tare", words, folder_.path());
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("lower the learning rate")) << words[0];
  }
}

TEST_F(Watched, AFolderOfAProgramShowsItsHistory) {
  const auto own = folder_ / "own";
  std::filesystem::create_directories(own);
  EXPECT_THAT(run_program("tare", {"watch", own.string()}).err,
              HasSubstr("no history.csv, which the callback csv_log of a program writes"));
  std::filesystem::copy(folder_ / "run" / "head.csv", own / "history.csv");
  const auto result = run_program("tare", {"watch", own.string() + '/'});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("own: tare run has not made this folder, so there is no "
                                    "live.json in it: step, samples a second and memory are not "
                                    "known; these epochs have ended:"));
  EXPECT_THAT(result.out, HasSubstr("0.700000"));
}

TEST_F(Watched, WrongArgumentsAreNamed) {
  EXPECT_EQ(watch({"--every", "0"}).status, 2);
  EXPECT_EQ(run_program("tare", {"watch", "absent"}, folder_.path()).status, 2);
  std::filesystem::create_directories(folder_ / "none");
  EXPECT_EQ(run_program("tare", {"watch", "none"}, folder_.path()).status, 2);
}

}  // namespace
}  // namespace tare::testing

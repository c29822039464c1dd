// Commands whose output is closed or full, and the limit on file sizes, with real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/tiny_sweep.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Executes a line of bash, in which $tare is the program.
ProgramResult shell(const Sweep& place, const std::string& line) {
  const std::string tare = "tare='" + fs::absolute(program_path("tare")).string() + "'; ";
  return run_program("/bin/bash", {"-c", tare + line}, place.folder.path());
}

TEST(Output, ARunContinuesWhenItIsClosed) {
  const Sweep place;
  const auto run =
      shell(place, "\"$tare\" run recipe.yaml export=tiny.tare | head -1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(fs::exists(place.folder / "runs/tiny/tiny.tare")) << run.out;
}

TEST(Output, ARunWithoutOutputEndsWithItsOwnCode) {
  const Sweep place;
  const auto failed =
      shell(place,
            "\"$tare\" run recipe.yaml --host-budget 64KiB --no-plan micro_batch=32 2>&1 | true; "
            "exit ${PIPESTATUS[0]}");
  EXPECT_EQ(failed.status, 3);
  EXPECT_EQ(shell(place, "\"$tare\" run recipe.yaml --dry-run > /dev/full").status, 0);
}

TEST(Output, ASweepContinuesWhenItIsClosed) {
  const Sweep place;
  const auto run = shell(place,
                         "\"$tare\" sweep run sweep.yaml 'parameters={model.width: [4, 8]}' | "
                         "true; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* name : {"tiny0_mw4", "tiny1_mw8"})
    EXPECT_TRUE(fs::exists(place.folder / "runs/tiny" / name / "report.json")) << name;
}

TEST(Output, IsWhatOtherCommandsAreFor) {
  const Sweep place;
  const auto closed = shell(place, "\"$tare\" top --watch 0.1 | head -1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(closed.status, 128 + SIGPIPE) << "it has nobody to print for";
  EXPECT_EQ(closed.err, "");
  for (const char* words : {"ls models", "--help", "plan recipe.yaml", "man run"}) {
    const auto full = shell(place, "\"$tare\" " + std::string(words) + " > /dev/full");
    EXPECT_EQ(full.status, 4) << words;
    EXPECT_THAT(full.err, HasSubstr("] standard output: ")) << words;
  }
}

TEST(FileLimit, IsAnErrorWithPathAndReason) {
  const Sweep place;
  // Enough for tables and the report, not for weights.
  const auto kept = shell(place, "ulimit -f 16; exec \"$tare\" run recipe.yaml save_every=1");
  EXPECT_EQ(kept.status, 4) << kept.err;
  EXPECT_THAT(kept.out, HasSubstr("after destroy: 0 B")) << "the training continued";
  EXPECT_THAT(kept.err, HasSubstr("the last checkpoint could not be written"));
  EXPECT_THAT(kept.err, HasSubstr(": File too large"));
  const auto exported = shell(place, "ulimit -f 16; exec \"$tare\" run recipe.yaml export=a.tare");
  EXPECT_EQ(exported.status, 4) << exported.err;
  EXPECT_THAT(exported.err, HasSubstr("a.tare"));
  EXPECT_THAT(exported.err, HasSubstr(": File too large"));
}

}  // namespace
}  // namespace tare::testing

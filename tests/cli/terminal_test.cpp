// Tests that no output of the program to a terminal is wider than the terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "cli/tiny_recipe.h"
#include "support/environment.h"
#include "support/terminal.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The same text without colours, and of each line what stands there in the end.
std::string as_seen(const std::string& text) {
  std::string plain = std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
  std::istringstream lines(plain);
  plain.clear();
  for (std::string line; std::getline(lines, line);) {
    const size_t erased = line.rfind("\x1b[K");
    plain += (erased == std::string::npos ? line : line.substr(erased + 3)) + '\n';
  }
  return plain;
}

size_t letters(const std::string& line) {
  return static_cast<size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

/// A folder with a recipe of long names, a run of it and a sweep.
class Terminal : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    std::string recipe = kTinyRecipe;
    const std::string name = "name: all,";
    recipe.replace(recipe.find(name), name.size(), "name: all-of-the-layers-at-a-low-rate,");
    std::ofstream(*folder_ / "tiny.yaml") << recipe << "export: tiny.tare\nmetrics: [accuracy]\n";
    std::ofstream(*folder_ / "sweep.yaml")
        << "name: a-sweep-with-a-long-name\nrecipe: tiny.yaml\nmetric: {name: valid_loss}\n"
           "parameters: {phases.0.lr: [1.0e-3, 1.0e+30]}\n"
           "resources: {jobs: 1}\non_failure: {max_retries: 0}\n";
    ASSERT_EQ(run_program("tare", {"run", "tiny.yaml"}, folder_->path()).status, 0);
    ASSERT_EQ(run_program("tare", {"sweep", "run", "sweep.yaml"}, folder_->path()).status, 1)
        << "the second run has diverged";
  }
  static void TearDownTestSuite() { folder_.reset(); }

  /// Returns the output of the command; no line of it may be wider than the terminal.
  static std::string checked(const std::vector<std::string>& arguments) {
    const auto result = run_on_terminal(GetParam(), "tare", arguments, folder_->path());
    EXPECT_EQ(result.status, 0) << result.out;
    const std::string text = as_seen(result.out);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(letters(line), static_cast<size_t>(GetParam())) << arguments[0] << ": " << line;
    return text;
  }
  static inline std::unique_ptr<TempDir> folder_;
};

TEST_P(Terminal, HoldsPlans) {
  const std::string text = checked({"plan", "tiny.yaml"});
  EXPECT_THAT(text, HasSubstr("where\n"));
  EXPECT_THAT(text, HasSubstr("fits\n"));
}

TEST_P(Terminal, HoldsLists) {
  EXPECT_THAT(checked({"ls", "models"}), HasSubstr("resnet9"));
  EXPECT_THAT(checked({"ls", "datasets"}), HasSubstr("image_folder"));
  EXPECT_THAT(checked({"--help"}), HasSubstr("Exit codes"));
  EXPECT_THAT(checked({"explain"}), HasSubstr("meaning"));
  EXPECT_THAT(checked({"explain", "data.collate"}), HasSubstr("pad, stack"));
}

TEST_P(Terminal, HoldsBundlesCheckpointsAndDevices) {
  EXPECT_THAT(checked({"inspect", "runs/tiny/tiny.tare"}), HasSubstr("float32 ["));
  EXPECT_THAT(checked({"top"}), HasSubstr("host"));
}

TEST_P(Terminal, HoldsRuns) {
  const std::string text = checked({"run", "tiny.yaml", "--verbose", "--overwrite"});
  EXPECT_THAT(text, HasSubstr("parameters"));
  EXPECT_THAT(checked({"run", "tiny.yaml", "--overwrite"}), HasSubstr("rate, phase 1 of 1: "));
}

TEST_P(Terminal, HoldsSweeps) {
  EXPECT_THAT(checked({"sweep", "plan", "sweep.yaml"}), HasSubstr("round 1"));
  const std::string text = checked({"sweep", "status", "sweep.yaml"});
  EXPECT_THAT(text, HasSubstr("valid_loss"));
  EXPECT_THAT(text, HasSubstr("COMPLETE"));
}

INSTANTIATE_TEST_SUITE_P(Columns, Terminal, ::testing::Values(60, 80),
                         [](const auto& test) { return std::to_string(test.param); });

TEST(PlainOutput, DoesNotDependOnAnyWindow) {
  const TempDir folder;
  std::ofstream(folder / "tiny.yaml") << kTinyRecipe;
  const ScopedVariable columns("COLUMNS", "40");
  const auto plan = run_program("tare", {"plan", "tiny.yaml"}, folder.path());
  EXPECT_THAT(plan.out, HasSubstr("phase  batch"));
  EXPECT_THAT(plan.out, HasSubstr("largest batch  where\n"));
  EXPECT_THAT(plan.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace tare::testing

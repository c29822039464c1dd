// The recipes of models of many tensors: each ends, its plan is exact, and it survives a budget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "support/program.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

struct Recipe {
  const char* name;
  const char* budget;  ///< less than a whole batch takes
};
void PrintTo(const Recipe& recipe, std::ostream* out) { *out << recipe.name; }

class ManyTensors : public ::testing::TestWithParam<Recipe> {};

/// The peaks that the program prints: planned, measured.
std::pair<std::string, std::string> peaks(const std::string& out) {
  static const std::regex line("planned peak ([0-9]+) B, measured ([0-9]+) B");
  std::smatch found;
  if (!std::regex_search(out, found, line)) return {};
  return {found[1], found[2]};
}

TEST_P(ManyTensors, ArePlannedToTheByte) {
  const TempDir folder;
  const auto result = run_program(GetParam().name, {}, folder.path());
  ASSERT_EQ(result.status, 0) << result.err;
  const auto [planned, measured] = peaks(result.out);
  EXPECT_FALSE(planned.empty()) << result.out;
  EXPECT_EQ(planned, measured);
}

TEST_P(ManyTensors, SurviveABudget) {
  const TempDir folder;
  const auto result = run_program(GetParam().name, {GetParam().budget}, folder.path());
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("micro-batch of train: ")) << result.out;
}

TEST_P(ManyTensors, ReportABudgetThatIsNone) {
  const TempDir folder;
  const auto no_number = run_program(GetParam().name, {"abc"}, folder.path());
  EXPECT_EQ(no_number.status, 2);
  EXPECT_THAT(no_number.err, HasSubstr("budget is not a number of bytes"));
  const auto too_small = run_program(GetParam().name, {"1KiB"}, folder.path());
  EXPECT_EQ(too_small.status, 3);
  EXPECT_THAT(too_small.err, HasSubstr("of a budget of"));
}

TEST(SeveralOptimizers, ResumeToEqualWeights) {
  const TempDir folder;
  const auto result = run_program("gan_digits", {}, folder.path());
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("resumed to equal weights"));
  EXPECT_THAT(result.out, HasSubstr("purged in between, went on to equal weights"));
}

TEST(KFold, LeavesEquallyManyBytesAfterEachFold) {
  const TempDir folder;
  const auto result = run_program("kfold", {"100"}, folder.path());
  ASSERT_EQ(result.status, 0) << result.err;
  static const std::regex line("fold [0-4]  accuracy [0-9.e-]+  tracked ([0-9]+) bytes");
  std::set<std::string> bytes;
  int folds = 0;
  for (std::sregex_iterator at(result.out.begin(), result.out.end(), line), end; at != end; ++at) {
    ++folds;
    bytes.insert((*at)[1]);
  }
  EXPECT_EQ(folds, 5) << result.out;
  EXPECT_EQ(bytes.size(), 1U) << result.out;
  EXPECT_THAT(result.out, HasSubstr("above the start"));
}

TEST(Staged, EndsOnFewBatches) {
  const TempDir folder;
  const auto result = run_program("staged_digits", {"1"}, folder.path());
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"pretrain", "head", "all", "valid: loss ", "after destroy the process"})
    EXPECT_THAT(result.out, HasSubstr(part));
  EXPECT_TRUE(std::filesystem::exists(folder / "runs/staged_digits/digits.tare"));
}

TEST(Fork, RunsEachCombinationOnce) {
  const TempDir folder;
  std::filesystem::create_directories(folder / "recipes/configs/digits");
  std::string config = io::read_text(std::filesystem::path(std::getenv("TARE_SOURCE_DIR")) /
                                     "recipes/configs/digits/fork.json");
  static const std::regex images("\"images\": *[0-9]+");
  config = std::regex_replace(config, images, "\"images\": 100");
  io::write_atomically(folder / "recipes/configs/digits/fork.json", config);
  const auto result = run_program("fork_digits", {}, folder.path());
  ASSERT_EQ(result.status, 0) << result.err;
  int runs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "runs/fork"))
    runs += entry.path().filename() == "history.json" ? 1 : 0;
  EXPECT_EQ(runs, 4);
}

TEST(SelfSupervised, EndsOnFewSamples) {
  const TempDir folder;
  const auto tuned = run_program("self_supervised", {"200"}, folder.path());
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  for (const char* line :
       {"turns: accuracy 0.", "scratch: accuracy 0.", "pre-trained: accuracy 0."})
    EXPECT_THAT(tuned.out, HasSubstr(line));
}

TEST(Distillation, EndsOnFewSamples) {
  const TempDir folder;
  const auto taught = run_program("distil_digits", {"200"}, folder.path());
  ASSERT_EQ(taught.status, 0) << taught.err;
  for (const char* line :
       {"teacher: accuracy 0.", "with labels: accuracy 0.", "of the teacher: accuracy 0."})
    EXPECT_THAT(taught.out, HasSubstr(line));
}

TEST(Replicas, TrainOnTheHostTwiceAsOnce) {
  const TempDir folder;
  const auto result = run_program("replicas", {}, folder.path());
  ASSERT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 replicas, accuracy 0.9"));
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, ManyTensors,
    ::testing::Values(Recipe{"siamese_digits", "5MiB"}, Recipe{"image_and_table", "1300KiB"},
                      Recipe{"two_targets", "560KiB"}, Recipe{"segmentation", "15MiB"},
                      Recipe{"brackets", "3MiB"}, Recipe{"gan_digits", "6MiB"}),
    [](const auto& recipe) { return std::string(recipe.param.name); });

}  // namespace
}  // namespace tare::testing

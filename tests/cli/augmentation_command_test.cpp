// Augmentations with the commands: a recipe is planned and run, its bundle predicts, and mistakes
// are refused before any work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/program.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AugmentedRecipe : public ::testing::Test {
 protected:
  /// Calls a command for the shipped recipe with few generated digits: two steps of 50 samples.
  [[nodiscard]] ProgramResult tare(const std::string& verb,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{
        verb,
        std::string(std::getenv("TARE_SOURCE_DIR")) + "/recipes/configs/digits/augmented.yaml",
        "data.name=generated_digits",
        "data.train=100",
        "data.valid=50",
        "data.size=28",
        "data.count=150",
        "phases.0.epochs=1",
        "model.width=4",
        "workers=0",
        "device=cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("tare", words, folder_.path());
  }
  TempDir folder_;
};

/// Returns the number behind a key of a JSON text.
std::string figure_of(const std::string& json, const std::string& key) {
  const size_t at = json.find('"' + key + "\": ");
  if (at == std::string::npos) return "no " + key;
  const size_t start = at + key.size() + 4;
  return json.substr(start, json.find_first_of(",\n}", start) - start);
}

TEST_F(AugmentedRecipe, PeaksAsPlannedAndPredictsFromTheCentre) {
  const auto run = tare("run", {"--json", "run.json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string json = io::read_text(folder_ / "run.json");
  EXPECT_EQ(figure_of(json, "planned_peak_bytes"), figure_of(json, "peak_bytes"));
  const auto inspect =
      run_program("tare", {"inspect", "runs/digits-augmented/digits.tare"}, folder_.path());
  EXPECT_EQ(inspect.status, 0) << inspect.err;
  EXPECT_THAT(inspect.out, HasSubstr("centre_crop"));
  EXPECT_THAT(inspect.out, ::testing::Not(HasSubstr("affine")));
  const auto made = run_program(
      "tare", {"data", "make", "generated_digits", "--count", "3", "--png", "--out", "png"},
      folder_.path());
  ASSERT_EQ(made.status, 0) << made.err;
  std::vector<std::string> words{"predict", "runs/digits-augmented/digits.tare"};
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_ / "png"))
    if (file.is_regular_file()) words.push_back(file.path().string());
  ASSERT_EQ(words.size(), 5U);
  const auto predicted = run_program("tare", words, folder_.path());
  EXPECT_EQ(predicted.status, 0) << predicted.err;
}

TEST_F(AugmentedRecipe, MistakesAreRefusedBeforeAnyWork) {
  const auto refused = [&](const std::vector<std::string>& more) {
    const auto result = tare("validate", more);
    EXPECT_EQ(result.status, 2) << result.out;
    return result.err;
  };
  EXPECT_EQ(tare("validate").status, 0);
  EXPECT_THAT(refused({"loss=mse"}), AllOf(HasSubstr("mixup"), HasSubstr("cross_entropy")));
  EXPECT_THAT(refused({"data.transforms=[{crop: {height: 29, width: 28}}]"}),
              AllOf(HasSubstr("crop.height"), HasSubstr("at most 28")));
  EXPECT_THAT(refused({"data.transforms=[{crop: {height: 28}}]"}), HasSubstr("width"));
  EXPECT_THAT(refused({"data.transforms=[{colour: {hue: 0.1}}]"}), HasSubstr("one channel"));
  EXPECT_THAT(refused({"data.transforms=[{normalise: {mean: [0], std: [1]}}, rand_augment]"}),
              HasSubstr("a place before normalise"));
  EXPECT_THAT(refused({"callbacks=[{mixup: {alpha: 0}}]"}), HasSubstr("mixup.alpha"));
  EXPECT_THAT(refused({"callbacks=[mixpu]"}), HasSubstr("mixup"));
}

}  // namespace
}  // namespace tare::testing

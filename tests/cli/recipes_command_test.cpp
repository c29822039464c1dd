// The recipes that come with Tare: each trains a few steps and writes what it promises. Those of
// tables and pictures have tests of their own beside their data sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path recipes() { return fs::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs"; }

bool is_sweep(const fs::path& file) {
  return io::read_text(file).find("\nrecipe: ") != std::string::npos;
}

/// Returns the files with recipes of one run over digits, or with sweeps.
std::vector<fs::path> of_digits(bool sweeps) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(recipes() / "digits"))
    if (entry.path().extension() == ".yaml" && is_sweep(entry.path()) == sweeps)
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(Recipes, OfDigitsTrainTwoStepsOfEachPhase) {
  const auto files = of_digits(false);
  EXPECT_GE(files.size(), 6U);
  for (const fs::path& file : files) {
    const TempDir folder;
    const auto run =
        run_program("tare",
                    {"run", file.string(), "device=cpu", "stages=[]", "batch=32", "test=false",
                     "data={name: generated_digits, count: 400, size: 28}", "model.width=4",
                     "limit={train_batches: 2, valid_batches: 1}"},
                    folder.path());
    ASSERT_EQ(run.status, 0) << file << run.err;
    EXPECT_THAT(run.out, HasSubstr("after destroy: 0 B tracked above the start")) << file;
    EXPECT_THAT(run.out, HasSubstr("exported ")) << file;
  }
}

TEST(Recipes, SweepsOverDigitsArePlanned) {
  const auto files = of_digits(true);
  EXPECT_GE(files.size(), 4U);
  for (const fs::path& file : files) {
    const TempDir folder;
    const auto plan =
        run_program("tare",
                    {"sweep", "plan", file.string(), "log_dir=runs/sweep",
                     "set.data={name: generated_digits, count: 400, size: 28, folds: 5}"},
                    folder.path());
    EXPECT_EQ(plan.status, 0) << file << plan.err;
    EXPECT_THAT(plan.out, HasSubstr("planned")) << file;
  }
}

TEST(Recipes, FoldsAreAveraged) {
  const TempDir folder;
  const auto sweep = run_program(
      "tare",
      {"sweep", "run", (recipes() / "digits/folds.yaml").string(), "log_dir=runs/folds",
       "set.data={name: generated_digits, count: 100, size: 28, folds: 5}", "set.batch=16",
       "set.phases.0.epochs=1", "set.device=cpu", "parameters.model.width=[4]"},
      folder.path());
  ASSERT_EQ(sweep.status, 0) << sweep.err;
  EXPECT_THAT(sweep.out, HasSubstr("5 complete, 0 failed"));
  EXPECT_THAT(sweep.out, HasSubstr("over 5 folds"));
}

TEST(Recipes, ShakespeareWritesAText) {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 600; ++i) text += "ROMEO: line " + std::to_string(i) + "\n";
  io::write_atomically(folder / "input.txt", text);
  const auto run = run_program("tare",
                               {"run", (recipes() / "text/shakespeare.yaml").string(), "device=cpu",
                                "batch=8", "phases.0.epochs=1", "model.layers=1", "model.width=32",
                                "limit={train_batches: 2, valid_batches: 1}"},
                               folder.path());
  ASSERT_EQ(run.status, 0) << run.err;
  const auto generated = run_program("tare",
                                     {"generate", "runs/shakespeare/shakespeare.tare",
                                      "ROMEO:", "--temperature", "0.8", "--length", "20"},
                                     folder.path());
  ASSERT_EQ(generated.status, 0) << generated.err;
  EXPECT_TRUE(generated.out.starts_with("ROMEO:")) << generated.out;
  EXPECT_GE(generated.out.size(), 26U) << generated.out;
}

}  // namespace
}  // namespace tare::testing

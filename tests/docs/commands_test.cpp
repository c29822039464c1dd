// Every command of the README and the tutorial is run as it stands there, on small settings.
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "docs/pages.h"
#include "support/program.h"
#include "tare/transform/image.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

struct Command {
  std::string text;
  std::string prints{};              ///< part of the output
  std::vector<std::string> small{};  ///< arguments added to make it short
  std::string excluded{};            ///< why it cannot be run from a test
};

/// In the order of the pages: a command may use what one before it has left.
const std::vector<Command>& commands() {
  static const std::string is_build = "it made the build that this test belongs to";
  static const std::string is_consumer = "tests/consumer does it";
  static const std::vector<std::string> small_sweep{
      "set={data: {name: generated_digits, count: 400}, phases.0.epochs: 1}"};
  static const std::vector<Command> table{
      {.text = "bash recipes/quickstart.sh", .excluded = is_build},
      {.text = "bash tests/run.sh", .excluded = is_build + ", and runs this test"},
      {.text = "cmake --preset release -DTARE_LIBTORCH=DIR && cmake --build build",
       .excluded = is_build},
      {.text = "build/bin/lifecycle_story",
       .excluded = "a measurement, and no part of every build"},
      {.text = "tests/golden/lifecycle_story.py", .excluded = "needs Python's torch"},
      {.text = "tare plan recipes/configs/digits/staged.yaml --device cuda:24GiB",
       .prints = "planned peak",
       .small = {"data.name=generated_digits", "data.count=400", "phases.0.data.count=400"}},
      {.text = "tare run recipes/configs/digits/staged.yaml batch=256 phases.2.epochs=2",
       .prints = "exported runs/digits-staged/digits.tare",
       .small = {"device=cpu", "model.width=4", "data.name=generated_digits", "data.count=400",
                 "phases.0.data.count=400", "phases.4.epochs=1"}},
      {.text = "tare report runs/digits-staged", .prints = "report.html"},
      {.text = "tare sweep plan recipes/configs/digits/sweep.yaml",
       .prints = "digits-sweep: 6 runs",
       .small = small_sweep},
      {.text = "tare sweep run recipes/configs/digits/sweep.yaml trials=2 log_dir=runs/sweep",
       .prints = "digits-sweep: 2 complete, 0 failed",
       .small = small_sweep},
      {.text = "tare sweep run recipes/configs/digits/tune.yaml trials=3 log_dir=runs/tune",
       .prints = " 0 failed, 0 waiting; 3 started",
       .small = small_sweep},
      {.text = "tare sweep report recipes/configs/digits/tune.yaml log_dir=runs/tune",
       .prints = "runs/tune/report.html"},
      {.text = "tare predict runs/digits-staged/digits.tare image.png", .prints = "image.png: "},
      {.text = "tare inspect runs/digits-staged/digits.tare", .prints = "resnet9"},
      {.text = "tare top", .prints = "host "},
      {.text = "tare doctor", .prints = "LibTorch"},
      {.text = "cmake --install build --prefix DIR", .excluded = is_consumer},
      {.text = "cmake -S . -B build -DCMAKE_PREFIX_PATH=DIR", .excluded = is_consumer},
  };
  return table;
}

/// The lines after a prompt, and code spans that begin with a program.
std::vector<std::string> commands_of(const Page& page) {
  std::vector<std::string> found;
  for (const Block& block : page.blocks) {
    if (block.language != "console") continue;
    for (const auto& line : matches(block.text, "\\$ ([^\n]*)")) {
      const std::string command = line.substr(0, line.find("  "));  // a comment may stand behind it
      found.push_back(command);
    }
  }
  for (const auto& span : page.spans) {
    for (auto& command :
         matches(span, "^((?:(?:tare|bash|cmake|ctest|python3?) |build/bin/|tests/.*\\.py).*)$"))
      found.push_back(command);
  }
  return found;
}

TEST(Commands, OfReadmeAndTutorialAreAllInTheTable) {
  std::vector<std::string> in_pages, in_table;
  for (const char* name : {"README.md", "docs/tutorial.md"})
    for (auto& command : commands_of(read_page(name))) in_pages.push_back(command);
  for (const Command& command : commands()) in_table.push_back(command.text);
  EXPECT_THAT(in_pages, UnorderedElementsAreArray(in_table));
}

TEST(Commands, OfReadmeAndTutorialRun) {
  const TempDir folder;
  fs::create_directory_symlink(source_folder() / "recipes", folder / "recipes");
  write_png(folder / "image.png", at::zeros({1, 28, 28}, at::kByte));
  for (const Command& command : commands()) {
    if (!command.excluded.empty()) continue;
    std::istringstream stream(command.text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    const std::string program = words.front();
    words.erase(words.begin());
    words.insert(words.end(), command.small.begin(), command.small.end());
    const auto result = run_program(program, words, folder.path());
    EXPECT_EQ(result.status, 0) << command.text << '\n' << result.err;
    EXPECT_THAT(result.out, HasSubstr(command.prints)) << command.text << '\n' << result.err;
  }
}

}  // namespace
}  // namespace tare::testing

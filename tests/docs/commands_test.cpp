// Every command of the README and the tutorial is run as it stands there, on small settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "docs/pages.h"
#include "support/program.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

struct Command {
  std::string text;
  std::string instead{};             ///< run in its place: the part that a test can run
  std::string prints{};              ///< part of the output
  std::vector<std::string> small{};  ///< arguments added to make it short
  std::string excluded{};            ///< why it cannot be run from a test
};

/// In the order of the pages: a command may use what one before it has left.
const std::vector<Command>& commands() {
  static const std::string is_build = "it made the build that this test belongs to";
  static const std::string is_consumer = "tests/consumer does it";
  const std::vector<std::string> small_run{"device=cpu",        "model.width=4",
                                           "data.count=400",    "data.name=generated_digits",
                                           "phases.4.epochs=1", "phases.0.data.count=400"};
  static const std::vector<std::string> small_sweep{
      "set={data: {name: generated_digits, count: 400}, phases.0.epochs: 1}"};
  static const std::vector<Command> table{
      {.text = "bash recipes/quickstart.sh",
       .instead = "tare run recipes/configs/digits/staged.yaml",
       .prints = "exported runs/digits-staged/digits.tare",
       .small = small_run},
      {.text = "bash tests/run.sh", .excluded = is_build + ", and runs this test"},
      {.text = "export PATH=$PWD/build/bin:$PATH", .excluded = "the test knows the folder"},
      {.text = "tare data make generated_digits --count 20 --png --out images",
       .prints = "images/7/"},
      {.text = "tare predict runs/digits-staged/digits.tare images/7/1.png",
       .prints = "images/7/1.png: "},
      {.text = "tare inspect runs/digits-staged/digits.tare", .prints = "resnet9"},
      {.text = "tare report runs/digits-staged", .prints = "report.html"},
      {.text = "tare ls recipes", .prints = "recipes/configs/digits/staged.yaml"},
      {.text = "tare cp digits/staged mine.yaml", .prints = "mine.yaml"},
      {.text = "tare validate mine.yaml batch=256", .prints = "mine.yaml is valid: 5 phases"},
      {.text = "tare new my_project", .prints = "made the project my_project"},
      {.text = "tare new", .excluded = "a name, not a command"},
      {.text = "tare new DIR", .excluded = "it is done as tare new my_project"},
      {.text = "tare explain phases.lr", .prints = "peak rate"},
      {.text = "tare completion bash", .prints = "complete -F _tare tare"},
      {.text = "tare plan", .excluded = "a name, not a command"},
      {.text = "build/bin/bench_plan 7 FOLDER",
       .excluded = "a measurement, and no part of every build"},
      {.text = "tare run recipes/configs/digits/tight.yaml --host-budget 36MiB",
       .prints = "in micro-batches of ",
       .small = {"device=cpu", "data.name=generated_digits", "data.count=400",
                 "phases.0.epochs=1"}},
      {.text = "cmake --build build --target installable", .excluded = is_consumer},
      {.text = "cmake --preset release -DTARE_LIBTORCH=DIR && cmake --build build",
       .excluded = is_build},
      {.text = "build/bin/lifecycle_story",
       .excluded = "a measurement, and no part of every build"},
      {.text = "tests/golden/lifecycle_story.py", .excluded = "needs Python's torch"},
      {.text = "tare plan recipes/configs/digits/staged.yaml --device cuda:24GiB",
       .prints = "planned peak",
       .small = {"data.name=generated_digits", "data.count=400", "phases.0.data.count=400"}},
      {.text = "tare plan digits/staged --ranks 64 --device cuda:80GiB",
       .prints = "fastest that fits: ",
       .small = {"data.name=generated_digits", "data.count=400", "phases.0.data.count=400"}},
      {.text = "tare run recipes/configs/digits/staged.yaml name=again batch=256 phases.2.epochs=2",
       .prints = "exported runs/again/digits.tare",
       .small = small_run},
      {.text = "tare compare runs/digits-staged runs/again --out compared.html",
       .prints = "highest peak of a phase"},
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
      {.text = "tare top", .prints = "host "},
      {.text = "tare doctor", .prints = "LibTorch"},
      {.text = "cmake --install build --prefix DIR", .excluded = is_consumer},
      {.text = "cmake --install build --prefix DIR", .excluded = is_consumer},  // of both pages
      {.text = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=DIR",
       .excluded = is_consumer},
      {.text = "cmake --build build", .excluded = is_consumer},
      {.text = "./build/waves", .excluded = is_consumer},
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
  for (const Command& command : commands()) {
    if (!command.excluded.empty()) continue;
    std::istringstream stream(command.instead.empty() ? command.text : command.instead);
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

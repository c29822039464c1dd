// Bad input to the real program, one row a mistake: its exit code, one line that names the place
// and what is allowed, and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cli/mistakes.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/program.h"
#include "tare/base/folder_lock.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

// The longest line that still is a message: places and names are cut before.
constexpr size_t kLongestMessage = 1024;

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& part :
       {mistakes_in_the_file(), mistakes_in_names(), mistakes_on_the_command_line(),
        mistakes_in_data(), mistakes_with_files()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Every file by its relative path with its content; folders with none.
std::map<std::string, std::string> tree(const fs::path& root) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    found[fs::relative(entry.path(), root).string()] =
        entry.is_regular_file() ? content_of(entry.path()) : "";
  }
  return found;
}

class CliMistakes : public ::testing::TestWithParam<Mistake> {
 protected:
  static void SetUpTestSuite() {
    const TempDir folder;
    write(folder / "tiny.yaml", kRecipe);
    const auto run = run_program("tare", {"run", "tiny.yaml"}, folder.path());
    ASSERT_EQ(run.status, 0) << run.err;
    const auto digits = run_program(
        "tare", {"data", "make", "generated_digits", "--count", "60", "--out", "d"}, folder.path());
    ASSERT_EQ(digits.status, 0) << digits.err;
    made_ = {content_of(folder / "runs/tiny/tiny.tare"),
             content_of(folder / "d/images-idx3-ubyte.gz"),
             content_of(folder / "d/labels-idx1-ubyte.gz")};
  }

  void SetUp() override { write(folder_ / "tiny.yaml", kRecipe); }

  // One line, by the program itself, that no input can forge or flood.
  static void expect_one_line(const std::string& text) {
    EXPECT_THAT(text, ::testing::StartsWith("[tare] error: ["));
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
    EXPECT_LE(text.size(), kLongestMessage) << text;
    EXPECT_EQ(text.find("allowed:"), text.rfind("allowed:")) << text;
    EXPECT_TRUE(std::ranges::none_of(text, [](char c) {
      return c != '\n' && (static_cast<unsigned char>(c) < ' ' || c == 127);
    })) << text;
  }

  inline static Made made_{};
  TempDir folder_;
  ScopedVariable home_{"TARE_HOME", folder_.path().string() + "/home"};  // no data set of the user
};

TEST_P(CliMistakes, IsOneClearMessageAndLeavesNothing) {
  const Mistake& mistake = GetParam();
  if (mistake.prepare) mistake.prepare(folder_.path(), made_);
  const auto before = tree(folder_.path());
  const auto result = run_program("tare", mistake.arguments, folder_.path());
  EXPECT_EQ(result.status, mistake.code) << result.err;
  expect_one_line(result.err);
  for (const auto& piece : mistake.pieces) EXPECT_THAT(result.err, HasSubstr(piece));
  if (!mistake.trains) {
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(tree(folder_.path()), before);
    return;
  }
  for (const auto& [path, content] : tree(folder_.path())) {
    EXPECT_THAT(path, ::testing::Not(::testing::AnyOf(::testing::EndsWith(".partial"),
                                                      ::testing::EndsWith("report.json"),
                                                      ::testing::EndsWith(".tare"))));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CliMistakes, ::testing::ValuesIn(mistakes()),
                         [](const auto& row) { return row.param.name; });

TEST(CliMistake, AreAtLeast40) { EXPECT_GE(mistakes().size(), 40U); }

TEST(CliMistake, ASecondProcessInTheSameFolderIsRefused) {
  const TempDir folder;
  write(folder / "tiny.yaml", kRecipe);
  fs::create_directories(folder / "runs/tiny");
  const io::FolderLock lock(folder / "runs/tiny");
  const auto before = tree(folder.path());
  const auto result = run_program("tare", {"run", "tiny.yaml", "--overwrite"}, folder.path());
  EXPECT_EQ(result.status, kBadInput);
  EXPECT_THAT(result.err, HasSubstr("'runs/tiny'"));
  EXPECT_THAT(result.err, HasSubstr("in use by another process"));
  EXPECT_EQ(tree(folder.path()), before);
}

}  // namespace
}  // namespace tare::testing

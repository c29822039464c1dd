// `tare new`, `tare cp`, `tare cat`, `tare validate`, and recipes by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tare_folder.h"
#include "tare/base/io.h"
#include "tare/base/parts.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class ProjectCommands : public ::testing::Test, protected TareFolder {
 protected:
  [[nodiscard]] std::string read(const fs::path& name) const {
    return io::read_text(folder_ / name);
  }
};

TEST_F(ProjectCommands, ANewProjectHasItsOwnNameInEachFile) {
  const auto made = tare({"new", "sub/leaf_net"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("sub/leaf_net"));
  for (const char* file : {"main.cpp", "CMakeLists.txt", "README.md", "recipe.yaml"}) {
    const std::string text = read(fs::path("sub/leaf_net") / file);
    EXPECT_THAT(text, HasSubstr("leaf_net")) << file;
    EXPECT_THAT(text, Not(HasSubstr("my_project"))) << file;
  }
  EXPECT_THAT(read("sub/leaf_net/.gitignore"), HasSubstr("runs/"));
  EXPECT_FALSE(fs::exists(folder_ / "sub/leaf_net/gitignore"));
  // The model of the project is unknown to tare itself, which names the way out.
  const auto run = tare({"validate", "sub/leaf_net/recipe.yaml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("in place of tare"));
}

TEST_F(ProjectCommands, ANewProjectTakesARecipeByName) {
  ASSERT_EQ(tare({"new", "mine/", "--from", "digits/early"}).status, 0);
  const std::string shown = tare({"cat", "digits/early"}).out;
  EXPECT_EQ(read("mine/recipe.yaml"), replaced(replaced(shown, "name: digits-early", "name: mine"),
                                               "export: digits.tare", "export: mine.tare"));
  EXPECT_EQ(tare({"validate", "mine/recipe.yaml"}).status, 0);
}

TEST_F(ProjectCommands, ANewProjectSaysWhichPathsAreRelative) {
  write("t.yaml",
        "data: {name: csv, file: houses.csv, target: price, valid_files: [/a/v.csv]}\n"
        "model: {name: tabular, weights: first/w.safetensors}\nloss: mse\nmetrics: []\n"
        "phases: [{data: {name: csv, file: more.csv, target: price}}]\n");
  const auto made = tare({"new", "mine", "--from", "t.yaml"});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto note = [&](const std::string& key, const std::string& file) {
    return "note: " + key + " is relative; in the folder of the project it is " +
           fs::canonical(folder_.path()).string() + '/' + file + '\n';
  };
  EXPECT_THAT(made.out,
              HasSubstr(note("model.weights", "first/w.safetensors") +
                        note("data.file", "houses.csv") + note("phases.0.data.file", "more.csv")));
  EXPECT_THAT(made.out, Not(HasSubstr("valid_files")));
  write("net.pt", "a program of TorchScript");
  write("script.yaml",
        "model: {name: torchscript, options: {file: net.pt, trust: true}}\nphases: [{}]\n");
  const auto script = tare({"new", "other", "--from", "script.yaml"});
  ASSERT_EQ(script.status, 0) << script.err;
  EXPECT_THAT(script.out, HasSubstr(note("model.options.file", "net.pt")));
}

TEST_F(ProjectCommands, ANewProjectReplacesNothing) {
  fs::create_directories(folder_ / "there");
  const auto there = tare({"new", "there"});
  EXPECT_EQ(there.status, 2);
  EXPECT_THAT(there.err, HasSubstr("there already"));
  EXPECT_EQ(tare({"new", "a b"}).status, 2);
  const auto sweep = tare({"new", "other", "--from", "digits/sweep"});
  EXPECT_EQ(sweep.status, 2);
  EXPECT_THAT(sweep.err, HasSubstr("sweep"));
  EXPECT_FALSE(fs::exists(folder_ / "other"));
}

TEST_F(ProjectCommands, ARecipeIsShownAndCopiedByItsName) {
  const auto shown = tare({"cat", "digits/staged"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  ASSERT_EQ(tare({"cp", "digits/staged", "mine.yaml"}).status, 0);
  EXPECT_EQ(read("mine.yaml"), shown.out);
  EXPECT_EQ(tare({"cat", "mine.yaml"}).out, shown.out);
  EXPECT_EQ(tare({"cat", "digits/staged.yaml"}).out, shown.out);
  write("mine.yaml", "name: changed\n");
  const auto again = tare({"cp", "digits/staged", "mine.yaml"});
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  EXPECT_EQ(read("mine.yaml"), "name: changed\n");
  EXPECT_EQ(tare({"cp", "digits/staged", "mine.yaml", "--overwrite"}).status, 0);
  EXPECT_EQ(read("mine.yaml"), shown.out);
  EXPECT_EQ(tare({"cp", "digits/staged", "."}).status, 0);
  EXPECT_EQ(read("staged.yaml"), shown.out);
}

TEST_F(ProjectCommands, AnUnknownNameIsRefusedWithTheNearest) {
  for (const char* command : {"cat", "validate", "run", "plan"}) {
    const auto result = tare({command, "digits/stagd"});
    EXPECT_EQ(result.status, 2) << command;
    EXPECT_THAT(result.err, HasSubstr("digits/staged")) << command;
  }
}

TEST_F(ProjectCommands, ValidateChecksDataAndModelAndWritesNothing) {
  write("r.yaml", R"(name: r
device: cpu
data: {name: generated_digits, count: 100, size: 16}
model: {name: resnet9, width: 4}
phases: [{epochs: 1}]
)");
  const auto valid = tare({"validate", "r.yaml"});
  ASSERT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("r.yaml is valid: 1 phase, model resnet9"));
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"model.classes=3", "classes"},
      {"batch=1000", "batch"},
      {"phases.0.freeze_to=40", "freeze_to"},
      {"phases.0.nonsense=1", "nonsense"},
      {"loss=mse", "loss"}};
  for (const auto& [setting, word] : wrong) {
    const auto refused = tare({"validate", "r.yaml", setting});
    EXPECT_EQ(refused.status, 2) << setting << refused.out;
    EXPECT_THAT(refused.err, HasSubstr(word)) << setting;
  }
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

}  // namespace
}  // namespace tare::testing

// Own files with every command that takes a recipe: plan, run, dry run, resume, sweep.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "support/files.h"
#include "support/tare_folder.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// A grey picture of 2 x 2 pixels.
constexpr const char* kPng =
    "89504e470d0a1a0a0000000d494844520000000200000002080000000057dd52f80000000e494441"
    "5478da63106860f8e00000047601c1af808cdb0000000049454e44ae426082";

std::string bytes_of(const std::string& hexadecimal) {
  std::string bytes;
  for (size_t i = 0; i < hexadecimal.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16));
  return bytes;
}

class OwnFiles : public ::testing::TestWithParam<const char*>, protected TareFolder {
 protected:
  OwnFiles() {
    for (const char* label : {"cat", "dog"}) {
      fs::create_directories(folder_ / "pictures" / label);
      for (int i = 0; i < 20; ++i)
        std::ofstream(folder_ / "pictures" / label / (std::to_string(i) + ".png"))
            << bytes_of(kPng);
    }
    EXPECT_EQ(tare({"data", "make", "generated_digits", "--count", "40", "--out", "d"}).status, 0);
    std::ofstream(folder_ / "own.yaml")
        << "name: own\ndevice: cpu\nmodel: mlp\nmetrics: "
           "[accuracy]\ndata: "
        << GetParam() << "\nphases: [{name: only}]\nexport: m.tare\n";
    std::ofstream(folder_ / "sweep.yaml")
        << "name: s\nrecipe: own.yaml\nmetric: {name: valid_loss, goal: minimize}\n"
           "parameters: {phases.0.lr: [1.0e-3, 1.0e-2]}\nresources: {jobs: 1}\n";
  }
};

TEST_P(OwnFiles, ArePlannedAndRunAsPlanned) {
  const auto plan = tare({"plan", "own.yaml"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("fits"));
  EXPECT_EQ(tare({"run", "own.yaml", "--dry-run"}).status, 0);
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  for (const char* run : {"runs/own", "runs/own-2"}) {
    const auto result = tare({"run", "own.yaml"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("(planned "));
    EXPECT_THAT(result.err, Not(HasSubstr("no plan")));
    EXPECT_TRUE(fs::exists(folder_ / run / "m.tare")) << run;
  }
  EXPECT_EQ(tare({"run", "own.yaml", "--resume"}).status, 2) << "both have ended";
}

TEST_P(OwnFiles, AreSwept) {
  EXPECT_EQ(tare({"sweep", "plan", "sweep.yaml"}).status, 0);
  const auto result = tare({"sweep", "run", "sweep.yaml"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 complete, 0 failed"));
}

/// A bundle of a model of pictures, and pictures.
class Piped : public ::testing::Test {
 protected:
  Piped() {
    EXPECT_EQ(shell("tare data make generated_digits --count 12 --png --out 'own pictures'").status,
              0);
    std::ofstream(folder_ / "own.yaml")
        << "name: own\ndevice: cpu\nmodel: mlp\ndata: {name: image_folder, folder: own pictures, "
           "stratify: false}\nphases: [{name: only}]\nexport: m.tare\n";
    const auto run = shell("tare run own.yaml");
    EXPECT_EQ(run.status, 0) << run.err;
  }
  [[nodiscard]] ProgramResult shell(const std::string& line) const {
    const std::string program = fs::absolute(program_path("tare")).string();
    return run_program("/bin/bash",
                       {"-c", "set -o pipefail; tare() { '" + program + "' \"$@\"; }; " + line},
                       folder_.path());
  }

  TempDir folder_;
  ScopedVariable home_{"TARE_HOME", folder_.path().string() + "/home"};
};

TEST_F(Piped, ListsOfPathsArePredicted) {
  for (const char* list : {"-print0", "-printf '%p\\n'", "-printf '%p\\r\\n'"}) {
    const auto result = shell(std::string("find 'own pictures' -name '*.png' ") + list +
                              " | tare predict runs/own/m.tare -");
    EXPECT_EQ(result.status, 0) << list << result.err;
    EXPECT_EQ(std::ranges::count(result.out, '\n'), 12) << list << result.out;
  }
}

TEST_F(Piped, WhatIsNoListAndNoPictureIsRefused) {
  const auto nothing = shell("tare predict runs/own/m.tare - </dev/null");
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, HasSubstr("standard input holds no sample"));
  const auto two = shell("cat 'own pictures'/*/*.png | tare predict runs/own/m.tare -");
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.err, HasSubstr("more than one PNG"));
}

TEST_F(Piped, PicturesOfEveryFormatArePredicted) {
  const fs::path golden = fs::path(TARE_GOLDEN) / "pictures";
  for (const char* name : {"rgb.png", "sampled.jpg", "full.jpeg", "lossy.webp"}) {
    fs::copy(golden / name, folder_ / name);
    const auto result = shell(std::string("tare predict runs/own/m.tare ") + name +
                              " && tare predict runs/own/m.tare - <" + name);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(std::ranges::count(result.out, '\n'), 2) << result.out;
    const auto two =
        shell(std::string("cat ") + name + " " + name + " | tare predict runs/own/m.tare -");
    EXPECT_EQ(two.status, 2) << name << two.out;
    EXPECT_THAT(two.err, HasSubstr("holds more than one")) << name;
  }
}

TEST_F(Piped, AFolderIsChecked) {
  const auto good = shell("tare data check 'own pictures'");
  EXPECT_EQ(good.status, 0) << good.out << good.err;
  EXPECT_THAT(good.out, HasSubstr("12 pictures: 12 PNG; 12 grey"));
  std::ofstream(folder_ / "own pictures/7/bad.jpg") << "no picture";
  const auto bad = shell("tare data check 'own pictures'");
  EXPECT_EQ(bad.status, 2) << bad.out;
  EXPECT_THAT(bad.out, HasSubstr("error: 7/bad.jpg: header: is not that of a PNG, JPEG or WebP"));
  const auto json = shell("tare data check --json 'own pictures'");
  EXPECT_EQ(json.status, 2);
  EXPECT_THAT(json.out, HasSubstr("\"path\": \"7/bad.jpg\""));
  EXPECT_EQ(shell("tare data check absent").status, 2);
  const auto option = shell("tare data check --count 3 'own pictures'");
  EXPECT_EQ(option.status, 2);
  EXPECT_THAT(option.err, HasSubstr("--count is an option of tare data make"));
}

TEST_F(Piped, FilesOfOtherKindsAreListed) {
  for (int i = 0; i < 4; ++i)
    std::ofstream(folder_ / "own pictures/7" / (std::to_string(i) + ".gif")) << "GIF89a";
  const auto check = shell("tare data check 'own pictures'");
  EXPECT_EQ(check.status, 0) << check.out << check.err;
  EXPECT_THAT(check.out, HasSubstr("skipped  files  of another kind than pictures\n"
                                   ".gif         4  7/0.gif, 7/1.gif, 7/2.gif, ...\n"));
  EXPECT_THAT(check.out, HasSubstr("0 errors, 0 warnings"));
  EXPECT_THAT(shell("tare data check --json 'own pictures'").out,
              HasSubstr("\"extension\": \".gif\",\n      \"files\": 4"));
}

TEST_F(Piped, ASampleThatFailsIsInTheJsonToo) {
  const auto result = shell(
      "(find 'own pictures' -name '*.png'; echo absent.png) | "
      "tare predict --json runs/own/m.tare -");
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("absent.png: No such file or directory"));
  EXPECT_THAT(result.out, HasSubstr("\"path\": \"absent.png\""));
  EXPECT_THAT(result.out, HasSubstr("\"error\": \"[io.open] absent.png: No such file"));
}

// The recipe that comes with Tare, on a folder of twelve pictures of each of two classes.
TEST(TransferRecipe, TakesItsHeadFromOneDataSetToTheFolder) {
  const TempDir folder;
  for (const char* label : {"light", "dark"}) {
    fs::create_directories(folder / "pictures" / label);
    for (int i = 0; i < 12; ++i)
      std::ofstream(folder / "pictures" / label / (std::to_string(i) + ".png")) << bytes_of(kPng);
  }
  const std::string recipe =
      std::string(std::getenv("TARE_SOURCE_DIR")) + "/recipes/configs/pictures/transfer.yaml";
  const std::vector<std::string> small{
      recipe,        "device=cpu",        "batch=4",           "workers=0",        "model.width=4",
      "data.size=8", "phases.0.batch=16", "phases.1.epochs=1", "phases.2.epochs=1"};
  const auto command = [&](const std::string& verb, std::vector<std::string> more) {
    std::vector<std::string> words{verb};
    words.insert(words.end(), small.begin(), small.end());
    words.insert(words.end(), more.begin(), more.end());
    return run_program("tare", words, folder.path());
  };
  const auto classes = command("validate", {"model.classes=2"});
  EXPECT_EQ(classes.status, 2);
  EXPECT_THAT(classes.err, HasSubstr("10 classes of the data of pretrain, got 2"));
  const std::vector<std::string> few{"phases.0.data.count=80", "phases.0.epochs=1"};
  EXPECT_EQ(command("plan", few).status, 0);
  const auto run = command("run", few);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("all: "));
  const auto predicted =
      run_program("tare", {"predict", "runs/transfer", "pictures/dark/3.png"}, folder.path());
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, ::testing::ContainsRegex("3.png: (light|dark) "));
}

std::string kind_of(const ::testing::TestParamInfo<const char*>& test) {
  constexpr std::array kNames{"Png", "Streamed", "Idx"};
  return kNames.at(test.index);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, OwnFiles,
    ::testing::Values(
        "{name: image_folder, folder: pictures}",
        "{name: image_folder, folder: pictures, cache: 64}",
        "{name: idx, images: d/images-idx3-ubyte.gz, labels: d/labels-idx1-ubyte.gz}"),
    kind_of);

}  // namespace
}  // namespace tare::testing

// Own files with every command that takes a recipe: plan, run, dry run, resume, sweep.
#include <gmock/gmock.h>

#include <fstream>

#include "support/environment.h"
#include "support/files.h"
#include "support/program.h"

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

class OwnFiles : public ::testing::TestWithParam<const char*> {
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
  [[nodiscard]] ProgramResult tare(const std::vector<std::string>& words) const {
    return run_program("tare", words, folder_.path());
  }

  TempDir folder_;
  ScopedVariable home_{"TARE_HOME", folder_.path().string() + "/home"};
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

INSTANTIATE_TEST_SUITE_P(
    Kinds, OwnFiles,
    ::testing::Values(
        "{name: png_folder, folder: pictures}",
        "{name: idx, images: d/images-idx3-ubyte.gz, labels: d/labels-idx1-ubyte.gz}"),
    [](const auto& test) { return std::string(test.index == 0 ? "Png" : "Idx"); });

}  // namespace
}  // namespace tare::testing

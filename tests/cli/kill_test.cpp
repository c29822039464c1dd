// A run that is killed at random moments and resumed ends as an undisturbed one.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>

#include "support/deep.h"
#include "support/files.h"
#include "support/program.h"
#include "support/seed.h"
#include "support/test_device.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecipe = R"(name: killed
batch: 32
save_every: 3
data: {name: generated_digits, count: 400, size: 16, transforms: [{shift: {pixels: 1}}]}
model: {name: resnet9, width: 4, dropout: 0.2}
phases:
  - {name: first, epochs: 6, lr: 1.0e-2, save: first}
  - {name: head, load: first, reset_head: true, freeze_to: -1, epochs: 6, lr: 1.0e-2}
  - {name: all, epochs: 8, lr: {from: 1.0e-3, to: 1.0e-2}}
export: killed.tare
)";

/// Settings of a run that validates inside epochs, decides by that, and saves beside the training.
constexpr const char* kInside = R"(valid_every: 2
save_in_background: true
callbacks: [{reduce_on_plateau: {patience: 0, factor: 0.5}}, jsonl_log]
)";

struct Place {
  explicit Place(const std::string& settings = "") {
    std::ofstream(folder / "killed.yaml")
        << kRecipe << settings << "device: " << test_device() << '\n';
  }
  [[nodiscard]] std::vector<std::string> arguments() const {
    return {"run", "killed.yaml", "--resume", "auto"};
  }
  [[nodiscard]] fs::path run() const { return folder.path() / "runs/killed"; }
  TempDir folder;
};

/// The figures of the lines of JSON, without times.
std::string validations_in(const fs::path& log) {
  std::istringstream lines(content_of(log));
  std::string all;
  for (std::string line; std::getline(lines, line);)
    if (line.find(R"("type":"validation")") != line.npos)
      all += line.substr(0, line.find(R"("seconds")")) + '\n';
  return all;
}

class Killed : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Recipe, Killed, ::testing::Values("", kInside), [](const auto& each) {
  return std::string(*each.param == 0 ? "Plain" : "ValidatingAndSavingInside");
});

TEST_P(Killed, AtRandomMomentsTheRunEndsAsTheUndisturbedOne) {
  const Place straight(GetParam());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_program("tare", straight.arguments(), straight.folder.path()).status, 0);
  const double whole_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  std::mt19937_64 random(test_seed());
  const int wanted = test_device() == "cpu" ? reduced(20, 200) : reduced(3, 20);
  int kills = 0, runs = 0;
  while (kills < wanted) {
    const Place place(GetParam());
    ++runs;
    for (bool ended = false; !ended;) {
      Program program("tare", place.arguments(), place.folder.path());
      const double delay_s = std::uniform_real_distribution<>(0.1, whole_s)(random);
      const timespec delay{static_cast<time_t>(delay_s),
                           static_cast<long>(1e9 * (delay_s - std::floor(delay_s)))};
      if (kills < wanted) {
        ::nanosleep(&delay, nullptr);
        ::kill(program.pid(), SIGKILL);
      }
      const ProgramResult result = program.wait();
      ended = result.status == 0;
      kills += !ended;
      ASSERT_TRUE(ended || result.status == 128 + SIGKILL) << result.status << result.err;
    }
    EXPECT_TRUE(content_of(place.run() / "killed.tare") ==
                content_of(straight.run() / "killed.tare"));
    for (const char* phase : {"first.csv", "head.csv", "all.csv"})
      EXPECT_EQ(rows_without_time(place.run() / phase), rows_without_time(straight.run() / phase))
          << phase;
    for (const char* steps : {"first.steps.csv", "head.steps.csv", "all.steps.csv"})
      EXPECT_EQ(content_of(place.run() / steps), content_of(straight.run() / steps)) << steps;
    const std::string inside = validations_in(straight.run() / "log.jsonl");
    EXPECT_EQ(validations_in(place.run() / "log.jsonl"), inside);
    EXPECT_EQ(inside.empty(), *GetParam() == 0);
    EXPECT_FALSE(fs::exists(place.run() / "autosave-0"));
  }
  std::printf("%d kills over %d runs\n", kills, runs);
}

TEST(Signalled, TheRunSavesAndResumesAndSaysSo) {
  const Place straight, place;
  ASSERT_EQ(run_program("tare", straight.arguments(), straight.folder.path()).status, 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    Program program("tare", place.arguments(), place.folder.path());
    while (program.read("out").find("train_loss") == std::string::npos &&
           ::kill(program.pid(), 0) == 0)
      ::usleep(1000);
    ::kill(program.pid(), signal);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.status, 128 + signal) << result.err;
    EXPECT_NE(result.err.find("the same command continues from there"), std::string::npos)
        << result.err;
  }
  EXPECT_EQ(run_program("tare", place.arguments(), place.folder.path()).status, 0);
  EXPECT_TRUE(content_of(place.run() / "killed.tare") ==
              content_of(straight.run() / "killed.tare"));
}

}  // namespace
}  // namespace tare::testing

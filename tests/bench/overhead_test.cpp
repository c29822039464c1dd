// Holds what the Learner adds to a step, in exact instruction counts of callgrind.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "support/program.h"

namespace tare::testing {
namespace {

constexpr double kSteps = 100;        // many - few, see overhead.cpp
constexpr double kStepsOfModel = 2;   // the same for each model
constexpr double kBare = 1.012;       // Learner without callbacks over the hand-written loop
constexpr double kFull = 1.05;        // with recorder and one-cycle schedule
constexpr double kCounts = 1.01;      // with counts and tags of every block, over LibTorch's own
constexpr double kLog = 1.02;         // with every allocation and free recorded, over without
constexpr double kStacks = 1.10;      // with the call stack of every allocation, over without
constexpr double kPerEvent = 100;     // instructions of an empty callback's event
constexpr double kEventsPerStep = 6;  // before_batch to after_batch
constexpr double kCallbacks = 10;

// Counts by dump name, from files "callgrind.out.N" that begin with their trigger and hold a line
// "totals: N".
std::map<std::string, double> read_counts(const std::filesystem::path& folder) {
  std::map<std::string, double> counts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::string name;
    for (std::string line; std::getline(file, line);) {
      const std::string trigger = "desc: Trigger: Client Request: ";
      if (line.starts_with(trigger)) name = line.substr(trigger.size());
      if (line.starts_with("totals: ") && !name.empty()) counts[name] = std::stod(line.substr(8));
    }
  }
  return counts;
}

TEST(Overhead, OfAStepIsWithinItsBounds) {
  const char* valgrind = "/usr/bin/valgrind";
  if (!std::filesystem::exists(valgrind)) GTEST_SKIP() << "valgrind is not installed";
  const TempDir folder;
  const auto out = (folder / "callgrind.out").string();
  // A fixed environment: its size changes the count.
  const auto result =
      run_program("/usr/bin/env",
                  {"-i", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", valgrind, "--tool=callgrind",
                   "--instr-atstart=no", "--callgrind-out-file=" + out, program_path("overhead")});
  ASSERT_EQ(result.status, 0) << result.err;
  auto counts = read_counts(folder.path());
  const auto per_step = [&](const std::string& mode, double steps = kSteps) {
    EXPECT_TRUE(counts.contains(mode + "-few") && counts.contains(mode + "-many")) << mode;
    return (counts[mode + "-many"] - counts[mode + "-few"]) / steps;
  };
  const double hand = per_step("hand"), bare = per_step("bare"), full = per_step("full");
  const double event = (per_step("empty") - bare) / (kCallbacks * kEventsPerStep);
  std::printf(
      "instructions per step: hand %.0f, bare %.0f (%.4f), recorder and schedule %.0f (%.4f), "
      "control %.4f; "
      "an empty callback's event %.1f\n",
      hand, bare, bare / hand, full, full / hand, per_step("again") / hand, event);
  EXPECT_GT(hand, 100'000) << "a step was counted";
  // The counts of one program repeat; another place in memory moves them by up to 2e-4.
  EXPECT_NEAR(per_step("again") / hand, 1, 5e-4) << "the count repeats";
  EXPECT_LE(bare / hand, kBare);
  EXPECT_LE(full / hand, kFull);
  EXPECT_LE(event, kPerEvent);
  const double block = per_step("counted") - per_step("uncounted");
  EXPECT_GT(per_step("counted"), 0);
  EXPECT_GT(per_step("uncounted"), 0);
  std::istringstream printed(result.out);
  std::map<std::string, double> blocks;
  for (std::string word, model; printed >> word >> model;) printed >> blocks[model];
  for (const std::string model : {"mlp", "resnet9", "gpt"}) {
    const double plain = per_step(model + "-bare", kStepsOfModel),
                 log = per_step(model + "-log", kStepsOfModel),
                 stacks = per_step(model + "-stacks", kStepsOfModel);
    ASSERT_GT(blocks[model], 0) << result.out;
    const double uncounted = plain - blocks[model] * block;
    std::printf(
        "%s: %.0f, with counts of %.0f blocks over LibTorch's allocator %.4f, an event log %.4f, "
        "call stacks %.4f\n",
        model.c_str(), plain, blocks[model], plain / uncounted, log / plain, stacks / plain);
    EXPECT_LE(plain / uncounted, kCounts) << model;
    EXPECT_GT(log, plain) << model << ": events were recorded";
    EXPECT_LE(log / plain, kLog) << model;
    EXPECT_GT(stacks, log) << model << ": stacks were gathered";
    EXPECT_LE(stacks / plain, kStacks) << model;
  }
}

}  // namespace
}  // namespace tare::testing

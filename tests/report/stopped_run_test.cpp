// A run whose fit a callback stops early, in report.json and in what the commands show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/tare_folder.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StoppedRun : public ::testing::Test, protected TareFolder {
 protected:
  /// Runs a recipe of six batches an epoch with these callbacks, and returns the first phase of its
  /// report.
  nlohmann::json run(const std::string& callbacks, const std::string& phase,
                     const std::vector<std::string>& options = {}) {
    write("r.yaml",
          "name: r\nfolder: .\ndevice: cpu\nbatch: 16\n"
          "data: {name: generated_digits, count: 120, train: 0.8, valid: 0.2}\n"
          "model: {name: mlp, hidden: [4]}\ncallbacks: " +
              callbacks + "\nphases: [" + phase + "]\n");
    std::vector<std::string> words{"run", "r.yaml", "--overwrite"};
    words.insert(words.end(), options.begin(), options.end());
    const ProgramResult ran = tare(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    printed_ = ran.out + ran.err;
    std::ifstream file(folder_ / "r" / "report.json");
    const auto report = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (report.is_discarded()) return {};
    EXPECT_EQ(report.at("reason"), "finished");
    return report.at("phases").at(0);
  }
  /// Returns early stopping after the epoch of this number, whose figure never improves so much.
  static std::string stopping_after(int epochs) {
    return "[{early_stopping: {monitor: train_loss, min_delta: 1000, patience: " +
           std::to_string(epochs - 2) + "}}]";
  }

  std::string printed_{};  // by the run
};

TEST_F(StoppedRun, NamesTheCallback) {
  const auto phase = run(stopping_after(3), "{name: head, epochs: 5}");
  EXPECT_EQ(phase.at("stopped_by"), "early_stopping");
  EXPECT_EQ(phase.at("epochs").size(), 3U);
  EXPECT_THAT(printed_, HasSubstr("stopped early: train_loss has not improved for 2 epochs"));
  EXPECT_THAT(printed_, HasSubstr("stopped early by early_stopping"));
  EXPECT_THAT(tare({"watch", "r"}).out,
              HasSubstr("\nphase head was stopped early by early_stopping\n"));
  ASSERT_EQ(tare({"report", "r"}).status, 0);
  std::ifstream page(folder_ / "r" / "report.html");
  const std::string html{std::istreambuf_iterator<char>(page), {}};
  EXPECT_THAT(html, HasSubstr("Phase head was stopped early by early_stopping."));
}

TEST_F(StoppedRun, IsNoneInTheLastPlannedEpoch) {
  const auto phase = run(stopping_after(3), "{name: head, epochs: 3}");
  EXPECT_FALSE(phase.contains("stopped_by"));
  EXPECT_EQ(phase.at("epochs").size(), 3U);
  EXPECT_THAT(printed_, Not(HasSubstr("stopped early")));
}

TEST_F(StoppedRun, IsOneInsideTheLastEpoch) {
  write("halt", "");
  const auto phase = run("[{stop_file: {file: '" + (folder_ / "halt").string() + "'}}]",
                         "{name: head, epochs: 1}");
  EXPECT_EQ(phase.at("stopped_by"), "stop_file");
  EXPECT_EQ(phase.at("epochs").at(0).at("samples"), 16);
}

// The two steps of a dry run say nothing of the average of a whole one.
TEST_F(StoppedRun, DoesNotWarnOfTheAverageOfADryRun) {
  run("[ema]", "{epochs: 5}", {"--dry-run"});
  EXPECT_THAT(printed_, Not(HasSubstr("ema:")));
  run("[ema]", "{epochs: 1}");
  EXPECT_THAT(printed_, HasSubstr("ema: the average has 99 % of the weights from before the fit"));
}

}  // namespace
}  // namespace tare::testing

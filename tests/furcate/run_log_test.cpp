// furcate.log: what it takes of runs, also of those that another process has started.
#include "tare/furcate/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"

namespace tare::furcate {
namespace {

using ::testing::ElementsAre;
using testing::TempDir;

class RunLogTest : public ::testing::Test {
 protected:
  void print(const std::string& text) const {
    io::File file(printed_, io::Mode::append);
    file.write("2026-11-22 09:30:00.00000" + text + '\n');
    file.close();
  }
  /// Returns the lines of the log without the time in front; of ends only the beginning.
  [[nodiscard]] std::vector<std::string> lines() const {
    constexpr size_t kTime = 26;
    std::vector<std::string> all;
    for (std::string text = testing::content_of(file_); !text.empty();) {
      const size_t end = text.find('\n');
      all.push_back(text.substr(kTime, std::min(end, text.find(", after ")) - kTime));
      text.erase(0, end + 1);
    }
    return all;
  }

  const TempDir folder_;
  const std::filesystem::path file_ = folder_ / "furcate.log", printed_ = folder_ / "run.log";
};

TEST_F(RunLogTest, TakesTheLinesOfARunThatAProcessBeforeHasStarted) {
  {
    RunLog killed(file_, true);
    killed.starts("run", printed_);
    print("1: mem_trace] one");
    print("2: other] not taken");
    killed.poll();
  }
  print("3: mem_trace] two");
  RunLog next(file_, true);
  print("4: mem_trace] three");
  next.ended("run", printed_, "complete", 0, 1);
  EXPECT_THAT(lines(), ElementsAre(": furcate] run starts", ": furcate] mem_trace of run",
                                   ": mem_trace] one", ": furcate] mem_trace of run",
                                   ": mem_trace] two", ": mem_trace] three",
                                   ": furcate] run has ended, complete; it was started before this "
                                   "sweep continued"));
}

TEST_F(RunLogTest, TakesEveryLineOnceOfARunThatIsStartedAgain) {
  {
    RunLog killed(file_, true);
    killed.starts("run", printed_);
    killed.starts("other", folder_ / "absent.log");
    print("1: mem_trace] one");
    killed.poll();
    print("2: mem_trace] two");
  }
  RunLog next(file_, true);
  next.starts("run", printed_);
  print("3: mem_trace] three");
  next.poll();
  next.poll();
  next.ended("run", printed_, "exit 1", 1, 1);
  next.starts("run", printed_);
  EXPECT_THAT(
      lines(),
      ElementsAre(": furcate] run starts", ": furcate] other starts", ": furcate] mem_trace of run",
                  ": mem_trace] one", ": furcate] mem_trace of run", ": mem_trace] two",
                  ": furcate] run starts", ": furcate] mem_trace of run", ": mem_trace] three",
                  ": furcate] run has ended, exit 1", ": furcate] run starts"));
}

TEST_F(RunLogTest, TakesNoLinesOfRunsThatPrintNone) {
  print("1: mem_trace] of an earlier configuration");
  RunLog log(file_, false);
  log.starts("run", printed_);
  log.poll();
  log.ended("run", printed_, "complete", 0, 1);
  EXPECT_THAT(lines(), ElementsAre(": furcate] run starts", ": furcate] run has ended, complete"));
}

}  // namespace
}  // namespace tare::furcate

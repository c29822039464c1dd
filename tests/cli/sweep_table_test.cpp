// The live table of a sweep.
#include "tare/cli/sweep_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tare::cli {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

sweep::SweepProgress progress(size_t running, const std::string& name = "digits7_lr0-01") {
  sweep::SweepProgress now{{.complete = 3, .failed = 1, .waiting = 9}, {}, "digits2", 0.5};
  now.running.assign(running, {.name = name, .epochs = 2, .bytes = 3 << 20, .seconds = 12});
  return now;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(SweepTable, SaysHowTheSweepStands) {
  const auto lines = lines_of(text(progress(1), "acc", 100));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "3 complete, 1 failed, 1 running, 9 waiting; best acc 0.5 of digits2");
  EXPECT_EQ(lines[2], "digits7_lr0-01       2    -     3 MiB  12 s");
  EXPECT_EQ(lines_of(text(progress(0), "acc", 100)).size(), 1U);
}

TEST(SweepTable, IsNeverWiderThanTheTerminalNorLong) {
  const auto wide = [](const std::string& line) { return line.size() > 60; };
  const auto lines = lines_of(text(progress(40, std::string(100, 'x')), "acc", 60));
  EXPECT_EQ(std::ranges::count_if(lines, wide), 0);
  EXPECT_EQ(lines.size(), 1U + 1 + 16 + 1);
  EXPECT_EQ(lines.back(), "and 24 more");
  std::string accents;
  for (int i = 0; i < 60; ++i) accents += "\u00e9";
  for (const auto& line : lines_of(text(progress(1, accents), "acc", 61)))
    EXPECT_NE(static_cast<unsigned char>(line.back()), 0xc3) << "half a character";
}

TEST(LiveTable, StaysBelowTheLinesAndLeavesThemAlone) {
  std::ostringstream terminal;
  {
    LiveTable table(terminal, "acc");
    table.draw(progress(1));
    table.lines() << "one has ended\n";
    table.draw(progress(1));
  }
  const std::string erase = "\x1b[3F\x1b[J";
  const std::string all = terminal.str();
  EXPECT_THAT(all, StartsWith("3 complete"));
  EXPECT_THAT(all, HasSubstr(erase + "one has ended\n3 complete"));
  EXPECT_EQ(all.substr(all.size() - erase.size()), erase) << "gone in the end";
}

}  // namespace
}  // namespace tare::cli

// The lines, levels and colours of the log.
#include "tare/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "support/environment.h"
#include "support/terminal.h"
#include "tare/base/error.h"

namespace tare::log {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string captured(Level level) {
  const Level before = set_level(level);
  ::testing::internal::CaptureStderr();
  debug("a");
  info("b");
  warning("c");
  error("d");
  std::string text = ::testing::internal::GetCapturedStderr();
  set_level(before);
  return text;
}

TEST(Log, WritesTheLevelsThatAreOn) {
  EXPECT_EQ(captured(Level::debug),
            "[tare] debug: a\n[tare] b\n[tare] warning: c\n[tare] error: d\n");
  EXPECT_EQ(captured(Level::info), "[tare] b\n[tare] warning: c\n[tare] error: d\n");
  EXPECT_EQ(captured(Level::warning), "[tare] warning: c\n[tare] error: d\n");
  EXPECT_EQ(captured(Level::error), "[tare] error: d\n");
  EXPECT_EQ(captured(Level::off), "");
}

TEST(Log, TextFromOutsideCannotForgeALine) {
  ::testing::internal::CaptureStderr();
  warning("name \n[tare] error: forged \x1b[31m {} %v");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "[tare] warning: name \\n[tare] error: forged \\x1b[31m {} %v\n");
}

TEST(Log, WarnsOnceOfOneText) {
  const Level before = set_level(Level::error);
  warning_once("a folder");  // not printed, and so not remembered
  set_level(Level::warning);
  ::testing::internal::CaptureStderr();
  for (const char* text : {"a folder", "another", "a folder"}) warning_once(text);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "[tare] warning: a folder\n[tare] warning: another\n");
  set_level(before);
}

/// Returns the output on a terminal of one line at each level from info to error.
std::string on_a_terminal() {
  tare::testing::PseudoTerminal terminal(80);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(terminal.descriptor(), STDERR_FILENO);
  info("a");
  warning("b \x1b[31m");
  error("c");
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  return terminal.read();
}

TEST(Log, ColoursWarningsAndErrorsOnATerminalOnly) {
  const tare::testing::ScopedVariable kind("TERM", "xterm"), colour("NO_COLOR", std::nullopt);
  EXPECT_EQ(on_a_terminal(),
            "[tare] a\n\x1b[33m[tare] warning:\x1b[0m b \\x1b[31m\n"
            "\x1b[31m[tare] error:\x1b[0m c\n");
  ::testing::internal::CaptureStderr();
  warning("b");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[tare] warning: b\n");
}

TEST(Log, HonoursNoColorAndDumbTerminals) {
  const std::string plain = "[tare] a\n[tare] warning: b \\x1b[31m\n[tare] error: c\n";
  {
    const tare::testing::ScopedVariable kind("TERM", "xterm"), colour("NO_COLOR", "1");
    EXPECT_EQ(on_a_terminal(), plain);
  }
  const tare::testing::ScopedVariable kind("TERM", "dumb"), colour("NO_COLOR", std::nullopt);
  EXPECT_EQ(on_a_terminal(), plain);
}

TEST(Log, LevelsHaveNames) {
  EXPECT_EQ(parse_level("debug"), Level::debug);
  EXPECT_EQ(parse_level("info"), Level::info);
  EXPECT_EQ(parse_level("warning"), Level::warning);
  EXPECT_EQ(parse_level("error"), Level::error);
  EXPECT_EQ(parse_level("off"), Level::off);
  EXPECT_THROW((void)parse_level("loud"), ConfigError);
}

/// fmt in LibTorch's include folder is another version than the one spdlog was built on.
TEST(Log, IsCompiledWithoutLibTorchsHeaders) {
  const char* bin = std::getenv("TARE_BIN_DIR");
  if (bin == nullptr) GTEST_SKIP() << "TARE_BIN_DIR is not set: run by ctest";
  std::ifstream file(std::string(bin) + "/../build.ninja");
  if (!file) GTEST_SKIP() << "no build.ninja beside the programs";
  std::string line;
  bool in_base = false, found = false;
  while (std::getline(file, line)) {
    if (line.starts_with("build "))
      in_base = line.find("tare_base.dir/log.cpp.o:") != std::string::npos;
    if (!in_base || line.find("INCLUDES") == std::string::npos) continue;
    found = true;
    EXPECT_THAT(line, Not(HasSubstr("torch")));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tare::log

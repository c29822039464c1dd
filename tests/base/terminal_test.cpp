// Text that is wrapped, coloured and fitted for a terminal.
#include "tare/base/terminal.h"

#include <gtest/gtest.h>

#include <sstream>

#include "support/environment.h"

namespace tare {
namespace {

using testing::ScopedVariable;

TEST(Terminal, WrapsBetweenWords) {
  EXPECT_EQ(wrapped("one two three four", 9, 0, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("one two three four", 9, 6, 6), "one\n      two\n      three\n      four");
  EXPECT_EQ(wrapped("a-word-that-is-longer b", 10, 0, 2), "a-word-that-is-longer\n  b");
  EXPECT_EQ(wrapped("one  two", 80, 0, 2), "one two");
  EXPECT_EQ(wrapped("", 80, 0, 2), "");
  EXPECT_EQ(wrapped("peak 16.2 MiB, of 8", 12, 0, 2), "peak\n  16.2 MiB,\n  of 8");
}

TEST(Terminal, HonoursNoColor) {
  {
    const ScopedVariable set("NO_COLOR", "1");
    EXPECT_FALSE(colour_allowed());
  }
  {
    const ScopedVariable empty("NO_COLOR", "");
    EXPECT_TRUE(colour_allowed()) << "an empty value counts as none";
  }
  const ScopedVariable unset("NO_COLOR", std::nullopt);
  EXPECT_TRUE(colour_allowed());
}

TEST(Terminal, TintsAndFitsOnlyWhatGoesToATerminal) {
  EXPECT_EQ(tinted("x", Tint::green, true), "\033[32mx\033[0m");
  EXPECT_EQ(tinted("x", Tint::green, false), "x");
  const std::ostringstream file;
  EXPECT_FALSE(takes_colour(file));
  const std::string line(500, 'x');
  EXPECT_EQ(fitted(line + ' ' + line, file), line + ' ' + line);
}

}  // namespace
}  // namespace tare

// Command lines against a table of options.
#include "tare/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tare/base/error.h"

namespace tare::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Command& sample() {
  static const Command command{.name = "sample",
                               .summary = "try the table",
                               .arguments = "FILE [key=value ...]",
                               .least = 1,
                               .options = {{"out", "DIR", "where to"},
                                           {"quiet", "", "say nothing"},
                                           {"resume", "always|auto", "go on", "always"}},
                               .examples = {"tare sample a"}};
  return command;
}

Arguments parse(std::vector<const char*> words) {
  words.insert(words.begin(), "sample");
  return parse(sample(), static_cast<int>(words.size()), words.data());
}

std::string refused(const std::vector<const char*>& words) {
  try {
    static_cast<void>(parse(words));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Arguments, OptionsStandAnywhereWithSpaceOrEqualSign) {
  const auto a = parse({"--out", "x", "file", "--quiet", "a=[1,2]"});
  EXPECT_THAT(a.positional(), ElementsAre("file", "a=[1,2]"));
  EXPECT_EQ(a.get("out"), "x");
  EXPECT_TRUE(a.has("quiet"));
  EXPECT_FALSE(a.has("resume"));
  EXPECT_EQ(parse({"file", "--out=y"}).get("out"), "y");
  EXPECT_EQ(parse({"file"}).get("out", "here"), "here");
}

TEST(Arguments, AnOptionWithAnImplicitValueMayStandBare) {
  EXPECT_EQ(parse({"file", "--resume"}).get("resume"), "always");
  EXPECT_EQ(parse({"file", "--resume=7"}).get("resume"), "7");
  const auto spaced = parse({"--resume", "auto", "file"});
  EXPECT_EQ(spaced.get("resume"), "auto");
  EXPECT_THAT(spaced.positional(), ElementsAre("file"));
  const auto bare = parse({"--resume", "file"});
  EXPECT_EQ(bare.get("resume"), "always");
  EXPECT_THAT(bare.positional(), ElementsAre("file"));
}

TEST(Arguments, HelpAsksForNothingElse) {
  EXPECT_TRUE(parse({"--help"}).has("help"));
  EXPECT_TRUE(parse({"-h"}).has("help"));
  EXPECT_THAT(parse({"--help"}).positional(), IsEmpty());
}

TEST(Arguments, RefusesWithTheReason) {
  EXPECT_THAT(refused({}), HasSubstr("needs FILE"));
  EXPECT_THAT(refused({"file", "--quite"}), HasSubstr("did you mean \"--quiet\""));
  EXPECT_THAT(refused({"file", "--positional", "x"}), HasSubstr("is not an option"));
  EXPECT_THAT(refused({"file", "--out"}), HasSubstr("out"));
  EXPECT_THAT(refused({"file", "-x"}), HasSubstr("x"));
  EXPECT_THAT(refused({std::string(5000, 'x').c_str()}), HasSubstr("4 KiB"));
  EXPECT_THAT(refused({"a", "--out", ""}), HasSubstr("--out needs DIR, got ''"));
  EXPECT_THAT(refused({"a", "--resume="}), HasSubstr("--resume needs always|auto, got ''"));
}

TEST(Arguments, AnOptionWithAValueIsGivenOnce) {
  EXPECT_THAT(
      refused({"file", "--out", "a", "--out=b"}),
      HasSubstr("--out is given twice; it takes one DIR, so give it once; see tare sample"));
  EXPECT_THAT(refused({"file", "--resume", "--resume=auto", "--resume"}),
              HasSubstr("--resume is given 3 times; it takes one always|auto"));
  EXPECT_TRUE(parse({"file", "--quiet", "--quiet"}).has("quiet"));
}

TEST(Arguments, HelpNamesTheProgramAsItWasCalled) {
  const std::string text = help(sample(), kAnyWidth, "own-sample");
  EXPECT_THAT(text, HasSubstr("Usage: own-sample [OPTIONS] FILE"));
  EXPECT_THAT(text, HasSubstr("\n  own-sample a\n"));
}

TEST(Arguments, HelpShowsHowAnOptionIsWritten) {
  const std::string text = help(sample());
  for (const char* line : {"Usage: tare sample [OPTIONS] FILE [key=value ...]", "--out DIR ",
                           "--quiet ", "--resume[=always|auto] ", "--help ", "  tare sample a\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace tare::cli

// Combinations of parameters, and values as text.
#include "tare/search/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/support.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<std::string> cells(const std::string& text) {
  return texts(search::grid(search_options(text)));
}

TEST(Grid, TheFirstParameterIsTheSlowest) {
  EXPECT_THAT(cells("parameters: {a: [1, 2], b.c: [x, y]}\n"),
              ElementsAre("a=1 b.c=x", "a=1 b.c=y", "a=2 b.c=x", "a=2 b.c=y"));
  EXPECT_THAT(cells(""), ElementsAre("")) << "the recipe alone";
}

TEST(Grid, CountsRanges) {
  EXPECT_THAT(cells("parameters: {a: {min: 1, max: 6, step: 2}}\n"),
              ElementsAre("a=1", "a=3", "a=5"));
  EXPECT_THAT(cells("parameters: {a: {min: -1, max: 1}}\n"), ElementsAre("a=-1", "a=0", "a=1"));
  EXPECT_THAT(cells("parameters: {a: {min: 0.1, max: 0.3, step: 0.1}}\n"),
              ElementsAre("a=0.1", "a=0.2", "a=0.3"));
  EXPECT_THROW(cells("parameters: {a: {min: 0.1, max: 0.3}}\n"), ConfigError);
  EXPECT_THROW(cells("parameters: {a: {min: 0, max: 2000, step: 0.001}}\n"), ConfigError);
  EXPECT_THROW(cells("parameters: {a: {min: 1, max: 2000}, d: {min: 1, max: 2000}}\n"),
               ConfigError);
}

TEST(Grid, LeavesOutWhatIsExcluded) {
  EXPECT_THAT(cells("parameters: {a: [1, 2], d: [true, false]}\n"
                    "exclude: [{a: 1.0, d: true}, {a: 2, d: false}]\n"),
              ElementsAre("a=1 d=False", "a=2 d=True"))
      << "numbers are compared by value";
  EXPECT_THAT(cells("parameters: {a: [1, '1']}\nexclude: [{a: 1}]\n"), ElementsAre("a=1"))
      << "text is not a number";
}

TEST(Grid, TakesEqualNumbersOnce) {
  EXPECT_THAT(cells("parameters: {a: [0.01, 1.0e-2, 0.010, '0.01', 1, 1.0]}\n"),
              ElementsAre("a=0.01", "a=0.01", "a=1"))
      << "the second is a text";
  EXPECT_THAT(
      cells("parameters: {a: [{from: 0.01, to: 1}, {to: 1.0, from: 1.0e-2}, {from: 0.01}]}"),
      SizeIs(2));
  EXPECT_THAT(cells("parameters: {a: [[1, 2], [1.0, 2.0], [1], [2, 1]]}"), SizeIs(3));
}

TEST(Grid, QuotedTextIsText) {
  EXPECT_THAT(cells("parameters: {k: [adam, sgd]}\nexclude: [{k: \"sgd\"}]\n"),
              ElementsAre("k=adam"));
}

TEST(Grid, AParameterVariesOnlyUnderItsCondition) {
  EXPECT_THAT(cells("parameters: {kind: [sgd, adam], momentum: [0, 0.9]}\n"
                    "when: [{param: momentum, if: {kind: sgd}}]\n"),
              ElementsAre("kind=sgd momentum=0", "kind=sgd momentum=0.9", "kind=adam"));
  EXPECT_THAT(cells("parameters: {a: [1, 2], d: [3, 4], e: [5, 6]}\n"
                    "when: [{param: e, if: {d: 3}}, {param: d, if: {a: 1}}]\n"),
              ElementsAre("a=1 d=3 e=5", "a=1 d=3 e=6", "a=1 d=4", "a=2"))
      << "also on one that is left out itself";
  EXPECT_THAT(cells("set: {b.c: 9}\nparameters: {a: [1, 2]}\nwhen: [{param: a, if: {b.c: 9}}]\n"),
              ElementsAre("a=1", "a=2"));
}

// Compares texts of values with the output of CPython 3.11 for str(value).
TEST(Grid, WritesValuesAsPython) {
  const auto text = [](const std::string& value) {
    return search::python_text(*config::parse_text("v: " + value, "t").find("v"));
  };
  const std::pair<const char*, const char*> cases[]{{"1", "1"},
                                                    {"1.0", "1.0"},
                                                    {"1e-05", "1e-05"},
                                                    {"0.0001", "0.0001"},
                                                    {"1e-4", "0.0001"},
                                                    {"1e16", "1e+16"},
                                                    {"1e15", "1000000000000000.0"},
                                                    {"0.1", "0.1"},
                                                    {"2.5e-3", "0.0025"},
                                                    {"true", "True"},
                                                    {"false", "False"},
                                                    {"null", "None"},
                                                    {"'1.0'", "1.0"},
                                                    {"adam", "adam"},
                                                    {"[1, 2.0, x]", "[1, 2.0, 'x']"},
                                                    {"{k: [y, true]}", "{'k': ['y', True]}"},
                                                    {"{k: 1}", "{'k': 1}"},
                                                    {"-3", "-3"},
                                                    {"1e100", "1e+100"},
                                                    {"123456789.125", "123456789.125"}};
  for (const auto& [value, expected] : cases) EXPECT_EQ(text(value), expected);
}

}  // namespace
}  // namespace tare::testing

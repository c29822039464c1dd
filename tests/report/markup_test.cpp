// Escaping, numbers and tables of pages.
#include "tare/report/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tare::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Escaped, LeavesNoMarkup) {
  EXPECT_EQ(escaped("<script>&'\""), "&lt;script&gt;&amp;&#39;&quot;");
  EXPECT_EQ(escaped("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_EQ(escaped(std::string(500, 'x'), 10).size(), 13U);  // with the dots
}

TEST(Escaped, KeepsUtf8AndShowsOtherBytes) {
  EXPECT_EQ(escaped("z\u00e4hlt \u20ac \U0001F600"), "z\u00e4hlt \u20ac \U0001F600");
  EXPECT_EQ(escaped("\xff\xc0\xaf"), "\\xff\\xc0\\xaf");
}

TEST(EscapedLines, KeepsLinesAndSaysWhereItCut) {
  EXPECT_EQ(escaped_lines("a: <b>\n\n  c\x1b\n", 100), "a: &lt;b&gt;\n\n  c\\x1b\n");
  EXPECT_EQ(escaped_lines("abcdef", 3), "abc\n... (cut here)\n");
}

TEST(Markup, WritesNumbersShortly) {
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(7), "7");
  EXPECT_EQ(percent(0.125), "12.5%");
  EXPECT_EQ(figure(0.123456), "0.1235");
  EXPECT_EQ(figure(NAN), "-");
}

TEST(Tail, KeepsTheEndOfAName) {
  EXPECT_EQ(tail("model.width", 11), "model.width");
  EXPECT_EQ(tail("phases.0.optimizer.weight_decay", 24), "...optimizer.weight_decay");
  EXPECT_EQ(tail("abcdef", 3), "...def");
  EXPECT_EQ(tail("a\u20acb", 3), "...b") << "no part of a letter";
}

TEST(Table, CutsAndEscapes) {
  const std::vector<std::vector<std::string>> rows(kTableRows + 7, {"<a>", "1"});
  const std::string html = table("t", {"x", "y"}, rows);
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">&lt;a&gt;</th><td>1</td>"));
  EXPECT_THAT(html, HasSubstr("and 7 more"));
  EXPECT_THAT(table("t", {"x", "y"}, rows, rows.size()), Not(HasSubstr("more")));
  EXPECT_THAT(table("t", {"x", "y"}, rows, 1), HasSubstr("and 206 more"));
  EXPECT_THAT(table("t", {"x", "y"}, {{"a", "1"}}), Not(HasSubstr("more")));
}

}  // namespace
}  // namespace tare::report

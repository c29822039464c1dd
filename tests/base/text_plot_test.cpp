// Plots of curves as text.
#include "tare/base/text_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tare {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TextPlot, DrawsACurveBetweenItsEnds) {
  const TextPlot plot{
      .title = "falls", .x_title = "step", .rows = 3, .curves = {{.x = {0, 1, 2}, .y = {2, 1, 0}}}};
  EXPECT_EQ(text_plot(plot, 30),
            "falls\n"
            "2 |*\n"
            "  |             *\n"
            "0 |                          *\n"
            "  +---------------------------\n"
            "   0          step           2\n");
}

TEST(TextPlot, DrawsASteepPieceAsAColumn) {
  const TextPlot plot{.rows = 6,
                      .curves = {{.x = {0, 1}, .y = {0, 0}}, {.x = {1, 1}, .y = {0, 5}}}};
  const std::string text = text_plot(plot, 30);
  EXPECT_EQ(std::ranges::count(text, '*'), 7) << text;
}

TEST(TextPlot, TakesLogarithmsAndLeavesOutWhatHasNone) {
  TextPlot plot{.log_x = true, .rows = 2, .curves = {{.x = {0, 1e-4, 1e-2, 1}, .y = {9, 1, 1, 2}}}};
  const std::string text = text_plot(plot, 40);
  EXPECT_THAT(text, StartsWith("2 |"));
  EXPECT_THAT(text, HasSubstr("0.0001"));
  const size_t row = text.find("\n1 |");
  ASSERT_NE(row, std::string::npos) << text;
  EXPECT_EQ(text.find("*", text.find("*", row) + 1) - text.find("*", row), 18U) << text;
}

TEST(TextPlot, LeavesAGapWhereThereIsNoNumber) {
  TextPlot plot{.rows = 4, .curves = {{.x = {0, 1, 2}, .y = {1, NAN, 4}}}};
  const std::string text = text_plot(plot, 30);
  EXPECT_EQ(std::ranges::count(text, '*'), 2) << text;
  plot.curves = {{.x = {0}, .y = {NAN}}};
  EXPECT_EQ(text_plot(plot), "");
}

TEST(TextPlot, KeepsToItsWidthAndHasOneOfItsOwn) {
  const TextPlot plot{.x_title = "a title", .curves = {{.x = {0, 1000}, .y = {1e-5, 3}}}};
  for (const size_t width : {size_t{30}, size_t{50}, kAnyWidth}) {
    const std::string text = text_plot(plot, width);
    size_t longest = 0, start = 0;
    for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
      longest = std::max(longest, end - start);
    EXPECT_EQ(longest, width == kAnyWidth ? 72 : width) << text;
  }
}

TEST(TextPlot, ShortNumbersHaveThreeDigits) {
  EXPECT_EQ(short_number(0.012345), "0.0123");
  EXPECT_EQ(short_number(1.5e-5), "1.5e-05");
  EXPECT_EQ(short_number(0), "0");
}

}  // namespace
}  // namespace tare

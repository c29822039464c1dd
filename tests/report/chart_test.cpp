// Charts as SVG text.
#include "tare/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "report/markup_check.h"

namespace tare::report {
namespace {

using tare::testing::count_of;
using tare::testing::is_well_formed;
using ::testing::HasSubstr;
using ::testing::Not;

LineChart two_lines() {
  return {
      .title = "Loss <by> epoch",
      .description = "falls",
      .series = {{.name = "a", .points = {{1, 2}, {2, 1}, {3, 0.5}}},
                 {.name = "b", .points = {{1, 3}, {2, NAN}, {3, 1}}, .colour = 2, .dashed = true}}};
}

TEST(LineChart, DrawsEveryLineAndDot) {
  const std::string svg = line_chart(two_lines());
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count_of(svg, "class=\"line"), 2U);
  EXPECT_EQ(count_of(svg, "class=\"dot"), 5U);
  EXPECT_THAT(svg, HasSubstr("<title>Loss &lt;by&gt; epoch</title><desc>falls</desc>"));
  EXPECT_THAT(svg, HasSubstr("role=\"img\""));
  // 0.5 to 3 on an axis from 0 to 3, drawn from the top down.
  EXPECT_THAT(svg, HasSubstr("d=\"M0 333.3L500 666.7L1000 833.3\""));
  EXPECT_THAT(svg, HasSubstr("d=\"M0 0M1000 666.7\"")) << "a gap where there is no value";
}

TEST(LineChart, IsEmptyWithoutAValue) {
  EXPECT_EQ(line_chart({}), "");
  EXPECT_EQ(line_chart({.series = {{.name = "a", .points = {{1, NAN}, {2, INFINITY}}}}}), "");
}

TEST(LineChart, ShowsASinglePoint) {
  const std::string svg = line_chart({.series = {{.name = "a", .points = {{1, 0}}}}});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count_of(svg, "class=\"dot"), 1U);
}

TEST(LineChart, DrawsALineOrDotsAlone) {
  LineChart chart{.series = {{.name = "a", .points = {{0, 1}, {1, 2}, {2, NAN}, {4, 0}}}}};
  chart.series[0].mark = Mark::line;
  EXPECT_EQ(count_of(line_chart(chart), "class=\"dot"), 0U);
  chart.series[0].mark = Mark::dots;
  const std::string svg = line_chart(chart);
  EXPECT_EQ(count_of(svg, "class=\"line"), 0U);
  EXPECT_THAT(svg, HasSubstr("<path class=\"dot s0\" d=\"m0 500h0m250-500h0m750 1000h0\"/>"));
}

TEST(LineChart, KeepsTheExtremesOfALongLine) {
  LineChart chart;
  auto& points = chart.series.emplace_back().points;
  for (int i = 0; i < 100'000; ++i) points.push_back({static_cast<double>(i), 1.0});
  points[54'321].y = 2;
  points[77'777].y = 0;
  const std::string svg = line_chart(chart);
  EXPECT_LT(svg.size(), 20'000U);
  EXPECT_THAT(svg, HasSubstr("L543.2 0L"));
  EXPECT_THAT(svg, HasSubstr("L777.8 1000L"));
}

TEST(LineChart, NamesSpansAndChoosesTheScale) {
  LineChart chart{.series = {{.name = "a", .points = {{1, 100}, {9, 0.01}}}},
                  .spans = {{1, 5, "first"}, {5, 9, "second"}}};
  const std::string svg = line_chart(chart);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count_of(svg, "class=\"span\""), 1U);
  EXPECT_THAT(svg, HasSubstr(">first</text>"));
  EXPECT_THAT(svg, HasSubstr(">second</text>"));
  EXPECT_THAT(svg, HasSubstr(">0.1</text>")) << "logarithmic";
}

TEST(LineChart, LeavesOutNamesThatWouldBeCutToAFewLetters) {
  const LineChart chart{
      .series = {{.name = "a", .points = {{0, 1}, {100, 2}}}},
      .spans = {
          {0, 3, "all"}, {3, 6, "pretrain"}, {6, 9, "head"}, {9, 20, "body"}, {20, 100, "tuning"}}};
  const std::string svg = line_chart(chart);
  EXPECT_EQ(count_of(svg, "class=\"span\""), 4U);
  EXPECT_THAT(svg, Not(HasSubstr("pretrain")));
  EXPECT_THAT(svg, HasSubstr(">tuning</text>"));
}

TEST(LineChart, StaggersNamesThatAreWiderThanTheirStretches) {
  const LineChart chart{
      .series = {{.name = "a", .points = {{0, 1}, {100, 2}}}},
      .spans = {{0, 10, "pretrain"}, {10, 60, "fine-tuning"}, {60, 100, "all-large"}}};
  const std::string svg = line_chart(chart);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count_of(svg, "class=\"name\""), 3U);
  EXPECT_THAT(svg, HasSubstr("<svg x=\"0%\" y=\"0\" width=\"60%\""));
  EXPECT_THAT(svg, HasSubstr("<svg x=\"10%\" y=\"18\" width=\"90%\""));
  EXPECT_THAT(svg, HasSubstr("<svg x=\"60%\" y=\"0\" width=\"40%\""));
}

TEST(LineChart, HasTitlesOfItsAxes) {
  const LineChart chart{.x_title = "epoch",
                        .y_title = "<loss>",
                        .series = {{.name = "a", .points = {{0, 1}, {100, 2}}}}};
  const std::string svg = line_chart(chart);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr(">epoch</text>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;loss&gt;</text>"));
}

TEST(AreaChart, StacksLayers) {
  const AreaChart chart{
      .title = "t", .x = {0, 1}, .layers = {{"low", {1024, 1024}, 0}, {"high", {1024, 3072}, 1}}};
  const std::string svg = area_chart(chart);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("M0 1000L0 500L1000 0L1000 1000Z\"><title>high"));
  EXPECT_THAT(svg, HasSubstr("M0 1000L0 750L1000 750L1000 1000Z\"><title>low"));
  EXPECT_LT(svg.find("<title>high"), svg.find("<title>low")) << "the lower one covers the higher";
  EXPECT_THAT(svg, Not(HasSubstr("class=\"line")));
  AreaChart lined = chart;
  lined.line = {.name = "lowest", .points = {{0, 1024}, {1, 2048}}, .colour = kInk};
  EXPECT_THAT(area_chart(lined), HasSubstr("s10\" d=\"M0 750L1000 500\""));
  EXPECT_EQ(area_chart({.x = {0}}), "");
}

TEST(BarChart, IsAsLongAsTheValue) {
  const std::string svg = bar_chart(
      {.title = "t", .bars = {{"a", "4 B", 4, 0}, {"<b>", "1 B", 1, 3}, {"c", "0", 0, 0}}});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("width=\"25%\""));
  EXPECT_THAT(svg, HasSubstr("width=\"0%\""));
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;"));
  EXPECT_EQ(bar_chart({}), "");
}

TEST(Legend, TellsLinesByMoreThanColour) {
  const std::string html = legend({{"a", 0, true}, {"b", 2, true, true}});
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_EQ(count_of(html, "dash"), 1U);
  EXPECT_THAT(legend({{"a", 0}}), Not(HasSubstr("line")));
}

TEST(ChartStyle, HasEveryColourInLightAndDark) {
  const std::string style = chart_style();
  for (size_t i = 0; i < kColours; ++i)
    EXPECT_EQ(count_of(style, "--c" + std::to_string(i) + ":#"), 2U);
}

TEST(LineChart, NamesOfSpansLieOverTheLinesThatCrossThem) {
  const std::string chart =
      line_chart({.title = "t",
                  .series = {{.name = "a", .points = {{1, 1}, {7, 2}}}},
                  .spans = {{1, 3, "one"}, {3, 4, "a-long-name"}, {4, 7, "x"}}});
  EXPECT_LT(chart.rfind("class=\"span\""), chart.find("class=\"name\""));
}

TEST(LineChart, LabelsEachOfFewEpochsBelowItsPoint) {
  const std::string chart =
      line_chart({.title = "t", .series = {{.name = "a", .points = {{1, 1}, {7, 2}}}}});
  for (const char* epoch : {"1", "2", "3", "4", "5", "6", "7"})
    EXPECT_NE(chart.find(std::string("text-anchor=\"middle\">") + epoch + "</text>"),
              std::string::npos)
        << epoch;
}

}  // namespace
}  // namespace tare::report

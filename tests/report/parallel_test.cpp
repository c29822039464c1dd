// Parallel coordinates, learning curves and their shades.
#include "tare/report/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "report/example_sweep.h"
#include "report/markup_check.h"
#include "tare/report/learning_curves.h"

namespace tare::report {
namespace {

using tare::testing::is_well_formed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two parameters, and two complete runs and one that was pruned.
SweepSummary three_runs() {
  return {
      .metric = "loss",
      .parameters = {{.name = "lr", .low = 0.01, .high = 1, .logarithmic = true},
                     {.name = "kind", .choices = {"<a>", "b", "c"}}},
      .runs = {{.name = "good", .number = 0, .state = "COMPLETE", .values = {0.1, 2}, .value = 1},
               {.name = "bad", .number = 1, .state = "COMPLETE", .values = {1, NAN}, .value = 3},
               {.name = "cut", .number = 2, .state = "PRUNED", .values = {0.01, 1}, .value = 2}}};
}

std::string chart_of(const SweepSummary& sweep) {
  const auto runs = best_first(sweep);
  return parallel_chart(sweep, runs, Shading(runs, sweep.maximize));
}

TEST(Shading, FollowsTheRank) {
  const SweepSummary sweep = three_runs();
  const auto runs = best_first(sweep);
  const Shading shading(runs, false);
  EXPECT_EQ(shading.best(), 1);
  EXPECT_EQ(shading.worst(), 3);
  EXPECT_EQ(shading.shade(1), 1);
  EXPECT_EQ(shading.shade(2), 0.5);
  EXPECT_EQ(shading.shade(3), 0);
  EXPECT_TRUE(std::isnan(shading.shade(NAN)));
  EXPECT_TRUE(shading.is_best(sweep.runs[0]));
  const Shading turned(runs, true);
  EXPECT_EQ(turned.best(), 3);
  EXPECT_EQ(turned.shade(3), 1);
}

TEST(Shading, IsNotTakenByARunThatWentAstray) {
  SweepSummary sweep = three_runs();
  sweep.runs[1].value = 1e30;
  EXPECT_EQ(Shading(best_first(sweep), false).shade(2), 0.5);
}

TEST(Shading, OfEqualOrNoRunsIsDefined) {
  SweepSummary sweep = three_runs();
  for (auto& run : sweep.runs) run.value = 4;
  EXPECT_EQ(Shading(best_first(sweep), true).shade(4), 1);
  EXPECT_TRUE(std::isnan(Shading({}, true).best()));
  EXPECT_FALSE(Shading({}, true).is_best(sweep.runs[0]));
}

TEST(Parallel, LeadsEachRunThroughItsValues) {
  const std::string svg = chart_of(three_runs());
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  // lr at the middle of its axis, kind not set: at the left; loss 1 of 1 to 3.
  EXPECT_THAT(svg, HasSubstr("d=\"m500 38 500 62 0 38-1000 62 0 38\"><title>good: 1</title>"));
  EXPECT_THAT(svg, HasSubstr("d=\"m1000 38-1000 62 0 38 1000 62 0 38\"><title>bad: 3</title>"));
  EXPECT_THAT(svg, HasSubstr("<path class=\"dash\" d=\"m0 38 640 62 0 38-140 62 0 38\">"));
  EXPECT_THAT(svg, HasSubstr("class=\"line best s2\""));
  EXPECT_THAT(svg, HasSubstr(">not set</text>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;a&gt;</text>"));
  EXPECT_THAT(svg, HasSubstr(">loss, lowest is best</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>Parameters and loss</title><desc>A line for each run"));
  EXPECT_THAT(svg, HasSubstr("</svg>pruned</li>"));
}

TEST(Parallel, MarksOneBestRun) {
  SweepSummary sweep = three_runs();
  sweep.runs[1].value = sweep.runs[2].value = 1;
  sweep.runs[0].state = "PRUNED";
  const std::string svg = chart_of(sweep);
  const size_t best = svg.find("class=\"line best s2\" d=");
  ASSERT_NE(best, svg.npos);
  EXPECT_EQ(svg.find("class=\"line best s2\" d=", best + 1),
            svg.find("class=\"line best s2\" d=\"M0 6"));
  EXPECT_THAT(svg.substr(best, 200), HasSubstr("<title>bad: 1</title>"))
      << "the first complete one";
}

TEST(Parallel, KeepsLabelsThatHaveRoom) {
  SweepSummary sweep = three_runs();
  sweep.parameters[1].choices.clear();
  for (int i = 0; i < 100; ++i)
    sweep.parameters[1].choices.push_back("choice number " + std::to_string(i));
  const std::string svg = chart_of(sweep);
  EXPECT_THAT(svg, HasSubstr(">choice...</text>"));
  size_t labels = 0;
  for (size_t at = 0; (at = svg.find(">choice", at)) != svg.npos; ++at) ++labels;
  EXPECT_LE(labels, 5U);
}

TEST(Parallel, NamesNoLinesWhereTheyAreMany) {
  const SweepSummary sweep = tare::testing::example_sweep(400, 5);
  const std::string svg = chart_of({.metric = "m", .runs = {sweep.runs.begin(), sweep.runs.end()}});
  EXPECT_THAT(svg, HasSubstr("strands many"));
  EXPECT_THAT(chart_of(three_runs()), Not(HasSubstr("strands many")));
  EXPECT_EQ(parallel_chart(sweep, {}, Shading({}, true)), "");
}

TEST(LearningCurves, AreRelativePathsOfWholePixels) {
  SweepSummary sweep = three_runs();
  sweep.runs[0].metric = {3, 2, 1};
  sweep.runs[1].metric = {3, NAN, 0};
  sweep.runs[2].metric = {INFINITY, NAN};
  const auto runs = best_first(sweep);
  const std::string svg = learning_curves(sweep, runs, Shading(runs, false), 1 << 20);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("d=\"m0 0 1000 200\"")) << "what lies on a line is left out";
  EXPECT_THAT(svg, HasSubstr("d=\"m0 0h0m1000 300h0\"")) << "a gap";
  EXPECT_THAT(svg, HasSubstr("A line for each of 2 runs. At the end the best is 1"));
  for (auto& run : sweep.runs) run.metric.clear();
  EXPECT_EQ(learning_curves(sweep, runs, Shading(runs, false), 1 << 20), "");
}

TEST(LearningCurves, AreThinnedToTheirRoom) {
  const SweepSummary sweep = tare::testing::example_sweep(300, 400);
  const auto runs = best_first(sweep);
  const Shading shading(ranked(sweep), true);
  const std::string fine = learning_curves(sweep, runs, shading, size_t{4} << 20);
  const std::string coarse = learning_curves(sweep, runs, shading, 40'000);
  EXPECT_GT(fine.size(), 100'000U);
  EXPECT_LT(coarse.size(), 44'000U);
  EXPECT_GT(coarse.size(), 10'000U);
}

}  // namespace
}  // namespace tare::report

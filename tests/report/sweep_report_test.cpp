// The page of a sweep, from no runs to a thousand.
#include "tare/report/sweep_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "report/example_sweep.h"
#include "report/markup_check.h"
#include "tare/report/run_report.h"

namespace tare::report {
namespace {

using tare::testing::count_of;
using tare::testing::example_sweep;
using tare::testing::hostile_sweep;
using tare::testing::is_well_formed;
using ::testing::HasSubstr;
using ::testing::Not;

SweepRun run(int64_t number, const char* state, double value) {
  return {.name = "run" + std::to_string(number),
          .number = number,
          .state = state,
          .values = {static_cast<double>(number)},
          .metric = {value + 1, value},
          .value = value,
          .peak_bytes = 3 << 20,
          .seconds = 61};
}

/// One run of each state; run 2 is the best.
SweepSummary five_runs() {
  SweepSummary sweep{
      .name = "five",
      .metric = "valid_loss",
      .parameters = {{.name = "model.width", .high = 4, .integer = true}},
      .runs = {run(0, "COMPLETE", 0.5), run(1, "PRUNED", 0.1), run(2, "COMPLETE", 0.25),
               run(3, "FAIL", NAN), run(4, "WAITING", NAN)}};
  sweep.runs[3].reason = "out of memory";
  sweep.runs[4].seconds = 0;
  sweep.runs[4].peak_bytes = 0;
  return sweep;
}

TEST(SweepPage, CountsRunsAndNamesTheBest) {
  SweepSummary sweep = five_runs();
  const std::string html = sweep_page(sweep);
  EXPECT_TRUE(is_well_formed(html));
  for (const char* text :
       {"<h1>five</h1>", "5 runs of 1 parameter; lowest valid_loss is best",
        "<dt>complete</dt><dd>2</dd>", "<dt>failed</dt><dd>1</dd>", "<dt>pruned</dt><dd>1</dd>",
        "<dt>waiting</dt><dd>1</dd>", "<dt>best valid_loss</dt><dd>0.25</dd>",
        "<dt>best run</dt><dd>run2</dd>", "<dd>4 min 04 s</dd>", "<dd>3 MiB</dd>",
        "Failed: 1 out of memory."})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("class=\"missing\"")));
  sweep.maximize = true;
  sweep.runs[4].state = "RUNNING";
  EXPECT_THAT(sweep_page(sweep), HasSubstr("<dt>best run</dt><dd>run0</dd>"));
  EXPECT_THAT(sweep_page(sweep), HasSubstr("<dd>0 and 1 running</dd>"));
}

TEST(SweepPage, SaysWhereTheRanksOfRunsWere) {
  SweepSummary sweep = five_runs();
  EXPECT_THAT(sweep_page(sweep), Not(HasSubstr("placed")));
  sweep.runs[2].placed = "2 ranks on cuda:0, cuda:1";
  const std::string html = sweep_page(sweep);
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, HasSubstr("<td>2</td><td>2 ranks on cuda:0, cuda:1</td><td>3 MiB</td>"));
  EXPECT_THAT(html, HasSubstr("<td>0</td><td>-</td><td>3 MiB</td>")) << "of one rank";
}

TEST(SweepPage, ListsEveryRunTheBestFirst) {
  const std::string html = sweep_page(five_runs());
  size_t at = html.find("<tbody>");
  for (const char* row :
       {"<tr><th scope=\"row\">run2</th><td>0.25</td><td>complete</td><td>2</td><td>3 MiB</td>"
        "<td>1 min 01 s</td></tr>",
        "<tr><th scope=\"row\">run0</th><td>0.5</td>",
        "<tr><th scope=\"row\">run1</th><td>0.1</td><td>pruned</td>",
        "<tr><th scope=\"row\">run4</th><td>-</td><td>waiting</td><td>4</td><td>-</td><td>-</td>",
        "<tr><th scope=\"row\">run3</th><td>-</td><td>failed: out of memory</td><td>3</td>"}) {
    at = html.find(row, at);
    ASSERT_NE(at, html.npos) << row;
  }
}

TEST(SweepPage, DrawsTheBestValueSoFar) {
  const std::string html = sweep_page(five_runs());
  // 0.5 at run 0 and 0.25 from run 2 on, of an axis from 0.1 to 0.5: the pruned run is no best one.
  EXPECT_THAT(html, HasSubstr("d=\"M0 0L1000 0L1000 625L1000 625\""));
  EXPECT_THAT(html, HasSubstr("A dot for each of 3 runs, and a line for the best value so far."));
  EXPECT_THAT(html, HasSubstr("<path class=\"dot s2\" d=\"m1000 625h0\"/>"));
}

TEST(SweepPage, SaysWhereImportanceCannotBeTold) {
  EXPECT_THAT(sweep_page(five_runs()),
              HasSubstr("There are too few runs: the best tenth of 2 complete runs"));
  const std::string few = sweep_page(example_sweep(30, 3));
  EXPECT_THAT(few, HasSubstr("From so few this is a hint at most"));
  EXPECT_THAT(few, HasSubstr("<title>Importance of the parameters</title>"));
  EXPECT_THAT(sweep_page(example_sweep(100, 3)), Not(HasSubstr("a hint at most")));
  SweepSummary same = example_sweep(100, 3);
  for (auto& run : same.runs) run.value = 1;
  EXPECT_THAT(sweep_page(same),
              HasSubstr("No parameter distinguishes the best runs from the others."));
}

TEST(SweepPage, HoldsAThousandRunsInAMegabyte) {
  const std::string html = sweep_page(example_sweep(1000, 100));
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_LT(html.size(), 1'000'000U);
  EXPECT_EQ(count_of(html, "<tr><th scope=\"row\">"), 1000U);
  EXPECT_THAT(html, Not(HasSubstr("more</p>")));
  EXPECT_THAT(html, Not(HasSubstr("Drawn are")));
  EXPECT_EQ(count_of(html, "<path d=\"m"), 2U * 847 - 2 + 59) << "and the failed ones' curves";
  EXPECT_EQ(count_of(html, "<path class=\"dash\" d=\"m"), 2U * 94);
  RecordProperty("bytes", std::to_string(html.size()));
}

TEST(SweepPage, HoldsAThousandRunsOfNoiseInAMegabyte) {
  SweepSummary sweep = example_sweep(1000, 100);
  std::mt19937 generator(1);
  for (auto& run : sweep.runs)
    for (double& value : run.metric) value = static_cast<double>(generator()) / 0x1p32;
  const std::string html = sweep_page(sweep);
  EXPECT_LT(html.size(), 1'000'000U);
  EXPECT_EQ(count_of(html, "<tr><th scope=\"row\">"), 1000U);
}

/// Curves without a smooth stretch, or without two values beside each other.
SweepSummary noisy_sweep(size_t runs, size_t epochs, size_t parameters, bool gaps) {
  SweepSummary sweep{.name = "noise", .metric = "m"};
  std::mt19937 generator(1);
  const auto uniform = [&] { return static_cast<double>(generator()) / 0x1p32; };
  for (size_t i = 0; i < parameters; ++i)
    sweep.parameters.push_back({.name = "parameter" + std::to_string(i), .high = 1});
  for (size_t i = 0; i < runs; ++i) {
    auto& run = sweep.runs.emplace_back();
    run.name = std::string(100, '&') + std::to_string(i);
    run.number = static_cast<int64_t>(i);
    run.state = "COMPLETE";
    for (size_t p = 0; p < parameters; ++p) run.values.push_back(uniform());
    for (size_t e = 0; e < epochs; ++e) run.metric.push_back(gaps && e % 2 == 0 ? NAN : uniform());
    run.value = uniform();
  }
  return sweep;
}

TEST(SweepPage, IsNeverLargerThanAMegabyte) {
  for (const auto& sweep : {noisy_sweep(1000, 100, 8, false), noisy_sweep(1000, 1000, 40, true),
                            noisy_sweep(6000, 30, 12, false), noisy_sweep(1000, 30, 200, false)}) {
    const std::string html = sweep_page(sweep);
    EXPECT_LE(html.size(), kMaxPageBytes) << sweep.runs.size() << " runs";
    EXPECT_TRUE(is_well_formed(html));
  }
}

TEST(SweepPage, SaysWhatItLeavesOut) {
  const std::string html = sweep_page(noisy_sweep(3000, 4, kSweepParameters + 6, false));
  EXPECT_THAT(html, HasSubstr("Shown are the first 64 parameters of 70."));
  EXPECT_THAT(html, HasSubstr("Drawn are 1,000 of 3,000 runs: the best, the worst"));
  EXPECT_THAT(html, HasSubstr("more</p>"));
}

TEST(SweepPage, NeverDropsTheBestAndTheWorst) {
  const SweepSummary sweep = example_sweep(3000, 4);
  const auto runs = ranked(sweep);
  for (const size_t limit : {2U, 3U, 1000U}) {
    const auto some = spread(runs, limit);
    EXPECT_EQ(some.size(), limit);
    EXPECT_EQ(some.front(), runs.front());
    EXPECT_EQ(some.back(), runs.back());
  }
  EXPECT_EQ(spread(runs, 5000), runs);
}

TEST(SweepPage, DrawsTheCurvesOfTheBestAndTheWorst) {
  SweepSummary sweep = example_sweep(3000, 4);
  EXPECT_THAT(sweep_page(sweep), Not(HasSubstr(">-6</text>")));
  for (auto& run : sweep.runs)
    if (run.number == 1500 || run.number == 1501) run.state = "COMPLETE";
  sweep.runs[1500].metric = {0, 0, 5, 0};
  sweep.runs[1500].value = 7;
  sweep.runs[1501].metric = {0, 0, -5, 0};
  sweep.runs[1501].value = -7;
  const std::string html = sweep_page(sweep);
  EXPECT_THAT(html, HasSubstr(">6</text>"));
  EXPECT_THAT(html, HasSubstr(">-6</text>"));
}

TEST(SweepPage, EscapesWhatRunsSay) {
  const std::string html = sweep_page(hostile_sweep());
  EXPECT_TRUE(is_well_formed(html));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("&lt;/title&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("\u0446\u0438\u0444\u0440\u044b-\U0001F600"));
  EXPECT_EQ(count_of(html, "</title>"), count_of(html, "<title>"));
  for (const char* number : {"=\"nan", "=\"-nan", "=\"inf", "nan%", "inf%", "m-922", "\"Mnan"})
    EXPECT_THAT(html, Not(HasSubstr(number)));
}

TEST(SweepPage, PlacesAnyRunNumber) {
  SweepSummary sweep = five_runs();
  sweep.runs[0].number = std::numeric_limits<int64_t>::min();
  sweep.runs[2].number = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(sweep_page(sweep), HasSubstr("<path class=\"dot s2\" d=\"m1000 625h0\"/>"));
  sweep.runs = {sweep.runs[2]};
  EXPECT_THAT(sweep_page(sweep), HasSubstr("<path class=\"dot s2\" d=\"m0 "));
}

TEST(SweepPage, NamesNoOtherFileOrAddress) {
  for (const auto& sweep : {example_sweep(40, 5), hostile_sweep()}) {
    const std::string html = sweep_page(sweep);
    for (const char* reference :
         {"src=", "href=", "url(", "@import", "<script", "<link", "<iframe"})
      EXPECT_THAT(html, Not(HasSubstr(reference)));
    EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  }
}

TEST(SweepPage, GivesEveryChartAnAlternativeText) {
  const std::string html = sweep_page(example_sweep(60, 5));
  EXPECT_EQ(count_of(html, "role=\"img\""), 4U);
  EXPECT_EQ(count_of(html, "<desc>"), 4U);
}

TEST(SweepPage, OfNoRunsOrNoParametersIsSensible) {
  EXPECT_THAT(sweep_page({}), HasSubstr("The sweep has no run yet."));
  EXPECT_TRUE(is_well_formed(sweep_page({})));
  SweepSummary sweep = five_runs();
  sweep.parameters.clear();
  EXPECT_THAT(sweep_page(sweep), HasSubstr("The sweep varies no parameter."));
  EXPECT_TRUE(is_well_formed(sweep_page(sweep)));
}

TEST(SweepPage, OfRunsWithoutAValueIsSensible) {
  SweepSummary sweep = five_runs();
  for (auto& run : sweep.runs) run.state = "FAIL";
  EXPECT_THAT(sweep_page(sweep), HasSubstr("No run has completed with a value of valid_loss."));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {std::nan(""), kInfinity, -kInfinity, 1e308, 1e-308}) {
    sweep = five_runs();
    for (auto& run : sweep.runs) run.value = value;
    const std::string html = sweep_page(sweep);
    EXPECT_TRUE(is_well_formed(html)) << value;
    EXPECT_THAT(html, HasSubstr("3 runs ended without a value that can be drawn"));
    EXPECT_THAT(html, HasSubstr("valid_loss by epoch")) << "the curves up to there";
    EXPECT_THAT(html, HasSubstr("no value at the end"));
  }
}

TEST(SweepPage, OfOneRunOrOneValueIsSensible) {
  SweepSummary sweep = five_runs();
  sweep.runs.resize(1);
  EXPECT_THAT(sweep_page(sweep), HasSubstr("1 run of 1 parameter"));
  EXPECT_TRUE(is_well_formed(sweep_page(sweep)));
  sweep.runs[0].metric = {0.5};
  EXPECT_THAT(sweep_page(sweep), HasSubstr("d=\"m0 ")) << "a dot";
  SweepSummary same = example_sweep(30, 4);
  for (auto& run : same.runs) {
    run.value = 0;
    run.metric = {0, 0};
    run.values.assign(8, 1);
  }
  EXPECT_TRUE(is_well_formed(sweep_page(same)));
}

}  // namespace
}  // namespace tare::report

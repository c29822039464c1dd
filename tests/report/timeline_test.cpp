// Timelines that are reduced to a page.
#include "tare/report/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "report/run_folder.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"

namespace tare::report {
namespace {

using tare::testing::TempDir;
using tare::testing::write_file;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHead = "time_s,event,bytes,allocated_bytes,block,phase,allocated_in";
const std::string kStart = "\n0,start,0,100,0,none,none\n";

Timeline read(const std::string& text) {
  const TempDir folder;
  write_file(folder / "timeline.csv", text);
  return read_timeline(folder / "timeline.csv");
}

TEST(Timeline, FollowsEveryBlock) {
  const Timeline t = read(kHead + kStart +
                          "1,allocation,50,150,7,forward,forward\n"
                          "2,free,30,120,3,backward,data\n"
                          "2.5,allocation,8,128,9,backward,backward\n"
                          "4,free,50,78,7,step,forward\n");
  EXPECT_FALSE(t.by_category);
  EXPECT_EQ(t.events, 4);
  EXPECT_EQ(t.end_s, 4);
  EXPECT_THAT(t.groups, ElementsAre("before the trace", "forward", "backward"));
  EXPECT_EQ(t.peak_bytes, 150);
  EXPECT_EQ(t.peak_s, 1);
  EXPECT_EQ(t.peak_phase, "forward");
  EXPECT_THAT(t.at_peak, ElementsAre(100, 50, 0));
  ASSERT_EQ(t.left.size(), 1U);
  EXPECT_EQ(t.left[0].group, "backward");
  EXPECT_EQ(t.left[0].blocks, 1);
  EXPECT_EQ(t.left[0].bytes, 8);
}

TEST(Timeline, GroupsByCategoryWhereTheFileHasIt) {
  const Timeline t = read(kHead +
                          ",category\n0,start,0,0,0,none,none,unknown\n"
                          "1,allocation,50,50,1,forward,forward,activations\n");
  EXPECT_TRUE(t.by_category);
  EXPECT_THAT(t.groups, ElementsAre("before the trace", "activations"));
  EXPECT_EQ(t.left[0].group, "activations");
  EXPECT_EQ(t.left[0].phase, "forward");
}

TEST(Timeline, SharesTheTimeAmongPhases) {
  const Timeline t = read(kHead +
                          "\n0,start,0,0,0,none,none\n"
                          "10,allocation,1,1,1,forward,forward\n"
                          "70,free,1,0,1,backward,forward\n"
                          "100,allocation,1,1,2,step,step\n");
  ASSERT_THAT(t.phases, ElementsAre("none", "forward", "backward", "step"));
  std::vector<double> seconds(4);
  for (size_t p = 0; p < 4; ++p)
    for (size_t i = 0; i + 1 < t.stretch_s.size(); ++i)
      seconds[p] += t.shares[p][i] * (t.stretch_s[i + 1] - t.stretch_s[i]);
  EXPECT_NEAR(seconds[0], 10, 1e-6);
  EXPECT_NEAR(seconds[1], 60, 1e-6);
  EXPECT_NEAR(seconds[2], 30, 1e-6);
  EXPECT_EQ(seconds[3], 0);
}

TEST(Timeline, KeepsTheExtremesOfAMillionEvents) {
  const TempDir folder;
  tare::testing::write_timeline(folder / "timeline.csv", 50'000);  // 20 events each and some
  const Timeline t = read_timeline(folder / "timeline.csv");
  EXPECT_EQ(t.events, 50'000 * 20 + 5'000 + 1);
  EXPECT_LE(t.stretch_s.size(), kBuckets + 1);
  EXPECT_GE(t.stretch_s.size(), kBuckets / 2);
  EXPECT_TRUE(std::ranges::is_sorted(t.stretch_s));
  double highest = 0;
  for (size_t i = 0; i < t.stretch_s.size(); ++i) {
    double sum = 0;
    for (const auto& group : t.bytes) sum += group[i];
    highest = std::max(highest, sum);
    EXPECT_GE(sum, t.lowest_bytes[i]);
  }
  EXPECT_EQ(highest, static_cast<double>(t.peak_bytes));
  EXPECT_EQ(t.lowest_bytes[0], 1000);
  EXPECT_GE(t.lowest_bytes[1], 40'001'000) << "the weights, and what each tenth step leaves";
  EXPECT_LE(t.lowest_bytes[1], 40'001'000 + 24 * 5'000);
  EXPECT_EQ(t.peak_bytes, std::accumulate(t.at_peak.begin(), t.at_peak.end(), int64_t{0}));
  EXPECT_GE(t.peak_bytes, 40'000'000 + 3'000'000 + 8 * 4'049'000 + 10'000'000);
  ASSERT_EQ(t.left.size(), 2U);  // the weights, and a block of every tenth step
  EXPECT_EQ(t.left[1].blocks, 5'000);
  EXPECT_EQ(t.left[1].bytes, 5'000 * 24);
}

TEST(Timeline, OfAnEmptyRecordIsFlat) {
  const Timeline t = read(kHead + kStart);
  EXPECT_EQ(t.events, 0);
  EXPECT_EQ(t.peak_bytes, 100);
  EXPECT_TRUE(t.left.empty());
}

TEST(Timeline, BoundsTheNumberOfGroups) {
  std::string text = kHead + "\n0,start,0,0,0,none,none\n";
  for (int i = 1; i <= 200; ++i) {
    const std::string n = std::to_string(i);
    text += n + ",allocation,1," + n + ',' + n + ",p" + n + ",p" + n + '\n';
  }
  const Timeline t = read(text);
  EXPECT_EQ(t.groups.size(), kGroups);
  EXPECT_EQ(t.groups.back(), "more");
  EXPECT_EQ(t.at_peak.back(), 200 - static_cast<int64_t>(kGroups) + 2);
}

TEST(Timeline, RefusesAnotherFile) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)read(text);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message(""), HasSubstr("no line 'start'"));
  EXPECT_THAT(message("a,b\n1,2\n"), HasSubstr("line 1: is not the header"));
  const std::string good = kHead + kStart;
  const std::vector<std::pair<std::string, std::string>> bad{
      {"1,allocation,50,150,7,forward\n", "not as many fields"},
      {"1,resize,50,150,7,a,a\n", "unknown event"},
      {"x,allocation,50,150,7,a,a\n", "text where a number"},
      {"nan,allocation,50,150,7,a,a\n", "back in time"},
      {"-1,allocation,50,150,7,a,a\n", "back in time"},
      {"1,allocation,-5,95,7,a,a\n", "negative bytes"},
      {"1,allocation,50,151,7,a,a\n", "do not follow"},
      {"1,free,101,-1,7,a,a\n", "more than there can be"},
      {"1,allocation,9223372036854775807,0,7,a,a\n", "more than there can be"},
      {"1,allocation,5,105,7,a,a\n2,allocation,5,110,7,a,a\n", "a block that is alive"},
      {"1,allocation,5,105,7,a,a\n2,free,6,99,7,a,a\n", "another size"},
      {"1,start,5,105,7,a,a\n", "not the start"}};
  for (const auto& [line, problem] : bad) EXPECT_THAT(message(good + line), HasSubstr(problem));
  EXPECT_THROW((void)read_timeline("absent.csv"), IoError);
}

}  // namespace
}  // namespace tare::report

// The files that are made from a history.
#include "tare/memory/trace_files.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/memory/block_categories.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/event_log.h"
#include "tare/memory/phase.h"

namespace tare::memory {
namespace {

using tare::testing::TempDir;

constexpr auto kForwardPhase = static_cast<uint32_t>(PhaseKind::forward);

EventHistory small_history() {
  EventHistory history;
  history.events = {{1'000'000, 100, 7, kForwardPhase, kForwardPhase, EventKind::allocation},
                    {2'500'000, 30, 3, phase_id("a \"b\", c"), kForwardPhase, EventKind::free}};
  history.alive = {{nullptr, 100, 7, kForwardPhase, 0}, {nullptr, 5, 2, 0, 0}};
  return history;
}

TEST(TraceFiles, WriteATimeline) {
  const TempDir folder;
  auto history = small_history();
  assign_categories(history, {{3, Category::parameters}});
  write_timeline_csv(history, folder / "timeline.csv");
  EXPECT_EQ(io::read_text(folder / "timeline.csv"),
            "time_s,event,bytes,allocated_bytes,block,phase,allocated_in,category\n"
            "0,start,0,35,0,none,none,unknown\n"
            "0.001000000,allocation,100,135,7,forward,forward,activations\n"
            "0.002500000,free,30,105,3,\"a \"\"b\"\", c\",forward,parameters\n");
}

TEST(TraceFiles, WriteATimelineLongerThanABuffer) {
  const TempDir folder;
  EventHistory history;
  for (uint64_t i = 1; i <= 5000; ++i) {
    history.events.push_back({0, 8, i, 0, 0, EventKind::allocation});
    history.events.push_back({0, 8, i, 0, 0, EventKind::free});
  }
  write_timeline_csv(history, folder / "timeline.csv");
  const auto text = io::read_text(folder / "timeline.csv");
  EXPECT_EQ(std::ranges::count(text, '\n'), 10'002);
  EXPECT_TRUE(text.ends_with("0.000000000,free,8,0,5000,none,none,unknown\n"));
}

TEST(TraceFiles, WriteAChromeTrace) {
  const TempDir folder;
  const auto data = static_cast<uint32_t>(PhaseKind::data);
  EventHistory history;
  history.events = {{1000, 100, 1, kForwardPhase, kForwardPhase, EventKind::allocation},
                    {2000, 50, 2, data, data, EventKind::allocation},
                    {3000, 30, 3, kForwardPhase, kForwardPhase, EventKind::allocation},
                    {4000, 30, 3, kForwardPhase, kForwardPhase, EventKind::free},
                    {5000, 7, 9, 0, 0, EventKind::free}};
  history.alive = {{nullptr, 100, 1, kForwardPhase, 0}, {nullptr, 50, 2, data, 0}};
  assign_categories(history, {});
  write_chrome_trace(history, folder / "trace.json");
  const auto trace = nlohmann::json::parse(io::read_text(folder / "trace.json"));
  std::vector<nlohmann::json> counters, spans;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") counters.push_back(event);
    if (event.at("ph") == "X") spans.push_back(event);
  }
  ASSERT_EQ(counters.size(), 6U);
  EXPECT_EQ(counters[0].at("args"),
            (nlohmann::json{{"activations", 0}, {"batch", 0}, {"unknown", 7}, {"workspace", 0}}));
  EXPECT_EQ(counters[3].at("ts"), 3.0);
  EXPECT_EQ(
      counters[3].at("args"),
      (nlohmann::json{{"activations", 100}, {"batch", 50}, {"unknown", 7}, {"workspace", 30}}));
  EXPECT_EQ(counters[5].at("args").at("unknown"), 0);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].at("name"), "data");
  EXPECT_EQ(spans[1].at("name"), "forward") << "the loader does not interrupt it";
  EXPECT_EQ(spans[1].at("ts"), 1.0);
  EXPECT_EQ(spans[1].at("dur"), 3.0);
}

TEST(TraceFiles, ThePeakIsAmongTheMomentsOfALongChromeTrace) {
  const TempDir folder;
  EventHistory history;
  for (uint64_t i = 1; i <= 2 * kTraceMoments; ++i) {
    const int64_t bytes = i == kTraceMoments ? 1000 : 8;
    history.events.push_back({0, bytes, i, 0, 0, EventKind::allocation});
    history.events.push_back({0, bytes, i, 0, 0, EventKind::free});
  }
  write_chrome_trace(history, folder / "trace.json");
  const auto trace = nlohmann::json::parse(io::read_text(folder / "trace.json"));
  int64_t peak = 0;
  size_t moments = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "C") continue;
    ++moments;
    peak = std::max(peak, event.at("args").at("unknown").get<int64_t>());
  }
  EXPECT_EQ(peak, 1000);
  EXPECT_LE(moments, kTraceMoments + 1);
}

TEST(TraceFiles, WriteThePeakAsCollapsedStacks) {
  const TempDir folder;
  EventHistory history;
  {
    const EventLog log;
    const CallSites sites;
    const Phase forward(PhaseKind::forward);
    const auto kept = at::empty({1000}, at::kByte);
    history = log.history();
  }
  history.alive.erase(history.alive.begin(), history.alive.end() - 1);  // of other tests
  assign_categories(history, {});
  write_peak_stacks(history, folder / "peak.folded");
  const auto text = io::read_text(folder / "peak.folded");
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_TRUE(text.starts_with("activations;phase forward;")) << text;
  EXPECT_TRUE(text.ends_with(" 1000\n")) << text;
  const auto test = text.find("(trace_files_test.cpp:");
  EXPECT_LT(text.find("testing::Test::Run()"), test) << "outermost first: " << text;
  EXPECT_LT(test, text.size()) << text;
}

TEST(TraceFiles, RefuseAFolderThatIsNotThere) {
  const TempDir folder;
  EXPECT_THROW(write_timeline_csv({}, folder / "absent/timeline.csv"), IoError);
}

}  // namespace
}  // namespace tare::memory

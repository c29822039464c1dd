#include "tare/memory/trace_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/memory/phase.h"

namespace tare::memory {
namespace {

using tare::testing::TempDir;

constexpr auto kForward = static_cast<uint32_t>(PhaseKind::forward);

EventHistory small_history() {
  EventHistory history;
  history.events = {{1'000'000, 100, 7, kForward, kForward, EventKind::allocation},
                    {2'500'000, 30, 3, phase_id("a \"b\", c"), kForward, EventKind::free}};
  history.alive = {{nullptr, 100, 7, kForward, 0}, {nullptr, 5, 2, 0, 0}};
  return history;
}

TEST(TraceFiles, WriteATimeline) {
  const TempDir folder;
  write_timeline_csv(small_history(), folder / "timeline.csv");
  EXPECT_EQ(io::read_text(folder / "timeline.csv"),
            "time_s,event,bytes,allocated_bytes,block,phase,allocated_in\n"
            "0,start,0,35,0,none,none\n"
            "0.001000000,allocation,100,135,7,forward,forward\n"
            "0.002500000,free,30,105,3,\"a \"\"b\"\", c\",forward\n");
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
  EXPECT_TRUE(text.ends_with("0.000000000,free,8,0,5000,none,none\n"));
}

TEST(TraceFiles, RefuseAFolderThatIsNotThere) {
  const TempDir folder;
  EXPECT_THROW(write_timeline_csv({}, folder / "absent/timeline.csv"), IoError);
}

}  // namespace
}  // namespace tare::memory

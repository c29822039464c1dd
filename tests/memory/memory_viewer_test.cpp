// The file for PyTorch's memory viewer, read by Python's own unpickler and played back as the
// viewer does.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "support/program.h"
#include "tare/base/io.h"
#include "tare/memory/block_categories.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/event_log.h"
#include "tare/memory/phase.h"
#include "tare/memory/trace_files.h"

namespace tare::memory {
namespace {

using tare::testing::run_program;
using tare::testing::TempDir;

// Replays the trace backwards from the segment, as the viewer's state history does; prints the
// bytes alive before it, at the peak and at the end, then the categories and a frame.
constexpr const char* kReplay = R"(
import pickle, sys
snapshot = pickle.load(open(sys.argv[1], 'rb'))
(segment,), (trace,) = snapshot['segments'], snapshot['device_traces']
assert isinstance(snapshot['allocator_settings'], dict)
alive, address = {}, segment['address']
for block in segment['blocks']:
    assert block['address'] == address, block
    address += block['size']
    if block['state'] == 'active_allocated': alive[block['address']] = block['size']
assert address == segment['address'] + segment['total_size']
end = peak = sum(alive.values())
assert end == segment['allocated_size']
for event in reversed(trace):
    if event['action'] == 'free_completed':
        for start, size in alive.items():
            assert event['addr'] + event['size'] <= start or start + size <= event['addr']
        assert event['addr'] + event['size'] <= address
        alive[event['addr']] = event['size']
    elif event['action'] == 'alloc':
        assert alive.pop(event['addr']) == event['size']
    else:
        assert event['action'] in ('free_requested', 'snapshot')
    peak = max(peak, sum(alive.values()))
print(sum(alive.values()), peak, end)
print(*sorted({event['category'] for event in trace}))
frames = [f for event in trace for f in event['frames'] if 'memory_viewer_test' in f['filename']]
print(frames[0]['line'] if frames else 'no frame')
)";

std::string replayed(const EventHistory& history) {
  const TempDir folder;
  write_memory_viewer(history, folder / "snapshot.pickle");
  const auto result = run_program(
      "/usr/bin/env", {"python3", "-c", kReplay, (folder / "snapshot.pickle").string()});
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

bool has_python() { return run_program("/usr/bin/env", {"python3", "--version"}).status == 0; }

TEST(MemoryViewer, WritesAPickleOfProtocolTwo) {
  const TempDir folder;
  write_memory_viewer({}, folder / "snapshot.pickle");
  const auto bytes = io::read_text(folder / "snapshot.pickle");
  EXPECT_TRUE(bytes.starts_with("\x80\x02}"));
  EXPECT_TRUE(bytes.ends_with("s."));
  EXPECT_NE(bytes.find("device_traces"), std::string::npos);
}

TEST(MemoryViewer, PlaysBackToTheSameFigures) {
  if (!has_python()) GTEST_SKIP() << "python3 is not installed";
  constexpr auto kForward = static_cast<uint32_t>(PhaseKind::forward);
  EventHistory history;
  const auto add = [&](int64_t bytes, uint64_t block, EventKind kind) {
    history.events.push_back({0, bytes, block, kForward, kForward, kind});
  };
  add(100, 10, EventKind::allocation);
  add(50, 11, EventKind::allocation);
  add(30, 3, EventKind::free);  // of before the log
  add(100, 10, EventKind::free);
  add(20, 12, EventKind::allocation);
  add(int64_t{3} << 32, 13, EventKind::allocation);
  add(50, 11, EventKind::free);
  add(int64_t{3} << 32, 13, EventKind::free);
  history.alive = {{nullptr, 7, 2, 0, 0}, {nullptr, 20, 12, kForward, 0}};
  assign_categories(history, {{2, Category::parameters}});
  EXPECT_EQ(replayed(history), "37 12884901965 27\nactivations unknown workspace\nno frame\n");
}

TEST(MemoryViewer, HasTheFramesOfARealLog) {
  if (!has_python()) GTEST_SKIP() << "python3 is not installed";
  const EventLog log;
  const CallSites sites;
  std::vector<at::Tensor> kept;
  for (int64_t i = 1; i < 200; ++i) {
    kept.push_back(at::empty({i * 37 % 1000 + 1}, at::kByte));
    if (i % 3 == 0) kept.erase(kept.begin() + i % 7);
  }
  const int line = __LINE__ - 3;
  const auto history = log.history();
  int64_t end = 0;
  for (const auto& block : history.alive) end += block.bytes;
  EXPECT_EQ(replayed(history),
            std::to_string(bytes_at_start(history)) + ' ' + std::to_string(peak_of(history).bytes) +
                ' ' + std::to_string(end) + "\nunknown\n" + std::to_string(line) + '\n');
}

}  // namespace
}  // namespace tare::memory

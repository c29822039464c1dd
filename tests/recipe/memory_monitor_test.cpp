// The lines of mem_trace.
#include "tare/recipe/memory_monitor.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <thread>

#include "recipe/tiny.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/phase.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Lines = std::vector<std::string>;

at::Tensor bytes(int64_t count) { return at::empty({count}, at::kByte); }

/// The lines of the moment with this title that begin with `word`, without what stands before it.
Lines lines(const std::ostringstream& out, const std::string& title, const std::string& word) {
  std::istringstream all(out.str());
  Lines some;
  bool here = false;
  for (std::string line; std::getline(all, line);) {
    const std::string module = ": memory] ";
    const size_t at = line.find(module);
    if (at == std::string::npos) continue;
    const std::string text = line.substr(at + module.size());
    if (text.starts_with("------ ")) here = text == "------ " + title + " ------";
    if (here && text.starts_with(word)) some.push_back(text);
  }
  return some;
}

size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(MemoryMonitor, TellsWhatHasChangedSinceTheStartAndSinceTheLinesBefore) {
  std::ostringstream out;
  at::Tensor first, second;
  MemoryMonitor log({.enabled = true}, out);
  {
    const memory::Phase phase("mine");
    first = bytes(1000);
    log.snapshot("one");
    second = bytes(500);
  }
  log.snapshot("two");
  first.reset();
  log.snapshot("three");

  const std::string mine = "stat=cpu, phase mine: ";
  EXPECT_THAT(lines(out, "Start", "top_diffs"), IsEmpty());
  EXPECT_THAT(lines(out, "one", "top_diffs"),
              Contains("top_diffs i=1, " + mine +
                       "size=1,000 B (+1,000 B), count=1 (+1), average=1,000 B"));
  EXPECT_THAT(
      lines(out, "two", "top_diffs"),
      Contains("top_diffs i=1, " + mine + "size=1,500 B (+1,500 B), count=2 (+2), average=750 B"));
  EXPECT_THAT(
      lines(out, "three", "top_diffs"),
      Contains("top_diffs i=1, " + mine + "size=500 B (+500 B), count=1 (+1), average=500 B"));

  const auto two = lines(out, "two", "top_incremental");
  ASSERT_THAT(two, SizeIs(1));
  EXPECT_THAT(two[0], AllOf(StartsWith("top_incremental i=1, stat=cpu, phase mine, "),
                            HasSubstr("memory_monitor_test.cpp:"),
                            EndsWith("(+500 B), count=2 (+1), average=750 B")))
      << "both are of the line in bytes()";
  EXPECT_THAT(lines(out, "three", "top_incremental"),
              Contains(EndsWith(": size=500 B (-1,000 B), count=1 (-1), average=500 B")));
  EXPECT_THAT(lines(out, "three", "top_current"),
              Contains(AllOf(HasSubstr("memory_monitor_test.cpp:"),
                             EndsWith(": size=500 B, count=1, average=500 B"))));
}

TEST(MemoryMonitor, ListsAsManyAsItIsAskedFor) {
  std::ostringstream out;
  MemoryMonitor log({.enabled = true, .top = 2, .trace = 1}, out);
  std::vector<at::Tensor> kept;
  for (const char* name : {"a", "b", "c"}) {
    const memory::Phase phase(name);
    kept.push_back(bytes(int64_t{1} << 26));
  }
  log.snapshot("now");
  for (const char* word : {"top_diffs", "top_incremental", "top_current"})
    EXPECT_THAT(lines(out, "now", word), SizeIs(2)) << word;
  EXPECT_THAT(lines(out, "now", "traceback"),
              Contains(StartsWith("traceback memory_blocks=1, size_kB=65536, cpu, phase ")));
  EXPECT_THAT(lines(out, "now", "traceback"), SizeIs(1));
  const auto frames = lines(out, "now", "  ");
  ASSERT_FALSE(frames.empty());
  EXPECT_THAT(frames.front(), HasSubstr("memory_monitor_test.cpp:")) << "no frame of the allocator";
  for (const auto& frame : frames) EXPECT_THAT(frame, Not(HasSubstr("__libc_start")));
  EXPECT_THAT(lines(out, "now", "host_stats"), SizeIs(1));
  EXPECT_THAT(lines(out, "now", "tensors device=cpu, size="), SizeIs(1));
}

TEST(MemoryMonitor, SaysSoWhereThereIsNoCallStack) {
  const at::Tensor before = bytes(int64_t{1} << 27);
  std::ostringstream out;
  { const MemoryMonitor log({.enabled = true}, out); }
  EXPECT_THAT(lines(out, "End", "  "), Contains("  no call stack"));
  EXPECT_THAT(lines(out, "End", "top_current i=1"), Contains(HasSubstr(", unknown: size=134,")));
  EXPECT_THAT(lines(out, "End", "top_diffs"), IsEmpty());
}

TEST(MemoryMonitor, DoesNothingUnlessItIsEnabled) {
  std::ostringstream out;
  const size_t before = threads();
  {
    MemoryMonitor log({}, out);
    log.snapshot("now");
    EXPECT_EQ(threads(), before);
    EXPECT_FALSE(memory::CallSites::in_scope());
  }
  EXPECT_EQ(out.str(), "");
}

/// Text that one thread writes and another waits for.
class SharedText final : public std::streambuf {
 public:
  void wait_for(const std::string& word) {
    std::unique_lock lock(mutex_);
    written_.wait(lock, [&] { return text_.find(word) != std::string::npos; });
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const std::lock_guard lock(mutex_);
    text_.append(text, static_cast<size_t>(count));
    written_.notify_all();
    return count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable written_;
  std::string text_;
};

TEST(MemoryMonitor, LooksAgainWhileTheWorkGoesOn) {
  SharedText text;
  std::ostream out(&text);
  MemoryMonitor log({.enabled = true, .interval_s = 1}, out);
  std::atomic<bool> done = false;
  std::thread work([&] {
    while (!done) (void)bytes(100);
  });
  text.wait_for("- Snapshot -");
  done = true;
  work.join();
  log.snapshot("after");
  text.wait_for("- after -");
}

TEST(MemoryMonitor, IsPartOfARunThatAsksForIt) {
  const TempDir folder;
  std::ostringstream out;
  (void)run_recipe(tiny(folder), {.out = &out, .memory_monitor = {.enabled = true}});
  EXPECT_THAT(lines(out, "Before the purge of first", "top_diffs"), Contains(HasSubstr(" (+")));
  EXPECT_THAT(lines(out, "Before the purge of all", "top_current"), Not(IsEmpty()));
  EXPECT_THAT(lines(out, "End", "host_stats"), SizeIs(1));
}

}  // namespace
}  // namespace tare::testing

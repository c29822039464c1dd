// Writes a history as a timeline, a Chrome trace and collapsed stacks.
#include "tare/memory/trace_files.h"

#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>

#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/memory/block_categories.h"
#include "tare/memory/call_site.h"
#include "tare/memory/phase.h"
#include "tare/memory/timeline_columns.h"

namespace tare::memory {
namespace {

constexpr size_t kChunk = 1 << 16;

/// Phase names as they may stand in a CSV field, each asked for once.
class PhaseNames {
 public:
  const std::string& of(uint32_t id) {
    const auto [name, added] = names_.try_emplace(id);
    if (added) name->second = csv_field(phase_name(id));
    return name->second;
  }

 private:
  std::unordered_map<uint32_t, std::string> names_;
};

int64_t change_of(const MemoryEvent& event) {
  return event.kind == EventKind::allocation ? event.bytes : -event.bytes;
}

std::string json_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string microseconds(int64_t time_ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(time_ns) * 1e-3);
  return text;
}

/// Trace events, written as they come.
class ChromeTrace {
 public:
  explicit ChromeTrace(io::File& file) : file_(file) {}

  void add(const std::string& kind, const std::string& name, const std::string& rest) {
    text_ += (first_ ? "{\"traceEvents\":[\n" : ",\n");
    text_ += "{\"ph\":\"" + kind + "\",\"pid\":1,\"name\":" + json_text(name) + rest + '}';
    first_ = false;
    if (text_.size() < kChunk) return;
    file_.write(text_);
    text_.clear();
  }
  void end() { file_.write(text_ + "\n]}\n"); }

 private:
  io::File& file_;
  std::string text_;
  bool first_ = true;
};

/// Bytes by category, in order of their names.
using Totals = std::map<std::string, int64_t>;

void put_totals(ChromeTrace& trace, int64_t time_ns, const Totals& totals) {
  std::string args;
  for (const auto& [name, bytes] : totals)
    args += (args.empty() ? "" : ",") + json_text(name) + ':' + std::to_string(bytes);
  trace.add("C", "allocated bytes",
            ",\"ts\":" + microseconds(time_ns) + ",\"args\":{" + args + '}');
}

void put_counters(ChromeTrace& trace, const EventHistory& history) {
  Totals now;
  for (const auto& event : history.events) now[category_name(history, event.block)] = 0;
  for (const auto& block : alive_after(history, 0))
    now[category_name(history, block.sequence)] += block.bytes;
  put_totals(trace, 0, now);
  const size_t group = history.events.size() / kTraceMoments + 1;
  int64_t sum = 0, highest = 0, time_ns = 0;
  Totals at_highest = now;
  for (size_t i = 0; i < history.events.size(); ++i) {
    const auto& event = history.events[i];
    now[category_name(history, event.block)] += change_of(event);
    sum += change_of(event);
    if (i % group == 0 || sum > highest) {
      highest = sum;
      at_highest = now;
      time_ns = event.time_ns;
    }
    if (i % group == group - 1 || i + 1 == history.events.size())
      put_totals(trace, time_ns, at_highest);
  }
}

/// Runs of events of the same phase. Loader threads have `data` beside what the training does, so
/// it is a track of its own and interrupts nothing.
class PhaseTrack {
 public:
  PhaseTrack(ChromeTrace& trace, int track) : trace_(trace), track_(track) {}
  void note(const MemoryEvent& event) {
    if (event.phase != phase_) end();
    if (phase_ == kNone) start_ns_ = event.time_ns;
    phase_ = event.phase;
    last_ns_ = event.time_ns;
  }
  void end() {
    if (phase_ != kNone) {
      trace_.add("X", phase_name(phase_),
                 ",\"tid\":" + std::to_string(track_) + ",\"ts\":" + microseconds(start_ns_) +
                     ",\"dur\":" + microseconds(last_ns_ - start_ns_));
    }
    phase_ = kNone;
  }

 private:
  static constexpr auto kNone = static_cast<uint32_t>(PhaseKind::none);

  ChromeTrace& trace_;
  int track_;
  uint32_t phase_ = kNone;
  int64_t start_ns_ = 0, last_ns_ = 0;
};

void put_phases(ChromeTrace& trace, const EventHistory& history) {
  PhaseTrack work(trace, 1), data(trace, 2);
  for (const auto& event : history.events) {
    const bool of_data = event.phase == static_cast<uint32_t>(PhaseKind::data);
    (of_data ? data : work).note(event);
    if (!of_data) data.end();
  }
  work.end();
  data.end();
}

/// Returns the name of a frame in a collapsed stack, without the characters that separate frames.
std::string folded(const Frame& frame) {
  std::string text = frame.function.empty() ? "unknown" : frame.function;
  if (!frame.file.empty()) {
    text += " (" + std::filesystem::path(frame.file).filename().string() + ':' +
            std::to_string(frame.line) + ')';
  }
  text = printable(text);
  for (char& c : text)
    if (c == ';') c = ',';
  return text;
}

std::string folded_stack(uint32_t stack) {
  std::string text;
  const auto frames = frames_of(stack);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) text += ';' + folded(*frame);
  return text;
}

}  // namespace

void write_timeline_csv(const EventHistory& history, const std::filesystem::path& path) {
  io::write_atomically(path, [&](io::File& file) {
    PhaseNames names;
    int64_t allocated = bytes_at_start(history);
    std::string text;
    for (const char* column : kTimelineColumns)
      text += (text.empty() ? "" : ",") + std::string(column);
    text += "\n0,start,0," + std::to_string(allocated) + ",0,none,none,unknown\n";
    char line[128];
    for (const auto& event : history.events) {
      allocated += change_of(event);
      std::snprintf(line, sizeof line, "%.9f,%s,%lld,%lld,%llu,",
                    static_cast<double>(event.time_ns) * 1e-9,
                    event.kind == EventKind::allocation ? "allocation" : "free",
                    static_cast<long long>(event.bytes), static_cast<long long>(allocated),
                    static_cast<unsigned long long>(event.block));
      text += line + names.of(event.phase) + ',' + names.of(event.allocated_in) + ',' +
              category_name(history, event.block) + '\n';
      if (text.size() < kChunk) continue;
      file.write(text);
      text.clear();
    }
    file.write(text);
  });
}

void write_chrome_trace(const EventHistory& history, const std::filesystem::path& path) {
  io::write_atomically(path, [&](io::File& file) {
    ChromeTrace trace(file);
    const auto name = [&](const char* what, int track, const std::string& text) {
      trace.add(
          "M", what,
          ",\"tid\":" + std::to_string(track) + ",\"args\":{\"name\":" + json_text(text) + '}');
    };
    name("process_name", 0, "memory of " + history.device.str());
    name("thread_name", 1, "phases");
    name("thread_name", 2, "data");
    put_counters(trace, history);
    put_phases(trace, history);
    trace.end();
  });
}

void write_peak_stacks(const EventHistory& history, const std::filesystem::path& path) {
  std::unordered_map<uint32_t, std::string> stacks;
  std::map<std::string, int64_t> bytes;
  for (const auto& block : alive_after(history, peak_of(history).events)) {
    const auto [stack, added] = stacks.try_emplace(block.stack);
    if (added) stack->second = folded_stack(block.stack);
    const Frame phase{"phase " + phase_name(block.phase)};
    bytes[std::string(category_name(history, block.sequence)) + ';' + folded(phase) +
          stack->second] += block.bytes;
  }
  std::string text;
  for (const auto& [stack, sum] : bytes) text += stack + ' ' + std::to_string(sum) + '\n';
  io::write_atomically(path, text);
}

}  // namespace tare::memory

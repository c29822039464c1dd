#include "tare/memory/trace_files.h"

#include <cstdio>
#include <string>
#include <unordered_map>

#include "tare/base/csv.h"
#include "tare/base/io.h"
#include "tare/memory/phase.h"

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

}  // namespace

void write_timeline_csv(const EventHistory& history, const std::filesystem::path& path) {
  io::write_atomically(path, [&](io::File& file) {
    PhaseNames names;
    int64_t allocated = bytes_at_start(history);
    std::string text = "time_s,event,bytes,allocated_bytes,block,phase,allocated_in\n0,start,0," +
                       std::to_string(allocated) + ",0,none,none\n";
    char line[128];
    for (const auto& event : history.events) {
      const bool allocation = event.kind == EventKind::allocation;
      allocated += allocation ? event.bytes : -event.bytes;
      std::snprintf(line, sizeof line, "%.9f,%s,%lld,%lld,%llu,",
                    static_cast<double>(event.time_ns) * 1e-9, allocation ? "allocation" : "free",
                    static_cast<long long>(event.bytes), static_cast<long long>(allocated),
                    static_cast<unsigned long long>(event.block));
      text += line + names.of(event.phase) + ',' + names.of(event.allocated_in) + '\n';
      if (text.size() < kChunk) continue;
      file.write(text);
      text.clear();
    }
    file.write(text);
  });
}

}  // namespace tare::memory

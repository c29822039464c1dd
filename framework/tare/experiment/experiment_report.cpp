// Prints what an Experiment found.
#include "tare/experiment/experiment_report.h"

#include <iomanip>
#include <ostream>
#include <sstream>

#include "tare/base/bytes.h"

namespace tare {
namespace {

/// Below it are what libraries set up at first use, thread stacks and the heap's remains.
constexpr int64_t kGrowthToName = 32_MiB;

double percent(int64_t reclaimed, int64_t consumed) {
  return consumed == 0 ? 100.0
                       : 100.0 * static_cast<double>(reclaimed) / static_cast<double>(consumed);
}

void put_line(std::ostream& out, const char* figure, int64_t consumed, int64_t reclaimed) {
  out << "    " << std::left << std::setw(10) << figure << std::right << std::setw(12)
      << format_bytes(consumed) << std::setw(14) << format_bytes(reclaimed) << " (" << std::fixed
      << std::setprecision(1) << percent(reclaimed, consumed) << " %)\n";
}

void put_device(std::ostream& out, const DeviceReport& side) {
  out << "  " << side.device << " (" << side.name << ")  peak +" << format_bytes(side.peak_bytes)
      << ", available " << format_bytes(side.available_bytes) << "\n"
      << "    " << std::left << std::setw(10) << "" << std::right << std::setw(12) << "consumed"
      << std::setw(14) << "reclaimed"
      << "\n";
  put_line(out, "tracked", side.consumed.allocated_bytes, side.reclaimed.allocated_bytes);
  put_line(out, "reserved", side.consumed.reserved_bytes, side.reclaimed.reserved_bytes);
  put_line(out, "process", side.consumed.process_bytes, side.reclaimed.process_bytes);
  if (side.consumed.pinned_bytes != 0 || side.reclaimed.pinned_bytes != 0)
    put_line(out, "pinned", side.consumed.pinned_bytes, side.reclaimed.pinned_bytes);
  if (side.fragmented_bytes > 0 || side.retries > 0)
    out << "    allocator: " << format_bytes(side.fragmented_bytes) << " fragmented, "
        << format_count(side.retries) << " of its allocations retried\n";
}

std::string describe(const ReleasedObject& object) {
  if (!object.problem.empty()) return object.name + " (not purged: " + object.problem + ")";
  const auto freed = object.freed.str();
  return freed == "nothing" ? object.name : object.name + " (" + freed + ")";
}

/// Returns the age of a block in steps; empty for the newest step.
std::string age(const LeakReport& leak) {
  if (leak.oldest_steps == 0) return {};
  const bool range = leak.youngest_steps != leak.oldest_steps;
  return " " + (range ? format_count(leak.youngest_steps) + " to " : "") +
         format_count(leak.oldest_steps) + (leak.oldest_steps == 1 ? " step ago" : " steps ago");
}

std::string describe(const LeakReport& leak) {
  return format_count(leak.count) + (leak.count == 1 ? " block, " : " blocks, ") +
         format_bytes(leak.bytes) + " on " + leak.device.str() + " born" + age(leak) +
         " in phase " + leak.phase +
         (leak.site == memory::CallSite{} ? "" : " at " + leak.site.str());
}

template <class Items, class Text>
void put_list(std::ostream& out, const char* title, const Items& items, Text text) {
  out << "  " << title << ": ";
  if (items.empty()) out << "none";
  for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << text(items[i]);
  out << "\n";
}

}  // namespace

double DeviceReport::reclaimed_percent() const {
  return percent(reclaimed.allocated_bytes, consumed.allocated_bytes);
}

DeviceReport ExperimentReport::on(c10::Device device) const {
  for (const auto& side : devices)
    if (side.device == device) return side;
  DeviceReport nothing;
  nothing.device = device;
  return nothing;
}

int64_t ExperimentReport::leaked_bytes() const {
  int64_t sum = 0;
  for (const auto& leak : leaks) sum += leak.bytes;
  return sum;
}

std::string ExperimentReport::str() const {
  std::ostringstream out;
  out << "Experiment '" << name << "': ";
  if (!enabled) {
    out << "not enabled\n";
    return out.str();
  }
  out << format_seconds(seconds) << "\n";
  for (const auto& side : devices) put_device(out, side);
  put_list(out, "released", released, [](const auto& object) { return describe(object); });
  put_list(out, "kept", kept, [](const auto& kept_name) { return kept_name; });
  for (const auto& side : devices)
    if (side.device.is_cpu() && side.residual_beside_tensors_bytes() >= kGrowthToName)
      out << "  the process grew by " << format_bytes(side.residual_beside_tensors_bytes())
          << " beside tensors on " << side.device << " in '" << name
          << "': malloc, containers or libraries hold it\n";
  put_list(out, "leaks", leaks, [](const auto& leak) { return describe(leak); });
  if (unclear.empty()) return out.str();
  put_list(out, "kept or leaked", unclear, [](const auto& block) { return describe(block); });
  put_list(out, "do not list their tensors (give them account(Ledger&) const)", opaque,
           [](const auto& kept_name) { return kept_name; });
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const ExperimentReport& report) {
  return out << report.str();
}

}  // namespace tare

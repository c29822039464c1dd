// Measures a region of code and prints its figures.
#include "tare/experiment/region_log.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/machine.h"

namespace tare {
namespace {

thread_local int open_regions = 0;

std::string signed_bytes(int64_t bytes) { return (bytes > 0 ? "+" : "") + format_bytes(bytes); }

std::string indent(int depth) { return std::string(2 * static_cast<size_t>(depth), ' '); }

int64_t tracked_on_host() { return memory::host_allocator::counters().live_bytes; }

/// Returns what was needed above the start, less the part that the region kept.
int64_t peaked(int64_t peak_above_start, int64_t consumed) {
  return std::max<int64_t>(0, peak_above_start - std::max<int64_t>(0, consumed));
}

}  // namespace

std::string RegionReport::compact() const {
  std::string text = indent(depth) + name + ": ";
  for (const auto& side : devices)
    text += side.device.str() + " " + signed_bytes(side.consumed_bytes) + ", peaked " +
            format_bytes(side.peaked_bytes) + "; ";
  text += "process " + signed_bytes(process.consumed_bytes) + ", peaked " +
          format_bytes(process.peaked_bytes) + "; ";
  return text + format_seconds(seconds);
}

std::string RegionReport::full() const {
  std::ostringstream text;
  text << indent(depth) << name << ": " << format_seconds(seconds) << "\n"
       << indent(depth) << "  " << std::left << std::setw(8) << "device" << std::right
       << std::setw(14) << "consumed" << std::setw(14) << "peaked"
       << "\n";
  const auto line = [&](const std::string& what, int64_t consumed_bytes, int64_t peaked_bytes) {
    text << indent(depth) << "  " << std::left << std::setw(8) << what << std::right
         << std::setw(14) << signed_bytes(consumed_bytes) << std::setw(14)
         << format_bytes(peaked_bytes) << "\n";
  };
  for (const auto& side : devices) line(side.device.str(), side.consumed_bytes, side.peaked_bytes);
  line("process", process.consumed_bytes, process.peaked_bytes);
  return text.str();
}

RegionLog::RegionLog(std::string name, RegionLogOptions options) : options_(std::move(options)) {
  report_.name = std::move(name);
  report_.depth = open_regions++;
  if (options_.devices.empty()) options_.devices = memory::devices();
  for (const auto device : options_.devices)
    scopes_.push_back(std::make_unique<memory::PeakScope>(device));
  process_.emplace();
  start_tracked_ = tracked_on_host();
  begin_ = std::chrono::steady_clock::now();
}

RegionLog::~RegionLog() { finish(); }

RegionReport RegionLog::data() const {
  if (finished_) return report_;
  RegionReport now = report_;
  now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  for (size_t i = 0; i < scopes_.size(); ++i) {
    const auto device = options_.devices[i];
    const auto& scope = *scopes_[i];
    const int64_t consumed = memory::backend(device).usage().allocated_bytes - scope.start_bytes();
    now.devices.push_back({device, consumed, peaked(scope.peak_above_start_bytes(), consumed)});
  }
  const int64_t consumed = memory::resident_bytes() - process_->start_bytes();
  now.process = {consumed, peaked(process_->peak_above_start_bytes(), consumed),
                 consumed - (tracked_on_host() - start_tracked_)};
  return now;
}

RegionReport RegionLog::finish() {
  if (finished_) return report_;
  report_ = data();
  finished_ = true;
  scopes_.clear();
  process_.reset();
  --open_regions;
  if (options_.out)
    *options_.out << (options_.compact ? report_.compact() + "\n" : report_.full()) << std::flush;
  return report_;
}

}  // namespace tare

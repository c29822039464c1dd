// Counts what the tracker records, and the time that takes.
#include "tare/memory/tracker_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tare/base/bytes.h"
#include "tare/memory/backend.h"
#include "tare/memory/event_ring.h"

namespace tare::memory {
namespace {

uint64_t births(c10::Device device) { return backend(device).sequence(); }

/// Returns the value to two digits, and all digits of the whole number that a larger one is; never
/// with an exponent.
std::string two_digits(double value) {
  char text[64];
  const int exponent = value > 0 ? static_cast<int>(std::floor(std::log10(value))) : 0;
  const int decimals = std::clamp(1 - exponent, 0, 12);
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string plain = text;
  if (plain.find('.') == std::string::npos) return plain;
  plain.erase(plain.find_last_not_of('0') + 1);
  if (plain.back() == '.') plain.pop_back();
  return plain;
}

}  // namespace

double TrackerCost::share() const {
  return seconds > 0 ? static_cast<double>(records) * ns_each / (1e9 * seconds) : 0;
}

std::string TrackerCost::str(std::string_view records_name) const {
  return format_count(static_cast<int64_t>(records)) + ' ' + std::string(records_name) + " at " +
         two_digits(ns_each) + " ns, " + two_digits(100 * share()) + " % of the time";
}

TrackerWatch::TrackerWatch(c10::Device device)
    : device_(device),
      host_start_(births(c10::kCPU)),
      device_start_(births(device)),
      start_ns_(now_ns()) {}

TrackerCost TrackerWatch::cost() const {
  TrackerCost cost{.records = births(c10::kCPU) - host_start_,
                   .ns_each = 0,
                   .seconds = static_cast<double>(now_ns() - start_ns_) * 1e-9};
  double ns = static_cast<double>(cost.records) * backend(c10::kCPU).record_cost_ns();
  if (!device_.is_cpu()) {
    const uint64_t records = births(device_) - device_start_;
    ns += static_cast<double>(records) * backend(device_).record_cost_ns();
    cost.records += records;
  }
  if (cost.records > 0) cost.ns_each = ns / static_cast<double>(cost.records);
  return cost;
}

}  // namespace tare::memory

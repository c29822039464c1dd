// How a device keeps the peaks of nested and overlapping scopes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tare::memory {

/// Holds one open measurement of a peak, owned by a PeakScope and kept up to date by the backend.
struct PeakRecord {
  int64_t start_bytes = 0;     ///< allocated bytes when it was opened
  int64_t peak_bytes = 0;      ///< highest allocated bytes since then
  PeakRecord* next = nullptr;  ///< the next open record of the device; null: the last
};

/// Lists the open peak scopes of one device. The allocator keeps a single peak since the last
/// boundary; opening, closing or reading any scope folds that peak into every open one. So scopes
/// may nest and overlap in any order, and an allocation costs the same however many are open. Not
/// thread-safe: the backend's lock guards it.
class OpenPeaks {
 public:
  /// Raises every open record to a peak that was measured since the last call.
  void fold(int64_t peak_bytes) {
    for (auto* record = first_; record; record = record->next)
      record->peak_bytes = std::max(record->peak_bytes, peak_bytes);
  }
  /// Adds a record that starts at `current_bytes`; it must outlive its close().
  void open(PeakRecord& record, int64_t current_bytes) {
    record = {current_bytes, current_bytes, first_};
    first_ = &record;
  }
  /// Removes a record; one that is not open is ignored.
  void close(PeakRecord& record) {
    auto** link = &first_;
    while (*link && *link != &record) link = &(*link)->next;
    if (*link) *link = record.next;
  }

 private:
  PeakRecord* first_ = nullptr;
};

}  // namespace tare::memory

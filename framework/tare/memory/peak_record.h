// How a device keeps the peaks of nested and overlapping scopes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tare::memory {

/// One open measurement of a peak, owned by a PeakScope and kept up to date by the backend.
struct PeakRecord {
  int64_t start_bytes = 0;
  int64_t peak_bytes = 0;
  PeakRecord* next = nullptr;
};

/// The open peak scopes of one device. The allocator keeps a single peak since the last boundary;
/// opening, closing or reading any scope folds that peak into every open one. So scopes may nest
/// and overlap in any order, and an allocation costs the same however many are open. Not
/// thread-safe: the backend's lock guards it.
class OpenPeaks {
 public:
  void fold(int64_t peak_bytes) {
    for (auto* record = first_; record; record = record->next)
      record->peak_bytes = std::max(record->peak_bytes, peak_bytes);
  }
  void open(PeakRecord& record, int64_t current_bytes) {
    record = {current_bytes, current_bytes, first_};
    first_ = &record;
  }
  void close(PeakRecord& record) {
    auto** link = &first_;
    while (*link && *link != &record) link = &(*link)->next;
    if (*link) *link = record.next;
  }

 private:
  PeakRecord* first_ = nullptr;
};

}  // namespace tare::memory

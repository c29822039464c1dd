// Compares the process's resident set with its limit.
#include "tare/memory/resident_limit.h"

#include <malloc.h>

#include <algorithm>
#include <mutex>

#include "tare/base/bytes.h"
#include "tare/base/immortal.h"
#include "tare/memory/event_ring.h"
#include "tare/memory/machine.h"

namespace tare::memory::resident_limit {
namespace {

constexpr int64_t kReadingAgeNs = 1'000'000;

class Limit {
 public:
  void set(int64_t bytes, int64_t live_bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ = bytes;
    read();
    beside_ = std::max<int64_t>(0, resident_ - live_bytes);
  }

  [[nodiscard]] int64_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

  /// A fresh block is not resident before it is written to, so what lives counts in any case.
  bool admits(int64_t bytes, int64_t live_bytes) {
    const std::lock_guard lock(mutex_);
    const auto fits = [&] {
      return bytes <= bytes_ - std::max(resident_ + since_, beside_ + live_bytes);
    };
    bool admitted = now_ns() - read_at_ns_ < kReadingAgeNs && fits();
    for (const bool trim : {false, true}) {
      if (admitted) break;
      if (trim) malloc_trim(0);
      read();
      admitted = fits();
    }
    if (admitted) since_ += bytes;
    return admitted;
  }

 private:
  void read() {
    resident_ = resident_bytes();
    since_ = 0;
    read_at_ns_ = now_ns();
  }

  std::mutex mutex_;
  int64_t bytes_ = 0;
  int64_t resident_ = 0;  // when last read
  int64_t since_ = 0;     // taken by tensors since then
  int64_t beside_ = 0;    // not of tensors, when the limit was set
  int64_t read_at_ns_ = 0;
};

Limit& limit() {
  static Immortal<Limit> instance;
  return *instance;
}

}  // namespace

void set(int64_t bytes, int64_t live_bytes) {
  limit().set(bytes, live_bytes);
  is_set = true;
}

void clear() { is_set = false; }

int64_t bytes() { return limit().bytes(); }

bool admits(int64_t bytes, int64_t live_bytes) { return limit().admits(bytes, live_bytes); }

std::string advice(int64_t live_bytes) {
  const int64_t resident = resident_bytes(), beside = resident - live_bytes;
  const std::string held =
      "the process holds " + format_bytes(resident) + " of its limit of " + format_bytes(bytes());
  if (beside < bytes()) return held + "; raise the limit, or take a smaller batch or model";
  return held + "; the program and its libraries take " + format_bytes(beside) +
         " without any tensor: raise the limit above that";
}

}  // namespace tare::memory::resident_limit

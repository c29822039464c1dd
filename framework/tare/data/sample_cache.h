// SampleCache: decoded samples that stay in memory, within a number of bytes. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "tare/memory/accountable.h"

namespace tare {

/// Keeps the first samples that are offered until its bytes are full. It replaces none: an epoch
/// reads each sample once, so that a cache with replacement would drop each before it is read
/// again. Thread-safe.
class SampleCache {
 public:
  /// Allocates memory for as many samples of `sample_bytes` each as fit in `bytes`, at most
  /// `samples`. Throws OutOfMemory.
  SampleCache(int64_t bytes, int64_t samples, int64_t sample_bytes);

  /// Copies the sample to `out`; false: it is not there.
  [[nodiscard]] bool read(int64_t sample, uint8_t* out) const;
  /// Keeps a copy of the sample if it fits beside the others. Allocates again after clear().
  void offer(int64_t sample, const uint8_t* values);
  /// Frees the memory; samples that are offered later are kept again.
  void clear();
  /// Adds the memory to a ledger, under Category::batch.
  void account(Ledger& ledger) const;

 private:
  struct Place {
    at::Tensor rows;  // undefined: there is none
    int64_t row = 0;
  };
  [[nodiscard]] Place take(int64_t sample);

  int64_t rows_, sample_bytes_;
  mutable std::mutex mutex_;
  at::Tensor memory_;            // uint8 [rows_, sample_bytes_]; undefined: freed
  std::vector<int64_t> row_of_;  // of each sample; kNone, or kTaken while it is copied
  int64_t taken_ = 0;            // rows
};

}  // namespace tare

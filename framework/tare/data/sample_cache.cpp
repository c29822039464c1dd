// Keeps decoded samples in one tensor.
#include "tare/data/sample_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tare {
namespace {

constexpr int64_t kNone = -1, kTaken = -2;

}  // namespace

SampleCache::SampleCache(int64_t bytes, int64_t samples, int64_t sample_bytes)
    : rows_(std::min(bytes / sample_bytes, samples)), sample_bytes_(sample_bytes) {
  if (rows_ == 0) return;
  memory_ = at::empty({rows_, sample_bytes_}, at::kByte);
  row_of_.assign(static_cast<size_t>(samples), kNone);
}

bool SampleCache::read(int64_t sample, uint8_t* out) const {
  if (rows_ == 0) return false;
  Place place;
  {
    const std::scoped_lock lock(mutex_);
    place = {memory_, row_of_[static_cast<size_t>(sample)]};
  }
  if (place.row < 0 || !place.rows.defined()) return false;
  std::memcpy(out, place.rows.const_data_ptr<uint8_t>() + place.row * sample_bytes_,
              static_cast<size_t>(sample_bytes_));
  return true;
}

SampleCache::Place SampleCache::take(int64_t sample) {
  const std::scoped_lock lock(mutex_);
  int64_t& row = row_of_[static_cast<size_t>(sample)];
  if (row != kNone || taken_ == rows_) return {};
  if (!memory_.defined()) memory_ = at::empty({rows_, sample_bytes_}, at::kByte);
  row = kTaken;
  return {memory_, taken_++};
}

void SampleCache::offer(int64_t sample, const uint8_t* values) {
  if (rows_ == 0) return;
  const Place place = take(sample);
  if (!place.rows.defined()) return;
  std::memcpy(place.rows.mutable_data_ptr<uint8_t>() + place.row * sample_bytes_, values,
              static_cast<size_t>(sample_bytes_));
  const std::scoped_lock lock(mutex_);
  // Another thread may have cleared the cache meanwhile.
  if (memory_.is_same(place.rows)) row_of_[static_cast<size_t>(sample)] = place.row;
}

void SampleCache::clear() {
  const std::scoped_lock lock(mutex_);
  memory_.reset();
  std::ranges::fill(row_of_, kNone);
  taken_ = 0;
}

void SampleCache::account(Ledger& ledger) const {
  const std::scoped_lock lock(mutex_);
  if (memory_.defined()) ledger.add(Category::batch, "dataset.cache", memory_);
}

}  // namespace tare

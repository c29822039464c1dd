// Divides a batch into parts, smaller ones after an out-of-memory.
#include "tare/train/micro_batches.h"

#include <algorithm>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"

namespace tare {

namespace {

constexpr int64_t kEnd = -1;  // of the sizes of an input

/// Whether the samples of the inputs have these sizes, each list of which ends with kEnd. Without a
/// list of its own, because it is asked in each step.
bool is_of(const Batch& whole, const std::vector<int64_t>& shape) {
  auto at = shape.begin();
  for (const NamedTensor& input : whole.inputs) {
    for (const int64_t size : input.tensor.sizes().slice(1))
      if (at == shape.end() || *at++ != size) return false;
    if (at == shape.end() || *at++ != kEnd) return false;
  }
  return at == shape.end();
}

}  // namespace

void check_micro_batch(int64_t samples, int64_t batch, const std::string& where) {
  if (samples >= 1 && samples <= batch) return;
  throw ConfigError(where, "micro_batch must be between 1 and the batch of " +
                               std::to_string(batch) + ", got " + std::to_string(samples) +
                               "; leave it unset to have it found")
      .about("micro_batch", "1 to " + std::to_string(batch), std::to_string(samples));
}

void check_first_micro_batch(int64_t samples, int64_t batch, const std::string& where,
                             const std::string& option) {
  if (samples >= 0 && samples <= batch) return;
  const std::string allowed = "1 to " + std::to_string(batch) + ", or 0 to begin with the batch";
  throw ConfigError(where, option, "must not be larger than the batch or negative", allowed,
                    std::to_string(samples));
}

std::vector<Batch> slices_of(const Batch& whole, int64_t size) {
  const int64_t samples = whole.size();
  if (size >= samples) return {whole};
  std::vector<Batch> slices;
  const int64_t count = (samples - 1) / size + 1;
  for (int64_t i = 0, start = 0; i < count; ++i) {
    const int64_t length = samples / count + (i < samples % count ? 1 : 0);
    slices.push_back(whole.narrow(start, length));
    start += length;
  }
  return slices;
}

std::vector<BatchPart> parts_of(const std::vector<Batch>& slices,
                                const std::function<double(const Batch&)>& counted) {
  if (slices.size() == 1) return {{.batch = slices.front()}};
  std::vector<BatchPart> parts;
  double all = 0, samples = 0;
  for (const Batch& slice : slices) {
    parts.push_back({.batch = slice, .counted = counted(slice)});
    all += *parts.back().counted;
    samples += static_cast<double>(slice.size());
  }
  for (auto& part : parts) {
    part.share = all > 0 ? *part.counted / all : static_cast<double>(part.batch.size()) / samples;
  }
  return parts;
}

MicroBatches::MicroBatches(Settings settings, adapt::SizeCache& sizes)
    : settings_(std::move(settings)), sizes_(sizes) {
  settings_.search.policy.even = true;
  settings_.search.on_change = [this](const adapt::Change& change) { note(change); };
}

adapt::Search& MicroBatches::search_for(const Batch& whole) {
  if (search_ && is_of(whole, shape_)) return *search_;
  shape_.clear();
  for (const NamedTensor& input : whole.inputs) {
    const auto sample = input.tensor.sizes().slice(1);
    shape_.insert(shape_.end(), sample.begin(), sample.end());
    shape_.push_back(kEnd);
  }
  std::string key = settings_.phase;
  for (const int64_t size : shape_)
    key += size == kEnd ? std::string(";") : ' ' + std::to_string(size);
  key.pop_back();  // behind the last input
  search_.emplace(settings_.batch, settings_.search, sizes_, std::move(key), settings_.device);
  return *search_;
}

void MicroBatches::note(const adapt::Change& change) {
  const std::string text = std::string("micro-batch of ") + settings_.phase + ": " +
                           format_count(change.from) + " -> " + format_count(change.to) +
                           " samples; ";
  if (change.reason.empty()) {
    log::info(text + "memory is free again");
  } else {
    log::warning(text + change.reason);
  }
  changes_.push_back({settings_.phase, change.from, change.to, change.reason});
}

}  // namespace tare

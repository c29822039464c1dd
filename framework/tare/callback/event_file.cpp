// Encodes events, and counts histograms.
#include "tare/callback/event_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tare/data/protobuf.h"
#include "tare/data/tfrecord.h"

namespace tare {
namespace {

// Numbers of fields. Event:
constexpr uint64_t kTime = 1, kStep = 2, kVersion = 3, kSummary = 5;
// Summary, and Value in it:
constexpr uint64_t kValue = 1, kTag = 1, kScalar = 2, kHistogram = 5;
// HistogramProto:
constexpr uint64_t kMin = 1, kMax = 2, kNum = 3, kSum = 4, kSquares = 5, kLimits = 6, kCounts = 7;

std::string summary_record(double time, int64_t step, const ProtobufWriter& summary) {
  ProtobufWriter event;
  event.real(kTime, time).integer(kStep, step).bytes(kSummary, summary.text());
  return framed_record(event.text());
}

/// Returns the elements in some order. A tensor without gaps and of float32 on the host is not
/// copied.
at::Tensor elements_of(const at::Tensor& values) {
  const at::Tensor on_host = values.detach().to(c10::kCPU, c10::kFloat);
  return on_host.is_non_overlapping_and_dense() ? on_host : on_host.contiguous();
}

}  // namespace

std::string event_head(double time) {
  ProtobufWriter event;
  event.real(kTime, time).bytes(kVersion, "brain.Event:2");
  return framed_record(event.text());
}

std::string event_record(double time, int64_t step, const std::vector<EventScalar>& scalars) {
  ProtobufWriter summary;
  for (const EventScalar& scalar : scalars) {
    ProtobufWriter value;
    value.bytes(kTag, scalar.tag).real(kScalar, static_cast<float>(scalar.value));
    summary.bytes(kValue, value.text());
  }
  return summary_record(time, step, summary);
}

std::string event_record(double time, int64_t step, const std::string& tag,
                         const EventHistogram& histogram) {
  double count = 0;
  for (const double one : histogram.counts) count += one;
  ProtobufWriter counted, value, summary;
  counted.real(kMin, histogram.min).real(kMax, histogram.max).real(kNum, count);
  counted.real(kSum, histogram.sum).real(kSquares, histogram.squares);
  counted.reals(kLimits, histogram.limits).reals(kCounts, histogram.counts);
  value.bytes(kTag, tag).bytes(kHistogram, counted.text());
  summary.bytes(kValue, value.text());
  return summary_record(time, step, summary);
}

EventHistogram histogram_of(const at::Tensor& values, int64_t buckets) {
  const at::Tensor elements = elements_of(values);
  const std::span all(elements.const_data_ptr<float>(), static_cast<size_t>(elements.numel()));
  EventHistogram found{.min = std::numeric_limits<double>::infinity(),
                       .max = -std::numeric_limits<double>::infinity()};
  for (const float one : all) {
    if (!std::isfinite(one)) continue;
    const double value = one;
    found.min = std::min(found.min, value);
    found.max = std::max(found.max, value);
    found.sum += value;
    found.squares += value * value;
  }
  if (found.min > found.max) return {};
  const auto count = static_cast<size_t>(found.min == found.max ? 1 : buckets);
  const double width = (found.max - found.min) / static_cast<double>(count);
  for (size_t i = 1; i < count; ++i)
    found.limits.push_back(found.min + width * static_cast<double>(i));
  found.limits.push_back(found.max);
  found.counts.resize(count);
  for (const float one : all) {
    if (!std::isfinite(one)) continue;
    const double place = count == 1 ? 0 : (static_cast<double>(one) - found.min) / width;
    found.counts[std::min(count - 1, static_cast<size_t>(place))] += 1;
  }
  return found;
}

}  // namespace tare
